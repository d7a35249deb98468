"""Nothing but what was named: a line, a row and a mark act on their own thing, whatever was open before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from console_fixture import Console, run, search_of

from gw_core.selection import parse
from gw_tui.rules.command_line import parse_line
from gw_tui.rules.commands import BY_ID, SCREEN_BY_ID
from gw_tui.widgets.keyed_table import KeyedTable

NAMED = "1060"


@pytest.mark.parametrize("command", [*(each for each in BY_ID if not each.startswith("go_")), "q"])
def test_a_command_takes_no_argument_and_says_so(command: str) -> None:
    with pytest.raises(ValueError, match="takes no argument"):
        parse_line(f"{command} {NAMED}")


def test_a_screen_shows_what_stands_after_its_name_or_says_that_it_cannot() -> None:
    async def shown(console: Console, screen: str) -> None:
        console.app.visit("overview")
        await console.reach("overview")
        before = console.text
        console.notices.clear()
        await console.press(":")
        await console.reach("CommandLine")
        await console.type(f"{screen} {NAMED}")
        await console.press("enter")
        await console.reach(screen)
        await console.until(lambda: NAMED in console.text or any(NAMED in each for each in console.notices))
        assert console.text != before, screen

    async def scenario(console: Console) -> None:
        for screen in SCREEN_BY_ID:
            try:
                found = parse_line(f"{screen} {NAMED}")
            except ValueError:
                continue
            assert (found.screen, found.filter) == (screen, NAMED)
            await shown(console, screen)

    run(scenario, screen="overview", size=(120, 34))


async def leave_a_job_open(console: Console) -> None:
    """Open a job's page and leave it by the key of another screen."""
    await console.press("2")
    await console.reach("jobs")
    await console.until(lambda: console.table("#jobs").keys)
    await console.press("enter")
    await console.reach("job")


WAYS: dict[str, tuple[str, str, Callable[[Any], bool]]] = {
    "alert": ("overview", "#alerts", lambda key: key.startswith("jobs/")),
    "priority": ("overview", "#priorities", lambda key: True),
    "task": ("tasks", "#tasks", lambda key: True),
    "queue": ("queues", "#queues", lambda key: True),
    "worker": ("workers", "#workers", lambda key: True),
    "recurring task": ("cron", "#crontabs", lambda key: True),
    "error": ("errors", "#errors", lambda key: True),
}
"""Each kind of row that leads to jobs: its screen, its table, and which of its rows do."""


def test_enter_opens_what_was_chosen_whatever_was_left_open() -> None:
    async def chosen(console: Console, screen: str, table: str, leads: Callable[[Any], bool]) -> None:
        await leave_a_job_open(console)
        await console.press(SCREEN_BY_ID[screen].key)
        await console.reach(screen)
        await console.until(lambda: any(map(leads, console.table(table).keys)))
        rows: KeyedTable = console.table(table)
        rows.focus()
        rows.move_to(next(key for key in rows.keys if leads(key)))
        await console.pilot.pause()
        await console.press("enter")
        found = await console.reach("jobs")
        await console.until(lambda: search_of(found).wanted.conditions)
        assert rows.highlighted is not None
        await console.press("escape")
        await console.until(lambda: not search_of(found).wanted.conditions)

    async def scenario(console: Console) -> None:
        for screen, table, leads in WAYS.values():
            await chosen(console, screen, table, leads)

    run(scenario, size=(120, 34))


def test_a_typed_filter_leaves_the_page_of_a_job() -> None:
    async def scenario(console: Console) -> None:
        await leave_a_job_open(console)
        await console.press(":")
        await console.reach("CommandLine")
        await console.type("jobs state:failed")
        await console.press("enter")
        found = await console.reach("jobs")
        await console.until(lambda: search_of(found).wanted == parse("state:failed"))

    run(scenario)


def test_a_row_that_is_gone_is_no_target_and_keeps_no_mark() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: len(console.table("#jobs").keys) > 3)
        table = console.table("#jobs")
        await console.press("m", "m", "m")
        kept, *gone = sorted(table.marks, key=table.keys.index)
        for each in gone:
            console.source.queue.run("delete from _private_jobs where id = %s", int(each))
        await console.refresh()
        await console.until(lambda: all(map(table.is_gone, gone)))
        assert table.marks == {kept}
        assert [str(each.job.id) for each in console.screen("jobs").targets()] == [kept]
        table.marks.clear()
        table.move_to(gone[0])
        assert console.screen("jobs").targets() == ()
        for key in "rtfxc":
            console.app.clear_notifications()
            await console.press(key)
            await console.notified("The selected job is gone")

    run(scenario)


def test_a_result_counts_what_was_skipped_by_its_reason() -> None:
    async def scenario(console: Console) -> None:
        await console.press("/")
        await console.type("state:ready")
        await console.press("enter")
        await console.searched("state:ready")
        await console.press("A")
        marked = sorted(console.table("#jobs").marks, key=int)
        gone = [int(each) for each in marked[:7]]
        console.source.queue.run("delete from _private_jobs where id = any(%s)", gone)
        await console.press("f")
        await console.reach("Confirm")
        await console.press("tab", "enter")
        await console.reach("ResultDialog")
        assert "7 gone" in console.text
        await console.press("escape")
        assert not console.table("#jobs").marks

    run(scenario)
