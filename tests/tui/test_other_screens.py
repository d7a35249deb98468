"""Queues, workers, recurring tasks and locks: the facts, by keys alone, at any size, with hostile data harmless."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from console_fixture import Console, run, search_of
from msgspec import structs
from support.console_source import QueueSource

from gw_core import Selection, cron_item
from gw_core.errors import PermissionDeniedError
from gw_core.front_ends import (
    UNSAFE_TEXT,
    AdvisoryLock,
    BackendSession,
    CheckStatus,
    LockWait,
    LockWaits,
    QueueSnapshot,
    StatementTimeoutError,
)
from gw_core.operations import Finding
from gw_tui.data.source import classify_error
from gw_tui.screens.queues import PAGE

SCREENS = ("jobs", "queues", "workers", "cron", "locks")


async def reaches_jobs(console: Console, filter_text: str) -> None:
    screen = await console.reach("jobs")
    assert str(search_of(screen).wanted) == filter_text
    await console.until(lambda: search_of(screen).asks)


# -- queues ----------------------------------------------------------------------------------------------------------


def test_a_queue_says_who_holds_it_and_leads_to_its_jobs() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        assert any("imports" in line and "stuck" in line and "gw-app-3" in line for line in console.text.splitlines())
        console.table().move_to("imports")
        await console.press("enter")
        await reaches_jobs(console, "queue:imports")

    run(scenario, screen="queues")


def test_queues_are_found_by_a_part_of_their_name_or_by_being_held() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("slash")
        await console.type("PORT")
        await console.press("enter")
        await console.until(lambda: console.table().keys == ("imports",))
        await console.press("escape", "slash")
        await console.type("locked:")
        await console.press("enter")
        held = tuple(sorted(console.source.queue.held))
        await console.until(lambda: console.table().keys == held)
        await console.press("escape")
        await console.until(lambda: len(console.table().keys) > len(held))

    run(scenario, screen="queues")


def test_queues_are_ranked_by_their_due_jobs_over_all_pages_and_counted_exactly() -> None:
    source = QueueSource(jobs=0)
    for number in range(PAGE + 5):
        source.queue.insert("t", queue=f"a{number:04}")
    for _ in range(12):
        source.queue.insert("t", queue="tenant-150")
    source.queue.run("insert into _private_job_queues (queue_name) values ('an empty one')")

    async def scenario(console: Console) -> None:
        await console.rows()
        assert console.table().keys[0] == "tenant-150"
        assert console.table().shown_rows["tenant-150"].cells["due"].text == "12"
        await console.press("n")
        await console.until(lambda: console.table().keys[-1:] == ("an empty one",))
        assert len(console.table().keys) == 7

    run(scenario, source=source, screen="queues")


def test_queues_stand_by_name_where_counting_them_takes_too_long() -> None:
    class Slow(QueueSource):
        def read_queue_sizes(self) -> Any:
            raise StatementTimeoutError("canceling statement due to statement timeout")

    source = Slow()

    async def scenario(console: Console) -> None:
        await console.rows()
        assert list(console.table().keys) == sorted(console.table().keys)
        await console.shows("by name")

    run(scenario, source=source, screen="queues")


# -- workers ---------------------------------------------------------------------------------------------------------


def test_a_worker_that_is_dead_comes_first_with_what_it_holds() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        dead = console.table("#workers").keys[0]
        assert dead.startswith("gw-app-3")
        assert any(dead in line and "▲ stale" in line and "██████████" in line for line in console.text.splitlines())
        await console.until(lambda: len(console.table("#held").keys) == 3)
        await console.press("enter")
        await reaches_jobs(console, f"state:running worker:{dead}")

    run(scenario, screen="workers", size=(120, 34))


def test_the_pane_follows_the_cursor_and_opens_a_job() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("down")
        node = console.table("#workers").keys[1]
        held = {str(job.id) for job in console.source.queue.by_id.values() if job.locked_by == node}
        await console.until(lambda: set(console.table("#held").keys) == held)
        await console.press("tab", "enter")
        await console.reach("job")

    run(scenario, screen="workers")


# -- recurring tasks -------------------------------------------------------------------------------------------------


def test_a_recurring_task_that_missed_runs_comes_first_and_leads_to_its_jobs() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        assert console.table().keys[0] == "nightly_cleanup"
        assert "▲ missed" in console.text
        assert "every day at 02:30 UTC" in console.text
        await console.press("enter")
        await reaches_jobs(console, "task:cleanup")

    run(scenario, screen="cron")


def test_without_a_crontab_nothing_is_due() -> None:
    class Without(QueueSource):
        def crontabs(self) -> Any:
            return replace(super().crontabs(), items=None)

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.shows("--crontab FILE shows")
        assert "▲ missed" not in console.text

    run(scenario, source=Without(), screen="cron")


def test_a_recurring_task_shows_its_time_zone() -> None:
    class Zoned(QueueSource):
        def crontabs(self) -> Any:
            item = cron_item("30 2 * * *", "cleanup", id="nightly_cleanup", tz="Asia/Tokyo")
            return replace(super().crontabs(), items=(item,))

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.shows("every day at 02:30 Asia/Tokyo")

    run(scenario, source=Zoned(), screen="cron")


# -- what workers hold -----------------------------------------------------------------------------------------------


class ExactCount(QueueSource):
    """What workers hold was counted some time ago."""

    def __init__(self, ago: timedelta) -> None:
        super().__init__()
        self._ago = ago

    def snapshot(self) -> QueueSnapshot:
        return structs.replace(super().snapshot(), locks_age=self._ago)


def test_an_old_count_of_what_workers_hold_says_its_age() -> None:
    async def scenario(console: Console) -> None:
        await console.shows("counted 9.0s ago")
        console.app.visit("overview")
        await console.reach("overview")
        await console.shows("9.0s ago")

    run(scenario, source=ExactCount(timedelta(seconds=9)), screen="workers", size=(160, 45))


def test_a_fresh_count_of_what_workers_hold_does_not() -> None:
    async def scenario(console: Console) -> None:
        for screen, words in (("workers", "dead after"), ("overview", "stale")):
            console.app.visit(screen)
            await console.reach(screen)
            await console.shows(words)
            assert "1.5s ago" not in console.text

    run(scenario, source=ExactCount(timedelta(seconds=1.5)), screen="workers", size=(160, 45))


# -- locks -----------------------------------------------------------------------------------------------------------


def test_the_fix_of_a_finding_is_shown_and_copied() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.shows("gw unlock gw-app-3")
        await console.press("y")
        assert console.app.clipboard.startswith("gw unlock gw-app-3")

    run(scenario, screen="locks")


def test_a_session_that_waits_says_for_what_and_for_whom() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("tab")
        await console.shows("pg_terminate_backend(2877)")
        await console.press("down")
        await console.shows("RowExclusiveLock on _private_jobs, by 2877")
        assert "pg_terminate_backend(3021)" in console.text

    run(scenario, screen="locks", size=(120, 34))


def test_only_an_old_transaction_is_listed_as_one() -> None:
    class Claiming(QueueSource):
        seconds = 59

        def blockages(self) -> LockWaits:
            (session,) = super().blockages().oldest_transactions
            age = timedelta(seconds=self.seconds)
            return LockWaits(oldest_transactions=(structs.replace(session, transaction_age=age),), is_all=True)

    source = Claiming()

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.shows("No lock waits")
        source.seconds = 61
        await console.refresh()
        await console.shows("old transaction")

    run(scenario, source=source, screen="locks", size=(120, 34))


# -- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_every_screen_fits_every_size() -> None:
    async def scenario(console: Console) -> None:
        for size in ((60, 20), (80, 24), (160, 45)):
            await console.pilot.resize_terminal(*size)
            for key in "1234567":
                await console.press(key)
                await console.rows()
                await console.until(lambda size=size: len(console.text.splitlines()) == size[1])
                lines = console.text.splitlines()
                assert max(map(len, lines)) <= size[0]
                assert "LIVE" in lines[1]
                assert "? Help" in lines[-1]
                assert key != "1" or "q Quit" in lines[-1]

    run(scenario)


async def failed(console: Console, error: Exception, kind: str) -> None:
    """Let the query of the screen in front fail; an answer that was under way may take the failure off again."""

    def is_shown() -> bool:
        screen: Any = console.app.screen
        screen.show_failure(*classify_error(error))
        return f"{kind}: {error}" in " ".join(console.text.replace("│", " ").split())

    await console.until(is_shown)


@pytest.mark.once
def test_a_failure_is_shown_on_every_screen_and_goes_when_it_is_over() -> None:
    async def scenario(console: Console) -> None:
        for key in "23456":
            await console.press(key)
            await console.rows()
            await failed(console, StatementTimeoutError("it took too long"), "slow")
            await console.refresh()
            await console.until(lambda: "slow:" not in console.text)

    run(scenario)


@pytest.mark.once
@pytest.mark.parametrize("key", [*"23456890", "enter"])
def test_a_missing_right_is_shown_with_its_remedy_on_every_screen(key: str) -> None:
    error = PermissionDeniedError(
        "the database role lacks a right: permission denied for table _private_gw_history; "
        "the queue's owner can give it with gw grant"
    )

    async def scenario(console: Console) -> None:
        await console.press("2" if key == "enter" else key)
        await console.rows()
        if key == "enter":
            await console.press(key)
            await console.until(lambda: console.app.screen.SCREEN_ID == "job")  # type: ignore[attr-defined]
        await failed(console, error, "forbidden")

    run(scenario)


HOSTILE = "[red]x[/red][/]A\x1b]52;c;ZXZpbA==\x1b\\B\x9b31m\u202eevil\u2066\x07\x7f"


class Hostile(QueueSource):
    """A queue in which every text was written by an enemy."""

    def __init__(self) -> None:
        super().__init__(jobs=0)
        self.queue.run("delete from _private_gw_workers")
        self.queue.run("update _private_known_crontabs set identifier = %s where identifier = 'retired_task'", HOSTILE)
        self.queue.run("insert into _private_gw_workers values (%s, now(), now(), %s, 7, %s)", *(HOSTILE,) * 3)
        texts = {"queue": HOSTILE, "key": HOSTILE, "last_error": f"{HOSTILE}\n{HOSTILE}"}
        payload = json.dumps({HOSTILE: HOSTILE})
        self.queue.insert(HOSTILE, payload=payload, attempts=2, flags='{"\\u001b[31m\\u202e": true}', **texts)
        held = self.queue.insert(HOSTILE, payload=payload)
        self.queue.change(held, locked_by=HOSTILE, locked_at=self.clock())
        self.queue.change_queue(HOSTILE, locked_by=HOSTILE, locked_at=self.clock())

    def crontabs(self) -> Any:
        item = cron_item("* * * * *", HOSTILE, id="x", payload={"a": HOSTILE})
        return replace(super().crontabs(), items=(item,))

    def findings(self) -> tuple[Finding, ...]:
        return (Finding(HOSTILE, CheckStatus.ERROR, HOSTILE, HOSTILE),)

    def blockages(self) -> LockWaits:
        session = BackendSession(
            pid=1,
            user=HOSTILE,
            application=HOSTILE,
            state=HOSTILE,
            in_state_for=timedelta(),
            transaction_age=None,
            statement=HOSTILE,
        )
        return LockWaits(
            blocked=(LockWait(session=session, waits_for=HOSTILE, blocked_by=(2,)),),
            blockers=(session,),
            advisory=(AdvisoryLock(name=HOSTILE, granted=False, session=session),),
            prepared_transactions=((HOSTILE, timedelta()),),
        )


def harmless(text: str) -> bool:
    return not any(re.search(UNSAFE_TEXT, line) for line in text.splitlines())


@pytest.mark.once
def test_hostile_data_steers_nothing_and_is_no_markup() -> None:
    async def scenario(console: Console) -> None:
        for key in "23456":
            await console.press(key)
            await console.rows()
            assert harmless(console.text)
            assert "[red]x[/red]" in console.text
            await console.press("tab")
            assert harmless(console.text)
        await console.press("2")
        await console.rows()
        console.table().focus()
        await console.press("enter")
        screen = await console.reach("job")
        await console.until(lambda: screen.report is not None)
        await console.shows("[red]x[/red]")
        assert harmless(console.text)

    source = Hostile()
    run(scenario, source=source, size=(160, 45))


def test_names_of_any_kind_lead_to_their_jobs() -> None:
    source = QueueSource(jobs=0)
    odd = 'a "quoted" \\ name\twith: everything'
    source.queue.insert("t", queue=odd)
    source.queue.change_queue(odd, locked_by="w", locked_at=source.clock())

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("enter")
        screen = await console.reach("jobs")
        assert search_of(screen).wanted == Selection.of(queue=odd)
        await console.until(lambda: console.table().keys)

    run(scenario, source=source, screen="queues")


def test_what_was_noted_before_the_first_answer_has_the_time_of_the_database() -> None:
    async def scenario(console: Console) -> None:
        first, *_ = console.state.journal
        assert "console started" in first.words
        assert abs(first.at - console.source.queue.now) < timedelta(minutes=2)

    source = QueueSource()
    assert abs(source.queue.now - datetime.now(UTC)) > timedelta(days=1), "the queue has a clock of its own"
    run(scenario, source=source, screen="events")
