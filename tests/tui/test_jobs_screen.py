"""The jobs: found by keys alone, page by page, marked, and never exchanged under the cursor."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from console_fixture import Console, run, search_of
from msgspec import structs
from support.console_source import QueueSource
from support.profiles import scaled
from textual import events
from textual.widgets import Input

from gw_core import JobState, Selection
from gw_core.front_ends import PageCursor, StatementTimeoutError
from gw_core.operations import JobPage
from gw_tui.screens import jobs


class Endless(QueueSource):
    """A queue in which a search finds nothing and never ends."""

    def page(self, wanted: Selection, *, after: PageCursor | None = None, **more: Any) -> JobPage:
        time.sleep(0.01)
        place = 0 if after is None else int(after.place[0])
        return JobPage(after=PageCursor.after_id(place + 10_000), scanned=10_000)


class Piecemeal(QueueSource):
    """A queue in which a search finds few jobs at a time."""

    def page(self, wanted: Selection, *, limit: int = 100, **more: Any) -> JobPage:
        return structs.replace(super().page(wanted, limit=min(limit, 5), **more), is_full=False)


async def ready(console: Console) -> Any:
    await console.until(lambda: console.table().keys)
    return console.screen("jobs")


async def apply_filter(console: Console, text: str) -> Any:
    """Type a filter, and wait for what it finds."""
    await console.press("slash")
    await console.type(text)
    await console.press("enter")
    return await console.searched(text)


def states(console: Console) -> set[str]:
    return {str(console.source.queue.state(console.source.queue.by_id[int(key)])) for key in console.table().keys}


def test_a_filter_is_typed_with_suggestions_and_shows_what_matches() -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        await console.press("slash", *"ta", "tab")
        await console.until(lambda: "send_email" in console.app.screen.query_one("FilterBar")._names.get("tasks", ()))
        await console.press(*"send", "tab", "enter")
        await console.shows("task:send_email")
        await console.until(lambda: console.table().keys)
        held = console.source.queue.by_id
        assert {held[int(key)].task for key in console.table().keys} == {"send_email"}

    run(scenario)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("state:failed", {"failed"}, id="classify_error by the core"),
        pytest.param(
            "-state:ready -state:scheduled", {"failed", "backoff", "running"}, id="classify_error by the console"
        ),
    ],
)
def test_only_what_matches_is_shown(text: str, found: set[str]) -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        await apply_filter(console, text)
        assert states(console) == found

    run(scenario)


def test_a_filter_from_the_command_line_that_is_wrong_is_said_and_left_aside() -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        await console.shows("unknown term 'stat'")
        assert len(states(console)) > 1

    run(scenario, filter="stat:failed")


@pytest.mark.parametrize("screen", ["jobs", "queues"])
def test_what_is_typed_right_after_the_key_of_the_filter_belongs_to_the_filter(screen: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        for key, character in (("slash", "/"), ("x", "x"), ("slash", "/"), ("m", "m")):
            console.app.post_message(events.Key(key, character))
        await console.until(lambda: isinstance(console.app.focused, Input) and console.app.focused.value == "x/m")
        assert not console.table().marks

    run(scenario, screen=screen)


def test_escape_drops_the_marks_and_then_the_filter() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        await console.press("m", "escape")
        assert not console.table().marks
        assert search_of(screen).wanted.conditions
        await console.press("escape")
        await console.until(lambda: len(states(console)) > 1)

    run(scenario, filter="state:failed")


@pytest.mark.parametrize(
    ("screen", "typed", "table"), [("jobs", "state:failed", "#jobs"), ("queues", "customer", "#queues")]
)
def test_a_filter_that_escape_cleared_is_recalled_by_the_command_line(screen: str, typed: str, table: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table(table).keys)
        everything = set(console.table(table).keys)
        await console.press("slash")
        await console.type(typed)
        await console.press("enter")
        await console.until(lambda: 0 < len(console.table(table).keys) < len(everything))
        matching = set(console.table(table).keys)
        await console.press("escape")
        await console.until(lambda: set(console.table(table).keys) not in (set(), matching))
        await console.press(":", "up", "enter")
        await console.until(lambda: set(console.table(table).keys) == matching)

    run(scenario, screen=screen)


def test_pages_are_turned_and_the_way_back_is_exact() -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        first = console.table().keys
        await console.press("n")
        await console.until(lambda: console.table().keys and console.table().keys[0] not in first)
        second = console.table().keys
        assert "page 2" in console.text
        await console.press("n")
        await console.until(lambda: console.table().keys and console.table().keys[0] not in (*first, *second))
        await console.press("p")
        await console.until(lambda: console.table().keys == second)
        await console.press("p")
        await console.until(lambda: console.table().keys == first)
        assert not set(first) & set(second)

    run(scenario)


def test_marks_are_kept_by_id_over_pages_and_name_the_targets() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        first = console.table().keys
        await console.press("m", "down", "down", "M")
        assert console.table().marks == set(first[:4])
        await console.press("n")
        await console.until(lambda: console.table().keys and console.table().keys[0] not in first)
        await console.press("m")
        assert "5 marked" in console.text
        assert {str(each.job.id) for each in screen.targets()} == {*first[:4], console.table().keys[0]}
        await console.press("A")
        assert len(console.table().marks) == 4 + len(console.table().keys)

    run(scenario)


def test_all_that_match_are_marked_beyond_the_page() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        await console.press("ctrl+a")
        await console.until(lambda: console.table().marks)
        assert console.table().marks == {str(job_id) for job_id in console.source.queue.by_id}
        assert len(screen.targets()) == len(console.source.queue.by_id)
        await console.shows("400 jobs marked")

    run(scenario)


def test_escape_stops_a_search_that_finds_nothing_and_keeps_how_far_it_came() -> None:
    async def scenario(console: Console) -> None:
        screen = console.screen("jobs")
        await console.shows("esc stops")
        await console.until(lambda: search_of(screen).asks > 3)
        await console.press("escape")
        await console.shows("stopped after")
        asks = search_of(screen).asks
        await console.refresh()
        assert search_of(screen).asks == asks
        await console.press("n")
        await console.until(lambda: search_of(screen).asks > 1)
        assert len(screen.begins) == 2

    run(scenario, source=Endless(), filter="prio:9")


def test_a_page_that_takes_several_answers_is_made_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "REBUILD_INTERVAL", 0.05)
    source = Piecemeal()
    failed = [each.job.id for each in source.queue.states() if each.state in (JobState.FAILED, JobState.BACKOFF)]

    async def scenario(console: Console) -> None:
        await console.until(lambda: set(console.table().keys) == set(map(str, failed)))
        assert search_of(console.screen("jobs")).asks > 1
        await console.press("G")
        source.queue.delete(failed[0])
        added = source.queue.insert("t", attempts=25, max_attempts=25)
        await console.press("full_stop")
        console.table().moved_at = None
        await console.until(lambda: str(added) in console.table().keys)
        await console.until(lambda: str(failed[0]) not in console.table().keys)

    run(scenario, source=source, filter="state:failed,backoff")


def test_typing_a_filter_stops_a_search_for_the_while() -> None:
    async def scenario(console: Console) -> None:
        screen = console.screen("jobs")
        await console.until(lambda: search_of(screen).asks > 1)
        await console.press("slash", *"sta")
        await console.shows("state:")

    run(scenario, source=Endless(), filter="prio:9")


def test_an_order_of_the_page_says_that_it_is_one() -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        first = console.table().keys
        await console.press("s")
        assert console.table().keys == tuple(sorted(first, key=int, reverse=True))
        assert "page by id" in console.text

    run(scenario, filter="state:failed")


def test_the_newest_jobs_of_all_come_first_when_asked_for() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        newest = sorted(console.source.queue.by_id, reverse=True)
        await console.press("s")
        await console.until(lambda: console.table().keys == tuple(map(str, newest[:100])))
        assert "newest first" in console.text
        await console.press("n")
        await console.until(lambda: console.table().keys == tuple(map(str, newest[100:200])))
        await console.press("s")
        await console.until(lambda: search_of(screen).asks and len(screen.begins) == 1)

    run(scenario)


def head(console: Console) -> str:
    return next((line for line in console.text.splitlines() if " state " in line), "")


@pytest.mark.once
def test_a_wider_screen_shows_more_columns() -> None:
    columns = {
        (60, 20): ["id", "state", "task", "when"],
        (80, 24): ["id", "state", "task", "att", "when", "last error"],
        (120, 34): ["id", "state", "task", "queue", "prio", "att", "when", "last error"],
        (190, 45): [*["id", "state", "task", "queue", "prio", "att", "when", "created", "worker", "key"], "last error"],
    }

    async def scenario(console: Console) -> None:
        await ready(console)
        for size, titles in columns.items():
            await console.pilot.resize_terminal(*size)
            await console.until(lambda titles=titles: all(title in head(console) for title in titles))

    run(scenario, size=(60, 20))


def test_a_job_whose_worker_is_dead_and_one_whose_queue_is_held_say_so() -> None:
    async def scenario(console: Console) -> None:
        await ready(console)
        await apply_filter(console, "state:running")
        await console.shows("● running ▲")
        await console.press("escape")
        await console.shows("/ all jobs")
        await apply_filter(console, "queue:imports state:ready")
        await console.shows("▶ ready q")

    run(scenario)


def test_a_failure_is_shown_and_what_was_found_stays() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        before = console.table().keys
        screen.show_failure(*_slow())
        await console.shows("slow: it took too long")
        assert console.table().keys == before
        await console.press("n", "p")
        await console.until(lambda: "slow" not in console.text and console.table().keys == before)

    run(scenario)


def _slow() -> Any:
    from gw_tui.data.source import classify_error

    return classify_error(StatementTimeoutError("it took too long"))


@pytest.mark.once
def test_the_highlighted_job_never_changes_by_itself() -> None:
    chance = Random(5)
    source = QueueSource(jobs=150)

    async def scenario(console: Console) -> None:
        screen = await ready(console)
        for round_number in range(scaled(120)):
            if round_number % 30 == 0:
                for _ in range(chance.randint(1, 8)):
                    console.table().action_move(chance.choice((-3, 1, 2, 9)))
            if round_number % 45 == 0:
                screen.action_order()
                await console.until(lambda: console.table().keys)
            highlighted = console.table().highlighted
            assert highlighted is not None
            place = console.table().keys.index(highlighted) - console.table().scroll_offset.y
            source.clock.advance(chance.choice((0.2, 1, 1, 2, 30)))
            if chance.random() < 0.3:  # as when the cursor came to rest
                console.table().moved_at = None
            await _tick(screen, source)
            assert console.table().highlighted == highlighted
            assert highlighted in console.table().keys
            if 0 < console.table().scroll_offset.y < console.table().max_scroll_y:
                assert console.table().keys.index(highlighted) - console.table().scroll_offset.y == place

    run(scenario, source=source)


async def _tick(screen: Any, source: QueueSource) -> None:
    """Do explicitly what a tick does."""
    screen.state.snapshot = source.snapshot()
    screen.show_snapshot(screen.state.snapshot)
    question = screen.current_query()
    assert question is not None
    screen.show_answer(question, question.ask(source))


def test_jobs_are_exported_with_secrets_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = QueueSource()
    failed = next(each.job for each in source.queue.states() if each.state is JobState.FAILED)
    source.queue.alter(failed, last_error="login failed: password=hunter2\x1b[31m")

    async def scenario(console: Console) -> None:
        await ready(console)
        await console.press("m", "e")
        await console.choices()
        await console.pilot.pause()
        await console.press("enter")
        await console.until(lambda: list(tmp_path.iterdir()))
        await console.shows("1 job written to")

    run(scenario, source=source, filter=f"id:{failed.id}")
    (path,) = tmp_path.iterdir()
    record = json.loads(path.read_text())
    assert (record["id"], record["state"]) == (failed.id, "failed")
    assert "hunter2" not in record["last_error"]
    assert path.stat().st_mode & 0o077 == 0


def test_all_matches_are_read_once_each_to_be_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MARK_PAGE_SIZE", 250)
    read: list[int] = []

    class Counted(QueueSource):
        def page(self, wanted: Selection, *, limit: int = 100, **more: Any) -> JobPage:
            page = super().page(wanted, limit=limit, **more)
            read.append(len(page.jobs))
            return page

    async def scenario(console: Console) -> None:
        await ready(console)
        read.clear()
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table().marks) == 600)
        assert read[:3] == [250, 250, 100]

    run(scenario, source=Counted(jobs=600))


def test_no_action_runs_while_all_matches_are_being_marked() -> None:
    async def scenario(console: Console) -> None:
        screen = await ready(console)
        screen.gathering = jobs.BulkMark(search_of(screen).ask, 100)
        assert screen.check_action("retry", ()) is None
        await console.press("r")
        assert console.source.actions == []
        screen.gathering = None
        assert screen.check_action("retry", ()) is True

    run(scenario, filter="state:failed")
