"""Panels: the pane beside a list on wide terminals, and copying, scrolling and zooming in every panel."""

from __future__ import annotations

from typing import Any

import pytest
from console_fixture import Console, of_all, run
from support.console_source import QueueSource

from gw_core import JobState
from gw_tui.screens import errors

WIDE = (160, 45)


def pane(console: Console, selector: str = "#beside") -> Any:
    return console.app.screen.query_one(selector)


def test_a_wide_terminal_shows_the_selected_row_beside_the_list() -> None:
    async def scenario(console: Console) -> None:
        for screen in ("errors", "history", "jobs", "events"):
            console.app.visit(screen)
            await console.reach(screen)
            table = console.table()
            await console.until(lambda table=table: len(table.keys) > 1 and pane(console).text)
            first = pane(console).text
            assert pane(console).region.x > table.region.right - 2
            await console.press("down")
            await console.until(lambda first=first: pane(console).text != first)

    run(scenario, screen="errors", size=WIDE)


def test_the_pane_of_errors_has_the_whole_error_and_its_jobs() -> None:
    async def scenario(console: Console) -> None:
        table = console.table("#errors")
        await console.until(lambda: table.keys and pane(console).text)
        states = console.source.queue.states()
        key = table.highlighted or ""
        jobs = [each.job for each in states if each.job.last_error]
        members = [job for job in jobs if key.startswith(f"{job.task}/")]
        latest = max(members, key=lambda job: job.updated_at)
        assert str(latest.id) in pane(console).text
        assert (latest.last_error or "").splitlines()[-1] in pane(console).text

    run(scenario, screen="errors", size=WIDE)


def test_the_pane_of_errors_marks_a_count_that_stopped_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "MAX_JOBS", 5)

    async def scenario(console: Console) -> None:
        table = console.table("#errors")
        await console.until(lambda: table.highlighted and pane(console).text)
        cell = table.shown_rows[table.highlighted or ""].cells["jobs"]
        count = getattr(cell, "text", "")
        assert count.endswith("+")
        assert pane(console).text.startswith(f"{count} job")

    run(scenario, screen="errors", size=WIDE)


def test_there_is_no_pane_where_there_is_no_room() -> None:
    async def scenario(console: Console) -> None:
        for screen in ("jobs", "history", "events"):
            console.app.visit(screen)
            await console.reach(screen)
            await console.until(lambda: console.table().keys)
            assert not pane(console).display

    run(scenario, screen="jobs", size=(120, 34))


@pytest.mark.parametrize("size", of_all((80, 24), others=((120, 34),)))
def test_errors_shows_the_whole_error_below_where_there_is_no_room_beside(size: tuple[int, int]) -> None:
    async def scenario(console: Console) -> None:
        table, panel = console.table("#errors"), pane(console)
        await console.until(lambda: table.keys and panel.text)
        assert panel.region.y >= table.region.bottom
        heading, _, error, *_ = panel.text.splitlines()
        assert heading.endswith(f"of {table.selected.task}")
        await console.shows(error[: size[0] - 4])
        panel.focus()
        await console.until(lambda: console.app.focused is panel)
        await console.press("z")
        await console.until(lambda: panel.region.height > size[1] / 2)

    run(scenario, screen="errors", size=size)


@pytest.mark.parametrize("size", of_all((120, 34), others=((200, 50),)))
def test_where_there_is_height_the_description_follows_the_list(size: tuple[int, int]) -> None:
    async def scenario(console: Console) -> None:
        table, panel = console.table("#crontabs"), pane(console, "#below")
        await console.until(lambda: table.keys and panel.text)
        assert table.region.height == len(table.keys) + 1
        assert panel.region.y == table.region.bottom

    run(scenario, screen="cron", size=size)


def test_the_pane_of_jobs_has_all_columns_and_the_whole_error() -> None:
    async def scenario(console: Console) -> None:
        table = console.table("#jobs")
        await console.until(lambda: table.highlighted and pane(console).text)
        job = console.source.job(int(table.highlighted or "")).job
        assert f"attempt {job.attempts} of {job.max_attempts}" in pane(console).text
        assert all(line in pane(console).text for line in (job.last_error or "").splitlines())
        assert table.region.right <= pane(console).region.x + 1

    run(scenario, screen="jobs", filter="state:failed", size=WIDE)


def test_the_pane_of_jobs_says_that_a_job_is_gone() -> None:
    source = QueueSource()

    async def scenario(console: Console) -> None:
        table = console.table("#jobs")
        await console.until(lambda: table.highlighted and "attempt" in pane(console).text)
        assert "gone" not in pane(console).text
        source.queue.delete(int(table.highlighted or ""))
        await console.refresh()
        await console.until(lambda: "gone: completed or removed" in pane(console).text)

    run(scenario, source=source, screen="jobs", filter="state:failed", size=WIDE)


def test_secrets_in_the_pane_of_jobs_are_masked_until_asked_for() -> None:
    source = QueueSource()
    job = next(each.job for each in source.queue.states() if each.job.last_error and each.state is JobState.FAILED)
    source.queue.alter(job, last_error="ConnectionError\npassword=hunter2")

    async def scenario(console: Console) -> None:
        await console.until(lambda: "password" in pane(console).text)
        assert "hunter2" not in pane(console).text
        await console.press("v")
        await console.until(lambda: "hunter2" in pane(console).text)

    run(scenario, source=source, screen="jobs", filter=f"id:{job.id}", size=WIDE)


def test_y_copies_the_panel_that_has_the_focus_and_z_zooms_it() -> None:
    copied: list[str] = []
    beside = dict.fromkeys(of_all("errors", others=("jobs", "history", "events")), "#beside")
    panels = {**beside, **dict.fromkeys(of_all("locks", others=("cron",)), "#below")}

    async def scenario(console: Console) -> None:
        console.app.copy = lambda text, words="": copied.append(text)  # type: ignore[method-assign]
        for screen, selector in panels.items():
            console.app.visit(screen)
            await console.reach(screen)
            panel = pane(console, selector)
            await console.until(lambda panel=panel: panel.text)
            panel.focus()
            await console.until(lambda panel=panel: console.app.focused is panel)
            copied.clear()
            await console.press("y")
            await console.until(lambda: copied)
            assert copied == [panel.text]
            await console.press("z")
            await console.until(lambda panel=panel: console.app.screen.maximized is panel)
            await console.press("j", "z")
            await console.until(lambda: console.app.screen.maximized is None)

    run(scenario, screen="errors", size=WIDE)


def test_the_dialog_shows_the_effects() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        await console.press("c")
        await console.shows("last heartbeat")
        await console.shows("are not retried")

    run(scenario, filter="state:running worker:gw-app-1*", size=(120, 34))
