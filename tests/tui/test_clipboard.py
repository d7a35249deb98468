"""What is copied is one line of text, whatever the queue holds, and covers all that an action covers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import thread_time
from typing import Any

import pytest
from console_fixture import Console, run
from hostile_console import HostileSource
from hypothesis import given, strategies as st
from msgspec import structs
from support.task_builders import a_job

from gw_core.front_ends import UNSAFE_TEXT
from gw_core.operations import JobReport, QueueReport
from gw_tui import clipboard
from gw_tui.actions import Action, Complete, Fail, Reschedule, Retry, Unlock

EVIL = "k\x15touch pwned\n\x1b[201~\rtouch pwned\r"


def command_line(action: Action) -> str:
    words = action.preview()
    assert words is not None
    return clipboard.command_line(words)


class MoreHostile(HostileSource):
    """Has names that would be keys, were they pasted as they are."""

    def queues(self, *, after: str = "", limit: int = 100, only_locked: bool = False) -> Sequence[QueueReport]:
        found = super().queues(after=after, limit=limit, only_locked=only_locked)
        return [structs.replace(each, name=EVIL) for each in found[:1]] if not after else []

    def ranked_queues(self, text: str = "", *, after: int = 0, limit: int = 100) -> Sequence[QueueReport]:
        found = super().ranked_queues(text, after=after, limit=limit)
        return [structs.replace(each, name=EVIL) for each in found[:1]]

    def crontabs(self) -> Any:
        found = super().crontabs()
        return replace(found, known=[structs.replace(each, identifier=EVIL) for each in found.known[:1]], items=None)


def test_what_y_copies_is_one_line_without_controls() -> None:
    async def scenario(console: Console) -> None:
        for screen in ("queues", "workers", "cron", "locks", "jobs", "overview", "events"):
            console.app.visit(screen)
            await console.reach(screen)
            await console.until(lambda: any(table.keys for table in console.app.screen.query("KeyedTable")))
            console.app.copy_to_clipboard("")
            console.notices.clear()
            await console.press("y")
            await console.until(lambda: console.app.clipboard)
            assert re.search(UNSAFE_TEXT, console.app.clipboard) is None, screen
            if screen in ("queues", "cron"):
                assert console.app.clipboard == "k\\x15touch pwned \\x1b[201~ touch pwned"
                await console.notified("control characters replaced")

    run(scenario, source=MoreHostile(), screen="queues")


def test_the_command_for_a_hostile_name_is_not_copied_and_the_notice_says_why() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        await console.press("Y")
        (await console.choices()).dismiss("unlock")
        await console.notified("a value has control or invisible characters")
        assert not console.app.clipboard

    run(scenario, source=MoreHostile(), screen="workers")


def test_whatever_else_copies_copies_one_line() -> None:
    async def scenario(console: Console) -> None:
        console.app.copy_to_clipboard(EVIL)
        assert re.search(UNSAFE_TEXT, console.app.clipboard) is None

    run(scenario)


def test_a_payload_is_copied_as_one_line_of_json() -> None:
    class Payload(HostileSource):
        def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
            report = super().job(job_id)
            assert report is not None
            payload = '{"a": [1, 2.50], "b": "x\\ny$(touch pwned)"}'
            return structs.replace(report, job=structs.replace(report.job, payload_json=payload))

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        await console.press("enter")
        await console.reach("job")
        await console.shows('"a": [')
        await console.press("y")
        await console.until(lambda: console.app.clipboard)
        assert console.app.clipboard == '{ "a": [ 1, 2.50 ], "b": "x\\ny$(touch pwned)" }'

    run(scenario, source=Payload())


def test_a_payload_too_large_to_copy_is_rejected_before_it_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = "[" + "1," * 1_000_000 + "1]"

    class Large(HostileSource):
        def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
            report = super().job(job_id)
            assert report is not None
            return structs.replace(report, job=structs.replace(report.job, payload_json=payload))

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        await console.press("enter")
        await console.reach("job")
        await console.until(lambda: "1,1,1" in console.text)
        monkeypatch.setattr("gw_tui.screens.job.json_view", None)
        await console.press("y")
        await console.notified("too large to copy")
        monkeypatch.undo()

    run(scenario, source=Large())


@pytest.mark.parametrize("action", [Retry, Fail, Complete, Reschedule])
@pytest.mark.parametrize("count", [1, 200])
def test_what_is_copied_covers_every_job(action: Callable[..., Action], count: int) -> None:
    line = command_line(action(jobs=[a_job(id=each) for each in range(1, count + 1)]))

    assert set(map(str, range(1, count + 1))) <= set(line.split())


def test_a_command_too_long_for_a_shell_is_not_copied() -> None:
    # A shell that leaves lines to the terminal gets 4,095 bytes of them, and would act on the first half of an id.
    with pytest.raises(ValueError, match="more than 4,000 bytes"):
        command_line(Retry(jobs=[a_job(id=each) for each in range(1, 7_001)]))


@given(st.text())
def test_nothing_that_is_copied_has_a_control(text: str) -> None:
    assert re.search(UNSAFE_TEXT, clipboard.on_one_line(text)) is None


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1, max_size=3))
def test_nothing_that_is_offered_has_a_control(names: list[str]) -> None:
    with suppress(ValueError):
        assert re.search(UNSAFE_TEXT, command_line(Unlock(workers=names))) is None


def test_a_long_text_is_put_on_one_line_in_no_long_time() -> None:
    began = thread_time()
    clipboard.on_one_line(" " * 200_000 + "\n" * 200_000 + " \n" * 100_000)

    assert thread_time() - began < 5
