"""Panels: the pane beside a list on wide terminals, and copying, scrolling and zooming in every panel."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from console_fixture import Console, demo_queue, run

from gw_core import JobState
from gw_core.operations import WorkerInfo
from gw_tui.rules.cancel_effects import cancel_effects

WIDE = (160, 45)


def pane(console: Console, selector: str = "#preview") -> Any:
    return console.app.screen.query_one(selector)


@pytest.mark.parametrize("screen", ["errors", "history"])
def test_a_wide_terminal_shows_the_selected_row_beside_the_list(screen: str) -> None:
    async def scenario(console: Console) -> None:
        table = console.table(f"#{screen}")
        await console.until(lambda: len(table.keys) > 1 and pane(console).text)
        first = pane(console).text
        assert pane(console).region.x > table.region.right - 2
        await console.press("down")
        await console.until(lambda: pane(console).text != first)

    run(scenario, screen=screen, size=WIDE)


def test_the_pane_of_errors_has_the_whole_error_and_its_jobs() -> None:
    async def scenario(console: Console) -> None:
        table = console.table("#errors")
        await console.until(lambda: table.keys and pane(console).text)
        states = console.source.queue.states()
        task = table.highlighted.partition("/")[0] if table.highlighted else ""
        members = [each.job for each in states if each.job.task_identifier == task and each.job.last_error]
        latest = max(members, key=lambda job: job.updated_at_epoch)
        assert str(latest.id) in pane(console).text
        assert (latest.last_error or "").splitlines()[-1] in pane(console).text

    run(scenario, screen="errors", size=WIDE)


def test_there_is_no_pane_where_there_is_no_room() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#errors").keys)
        assert not pane(console).display

    run(scenario, screen="errors", size=(120, 34))


@pytest.mark.parametrize(
    ("screen", "selector"), [("errors", "#preview"), ("history", "#preview"), ("cron", "#about"), ("locks", "#about")]
)
def test_y_copies_the_panel_that_has_the_focus_and_z_zooms_it(screen: str, selector: str) -> None:
    copied: list[str] = []

    async def scenario(console: Console) -> None:
        await console.until(lambda: pane(console, selector).text)
        console.app.copy = lambda text, words="": copied.append(text)  # type: ignore[method-assign]
        pane(console, selector).focus()
        await console.until(lambda: console.app.focused is pane(console, selector))
        await console.press("y")
        await console.until(lambda: copied)
        assert copied == [pane(console, selector).text]
        await console.press("z")
        await console.until(lambda: console.app.screen.maximized is pane(console, selector))
        await console.press("j", "z")
        await console.until(lambda: console.app.screen.maximized is None)

    run(scenario, screen=screen, size=WIDE)


def test_the_question_before_a_cancellation_says_what_each_worker_will_do() -> None:
    source = demo_queue(stands_still=True)
    running = [each for each in source.queue.states() if each.state is JobState.RUNNING]
    one, other, third = sorted({str(each.job.locked_by) for each in running})[:3]
    workers = {
        one: WorkerInfo(id=one, heartbeat_age=timedelta(seconds=4)),
        other: WorkerInfo(id=other, heartbeat_age=timedelta(minutes=20), is_stale=True),
    }
    lines = dict(line.split(": ", 1) for line in cancel_effects(running, workers))
    assert "to stop; last heartbeat 4.0s ago" in lines[one]
    assert "gone for 20m00s, nothing stops" in lines[other]
    assert "sends no heartbeats" in lines[third]


def test_the_dialog_shows_the_effects() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        await console.press("c")
        await console.shows("last heartbeat")
        await console.shows("are not retried")

    run(scenario, filter="state:running worker:gw-app-1*", size=(120, 34))
