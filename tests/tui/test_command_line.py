"""The line after `:`, and deep links: they lead to the same places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from console_fixture import Console, Preferences, run, search_of
from support.console_source import QueueSource
from textual import events
from textual.widgets import Input

from gw_core import JobState
from gw_core.selection import parse
from gw_tui.rules.command_line import NO_NAMES, Destination, completions, parse_line, parse_link


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jobs state:failed task:send*", Destination(screen="jobs", filter="state:failed task:send*")),
        ("job 4901", Destination(job=4901)),
        ("queue mail", Destination(screen="queues", filter="mail")),
        ("errors", Destination(screen="errors")),
        ("q", Destination(command="quit")),
        ("next_theme", Destination(command="next_theme")),
    ],
)
def test_a_line_leads_somewhere(text: str, expected: Destination) -> None:
    assert parse_line(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("moon", "unknown command 'moon'"),
        ("job mail", "give a job id"),
        ("jobs state:moon", "state"),
        ("history priority:3", "priority"),
    ],
)
def test_a_line_that_leads_nowhere_says_why(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_line(text)


def test_a_link_is_a_line_with_a_slash() -> None:
    assert parse_link("job/4901") == parse_line("job 4901")
    assert parse_link("jobs/task:reports/weekly") == parse_line("jobs task:reports/weekly")


def lines(text: str, **options: Any) -> list[str]:
    return [each.line for each in completions(text, replace(NO_NAMES, **options))]


def test_words_and_conditions_are_completed() -> None:
    assert lines("err")[0] == "errors"
    assert "jobs state:" in [each.strip() for each in lines("jobs sta")]
    assert lines("theme gw-l", themes=("gw-dark", "gw-light")) == ["theme gw-light"]


def test_commands_are_found_by_the_words_of_their_help() -> None:
    assert lines("stale workers")[0] == "sweep"
    assert "cleanup_unused_queues" in lines("unused")
    assert {"overview", "retry", "quit"} <= set(lines(""))


def test_a_command_is_listed_with_the_keys_that_it_has() -> None:
    assert {
        each.line: each.keys
        for each in completions("free", replace(NO_NAMES, preferences=Preferences(keys={"freeze": "Z"})))
    }["freeze"] == "Z"


async def entered(console: Console) -> Input:
    await console.press(":")
    await console.reach("CommandLine")
    await console.pilot.pause()
    return console.app.screen.query_one(Input)


def test_a_command_filters_jobs_and_the_history_recalls_it() -> None:
    async def scenario(console: Console) -> None:
        await entered(console)
        await console.type("jobs state:failed task:send*")
        await console.press("enter")
        screen = await console.reach("jobs")
        await console.until(lambda: search_of(screen).wanted == parse("state:failed task:send*"))
        entry = await entered(console)
        await console.press("up")
        assert entry.value == "jobs state:failed task:send*"
        await console.press("down")
        assert entry.value == ""
        await console.type("moon")
        await console.press("enter")
        await console.shows("unknown command 'moon'")
        await console.press("escape")
        await console.reach("jobs")

    run(scenario, screen="overview")


def test_tab_completes_and_a_command_runs() -> None:
    async def scenario(console: Console) -> None:
        before = console.app.theme
        entry = await entered(console)
        await console.type("next_th")
        await console.press("tab")
        assert entry.value == "next_theme"
        await console.press("shift+tab", "tab")
        assert entry.value == "next_theme"
        await console.press("enter")
        await console.until(lambda: console.app.theme != before)

    run(scenario, screen="overview")


def test_a_theme_is_chosen_by_its_name() -> None:
    async def scenario(console: Console) -> None:
        await entered(console)
        await console.type("theme gw-l")
        await console.press("tab", "enter")
        await console.until(lambda: console.app.theme == "gw-light")

    run(scenario, screen="overview")


def test_a_deep_link_opens_one_job() -> None:
    source = QueueSource()
    job = next(each.job for each in source.queue.states() if each.state is JobState.FAILED)

    async def scenario(console: Console) -> None:
        await console.reach("job")
        await console.shows(f"job {job.id}")
        await console.shows(job.task)
        await console.press("escape")
        await console.reach("jobs")

    run(scenario, source=source, screen="overview", open=f"job/{job.id}")


def test_a_deep_link_opens_a_worker() -> None:
    async def scenario(console: Console) -> None:
        await console.reach("workers")
        await console.until(lambda: console.table("#workers").highlighted == "gw-app-3-977-760e1f")

    run(scenario, screen="overview", open="worker/gw-app-3-977-760e1f")


def test_keys_that_follow_immediately_belong_to_the_line() -> None:
    async def scenario(console: Console) -> None:
        for key in ("colon", "c", "o", "m"):  # without waiting, as a fast typist or a slow terminal sends them
            console.app.post_message(events.Key(key, ":" if key == "colon" else key))
        await console.reach("CommandLine")
        await console.until(lambda: console.app.screen.query_one(Input).value == "com")
        assert console.source.actions == []

    run(scenario, screen="jobs")
