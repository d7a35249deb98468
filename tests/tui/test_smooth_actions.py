"""Acts without stumbling: the focus is where it is expected, and a key that cannot act gives the reason."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from console_fixture import Console, play, queue_source, run
from msgspec import structs
from support.console_source import QueueSource

from gw_core import Client, JobSpec, Runner, TaskRegistry, WorkerSettings
from gw_core.front_ends import Count
from gw_tui.actions import Fail, Pause
from gw_tui.rules.preferences import Preferences, SavedView, TableChoice


def test_a_reason_is_typed_immediately_and_enter_pauses() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        name = console.table("#tasks").highlighted
        await console.press("P")
        await console.reach("Confirm")
        await console.press(*"billing", "enter")
        _, paused = await console.acted(2)
        assert paused == Pause(target=f"task:{name}", reason="billing")
        await console.notified(f"task {name} paused")

    run(scenario, screen="tasks")


def test_enter_alone_destroys_nothing_and_failing_takes_a_reason() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("f")
        dialog = await console.reach("Confirm")
        await console.type("customer left")
        await console.press("enter")
        assert dialog.focused is dialog.query_one("#ok")
        assert not console.source.actions
        await console.press("enter")
        (action,) = await console.acted()
        assert isinstance(action, Fail)
        assert action.reason == "customer left"

    run(scenario, filter="state:ready")


def test_a_key_that_needs_write_access_gives_the_reason_and_does_nothing() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        for key in "rtfxaPU":
            console.notices.clear()
            await console.press(key)
            await console.notified("this console is read-only")
            assert console.is_on("jobs")
        assert console.source.actions == []

    run(scenario, source=QueueSource(read_only=True))


@pytest.mark.parametrize(("state", "shown", "hidden"), [("running", "Cancel", "Retry"), ("ready", "Retry", "Cancel")])
def test_the_key_bar_offers_what_the_row_takes(state: str, shown: str, hidden: str) -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.until(lambda: shown in console.text.splitlines()[-1])
        assert hidden not in console.text.splitlines()[-1]
        assert "P Pause" in console.text.splitlines()[-1]

    run(scenario, filter=f"state:{state}", size=(100, 24))


def test_a_frozen_display_shows_the_first_answer_of_another_screen() -> None:
    async def scenario(console: Console) -> None:
        await console.press("space")
        await console.shows("FROZEN")
        await console.press("9")
        await console.reach("errors")
        await console.until(lambda: console.table("#errors").keys)

    run(scenario, screen="overview")


def test_the_columns_of_a_view_go_with_its_filter() -> None:
    view = SavedView(screen="jobs", selection="state:failed", choice=TableChoice(("id", "error")))

    async def scenario(console: Console) -> None:
        await console.rows()
        usual = tuple(console.table("#jobs").widths)
        await console.press(":")
        await console.reach("CommandLine")
        await console.type("view often")
        await console.press("enter")
        await console.until(lambda: tuple(console.table("#jobs").widths) == ("id", "error"))
        await console.press("escape")
        await console.until(lambda: tuple(console.table("#jobs").widths) == usual)

    run(scenario, preferences=Preferences(views={"often": view}))


def test_a_total_is_not_less_than_what_the_tiles_count() -> None:
    class Crashed(QueueSource):
        def read_snapshot(self):  # type: ignore[no-untyped-def]

            return structs.replace(super().read_snapshot(), total=Count(0))

    async def scenario(console: Console) -> None:
        await console.shows("of ")
        assert "of 0 jobs" not in console.text

    run(scenario, source=Crashed(), screen="overview")


def test_a_job_shows_its_recorded_attempts_also_when_it_is_gone(database_url: str) -> None:
    tasks = TaskRegistry()
    fails = [True]

    def charge(payload: object) -> None:
        if fails.pop():
            raise ValueError("card expired")

    tasks.register("charge", charge)
    settings = WorkerSettings(history=timedelta(days=1))
    with Client(database_url) as client:
        client.migrate()
        job = client.add("charge")
        Runner(database_url, tasks=tasks, settings=settings, handle_signals=False).run_once()

    async def scenario(console: Console) -> None:
        await console.reach("job")
        await console.shows("retried after")
        await console.shows("ValueError: card expired")
        fails.append(False)
        with Client(database_url) as client:
            client.jobs.reschedule([job.id], run_at=timedelta())
        await asyncio.to_thread(Runner(database_url, tasks=tasks, settings=settings, handle_signals=False).run_once)
        console.app.visit("overview")
        await console.press(":")
        await console.reach("CommandLine")
        await console.type(f"job {job.id}")
        await console.press("enter")
        await console.reach("job")
        await console.shows("charge · completed")

    play(scenario, queue_source(database_url), size=(160, 34), open=f"job/{job.id}")


def test_failures_per_minute_are_those_that_were_recorded(database_url: str) -> None:
    tasks = TaskRegistry()

    def fail(payload: object) -> None:
        raise ValueError("no")

    tasks.register("charge", fail)
    with Client(database_url) as client:
        client.migrate()
        client.add_many([JobSpec(task="charge")] * 60)
        client.add_many([JobSpec(task="later", run_at=timedelta(hours=1))] * 7)
        client.add_many([JobSpec(task="a_task")] * 3)
        Runner(database_url, tasks=tasks, handle_signals=False).run_once()
        recorded = client.tasks.statistics()["charge"].failed

    async def scenario(console: Console) -> None:
        await console.until(lambda: len(console.table("#tasks").keys) == 3)
        table = console.table("#tasks")
        assert table.keys == ("charge", "a_task", "later"), "what has a problem stands first"
        assert table.shown_rows["charge"].cells["lately"].text == f"{recorded:.1f}"
        assert table.shown_rows["later"].cells["scheduled"].text == "7"

    play(scenario, queue_source(database_url), screen="tasks")
