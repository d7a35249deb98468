"""No database failure ends a worker: it goes on, keeps results, and reports it once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import NEVER, QueueFixture, RunRecord, a_registry, in_time, ms
from support.waiting import wait_until

from gw_core import GiveUp, RetryAfter, Runner
from gw_core.errors import DatabaseUnavailableError
from gw_core.events import (
    JobCompleted,
    JobLockLost,
    JobSucceeded,
    PoolConnectionLost,
    PoolConnectionRestored,
    PoolStopping,
)
from gw_core.front_ends import ClaimEmpty, DeadlockError, PoolListening

pytestmark = pytest.mark.direct(
    "it ends sessions of the server by name; tests/failures/test_poolers.py does so behind it"
)


# -- single connections -----------------------------------------------------------------------------------------------


def test_a_killed_claim_connection_is_replaced_and_listens_again(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        assert site.kill_connections("gw:claim") == 1
        running.recorded.wait_for(PoolListening, count=2)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)
        running.recorded.wait_for(PoolConnectionRestored)

    assert len(running.recorded.of(PoolConnectionLost)) == len(running.recorded.of(PoolConnectionRestored)) == 1
    assert len([each for each in running.log.of("warning") if "claim jobs" in each]) == 1


def test_the_claim_connection_is_replaced_after_one_delay(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[int] = []

    def reconnect_delay(tries: int) -> timedelta:
        delays.append(tries)
        return timedelta(seconds=0.3)

    monkeypatch.setattr("gw_core.worker.outage.reconnect_delay", reconnect_delay)
    at: dict[type, float] = {}
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(ClaimEmpty)  # it rests, and notices the loss as it waits for notifications
        for kind in (PoolConnectionLost, PoolConnectionRestored):
            running.runner.events.on(kind, lambda event: at.setdefault(type(event), time.monotonic()))
        site.kill_connections("gw:claim")
        running.recorded.wait_for(PoolConnectionRestored)

    assert delays == [0]
    assert at[PoolConnectionRestored] - at[PoolConnectionLost] >= 0.3


def test_a_job_added_while_the_claim_connection_was_away_is_found_without_a_poll(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        running.runner.events.on(PoolConnectionLost, lambda event: site.fill(1))
        site.kill_connections("gw:claim")
        running.recorded.wait_for(JobCompleted)


def test_a_killed_settle_connection_loses_no_result(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running({"quick": RunRecord(), "work": gate}) as running:
        site.fill(1, task="quick")
        running.recorded.wait_for(JobCompleted)
        site.fill(5)
        gate.wait_for(5)
        assert site.kill_connections("gw:settle") == 1
        gate.open()
        running.recorded.wait_for(JobCompleted, count=6)
        running.recorded.wait_for(PoolConnectionRestored)

    assert site.jobs() == []
    assert running.recorded.of(JobLockLost) == []
    assert len(running.recorded.of(PoolConnectionLost)) == 1


def test_a_killed_maintenance_connection_is_replaced(site: QueueFixture) -> None:
    gate = site.gate()
    site.fill(1)
    with site.running({"work": gate}, lock_renewal_interval=ms(30)) as running:
        gate.wait_for(1)
        wait_until(lambda: site.connections("gw:maintenance"))
        # Whichever service uses it next gets the error, and some report only the second failure in a row.
        site.kill_connections("gw:maintenance")
        (before,) = site.run("update _private_jobs set locked_at = locked_at - interval '1 hour' returning locked_at")
        wait_until(lambda: site.run("select locked_at from _private_jobs")[0]["locked_at"] > before["locked_at"])
        gate.open()
        running.recorded.wait_for(JobCompleted)


def test_a_killed_task_connection_fails_that_attempt_alone(site: QueueFixture) -> None:
    def work(payload: dict[str, int], context: Any) -> None:
        with context.connection() as connection:
            if payload["n"] == 1:
                connection.execute("select pg_terminate_backend(pg_backend_pid())")
            connection.execute("select 1")

    site.fill(1)
    site.let_retries_wait()
    result = site.run_once({"work": work})
    assert (result.completed, result.failed) == (0, 1)
    site.add(payload={"n": 2})
    assert site.run_once({"work": work}).completed == 1
    assert site.jobs()[0]["last_error"].startswith("AdminShutdown: ")


# -- answers that never arrive ----------------------------------------------------------------------------------------


def test_jobs_of_a_claim_whose_answer_was_lost_are_not_held_for_ever(site: QueueFixture, proxy: DatabaseProxy) -> None:
    swallowed: list[threading.Event] = []
    checks: list[None] = []

    def flags() -> None:
        checks.append(None)  # the first claims prepare their statement in a round trip of its own
        if len(checks) == 3:
            site.fill(3, queue="case n when 1 then 'q' end")
            swallowed.append(proxy.mute("gw:claim"))

    site.add(run_at=timedelta(hours=1))  # while a job waits, an idle worker claims at each poll
    options: dict[str, Any] = {"listen": False, "poll_interval": ms(20), "forbidden_flags": flags}
    with site.running({"work": RunRecord()}, url=proxy.url, **options) as running:
        running.recorded.wait_for(JobCompleted, count=3)

    assert swallowed[0].is_set()
    assert {event.job.attempts for event in running.recorded.of(JobCompleted)} == {1}
    assert site.held() == []


def test_a_result_whose_confirmation_was_lost_is_neither_lost_nor_counted_twice(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    swallowed: list[threading.Event] = []

    def deafen(event: JobSucceeded) -> None:
        if event.job.task == "work":
            swallowed.append(proxy.mute("gw:settle"))

    with site.running({"quick": RunRecord(), "work": RunRecord()}, url=proxy.url) as running:
        site.fill(1, task="quick")
        running.recorded.wait_for(JobCompleted)
        running.runner.events.on(JobSucceeded, deafen)
        site.fill(1)
        running.recorded.wait_for(JobCompleted, count=2)
        result = running.stop()

    assert swallowed[0].is_set()
    assert result.completed == 2
    assert running.recorded.of(JobLockLost) == []


def test_a_queue_freed_by_a_result_in_doubt_is_not_freed_again_under_its_next_job(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    gate = site.gate()
    swallowed: list[threading.Event] = []

    def deafen(event: JobSucceeded) -> None:
        if event.job.task == "quick" and event.job.queue_name == "q":
            site.add("work", {"n": 2}, queue_name="q")
            swallowed.append(proxy.mute("gw:settle"))
            # The next claim must come before the result is sent again.
            running.settler.try_later = later  # type: ignore[union-attr, method-assign]

    def later(error: Any) -> Any:
        gate.wait_for(1)
        settler.try_later = try_later  # type: ignore[method-assign]
        return try_later(error)

    with site.running({"quick": RunRecord(), "work": gate}, url=proxy.url, poll_interval=ms(10)) as running:
        settler = running.settler  # type: ignore[union-attr]
        try_later = settler.try_later
        site.fill(1, task="quick")
        running.recorded.wait_for(JobCompleted)
        running.runner.events.on(JobSucceeded, deafen)
        site.add("quick", {"n": 1}, queue_name="q")
        running.recorded.wait_for(PoolConnectionRestored, lambda event: "outcomes" in event.operation)
        assert "q" in site.held()
        gate.open()
        running.recorded.wait_for(JobCompleted, count=3)
    assert site.held() == []


# -- an outage --------------------------------------------------------------------------------------------------------


def test_an_outage_is_survived_with_all_results_and_reported_once(site: QueueFixture, proxy: DatabaseProxy) -> None:
    gate = site.gate()
    site.fill(5)
    with site.running({"work": gate}, url=proxy.url) as running:
        gate.wait_for(5)
        proxy.cut()
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, count=2)
        wait_until(lambda: proxy.rejected >= 6, what="several failed tries")
        site.fill(3)
        proxy.restore()
        running.recorded.wait_for(JobCompleted, count=8)
        running.recorded.wait_for(PoolConnectionRestored, count=2)
        result = running.stop()

    assert result.completed == 8
    assert site.jobs() == []
    assert sorted(event.operation for event in running.recorded.of(PoolConnectionLost)) == [
        "claim jobs",
        "record outcomes",
    ]
    # Other services that were due in the outage report it too.
    reported = Counter(each.partition(":")[0] for each in running.log.of("warning") if each.startswith("Cannot"))
    assert reported == {"Cannot claim jobs": 1, "Cannot record outcomes": 1}


def test_results_wait_for_the_database_as_long_as_the_grace_period_lasts(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    gate = site.gate()
    site.fill(1)
    with site.running({"work": gate}, url=proxy.url) as running:
        gate.wait_for(1)
        proxy.cut()
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, lambda event: "outcomes" in event.operation)
        running.request_stop()
        running.recorded.wait_for(PoolStopping)
        before = proxy.rejected
        wait_until(lambda: proxy.rejected >= before + 3, what="several tries after the stop")
        proxy.restore()
        result = running.end()

    assert result.completed == 1
    assert site.jobs() == []


def test_a_database_that_is_away_at_the_start_is_an_error(site: QueueFixture, proxy: DatabaseProxy) -> None:
    proxy.cut()
    runner = Runner(proxy.url, tasks=a_registry({"work": RunRecord()}), migrate=False)

    with pytest.raises(DatabaseUnavailableError):
        in_time(runner.run_once)


def test_run_once_survives_an_outage(site: QueueFixture, proxy: DatabaseProxy) -> None:
    def work(payload: dict[str, int]) -> None:
        if payload["n"] == 3:
            proxy.cut()
            threading.Timer(0.1, proxy.restore).start()

    site.fill(6)
    result = site.run_once({"work": work}, url=proxy.url, concurrency=1)

    assert result.completed == 6
    assert site.held() == []


# -- statements that cannot be run ------------------------------------------------------------------------------------


def test_a_schema_dropped_and_made_again_while_running(own_site: QueueFixture) -> None:
    gate = own_site.gate()
    own_site.fill(1)
    with own_site.running({"work": gate}, poll_interval=ms(20)) as running:
        gate.wait_for(1)
        drop_schema(own_site)
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, count=2)
        own_site.client.migrate()
        running.recorded.wait_for(PoolConnectionRestored, count=2)
        own_site.fill(3)
        running.recorded.wait_for(JobCompleted, count=3)
        running.recorded.wait_for(JobLockLost)

    errors = [event.error for event in running.recorded.of(PoolConnectionLost)]
    assert [each for each in errors if "gw migrate" not in str(each) and not isinstance(each, DeadlockError)] == []


def drop_schema(site: QueueFixture) -> None:
    """Drop the schema; a claim that locks its tables in another order may cause a deadlock."""
    while True:
        try:
            site.run("drop schema graphile_worker cascade")
        except psycopg.errors.DeadlockDetected:
            continue
        return


def test_a_claim_that_is_rejected_repeatedly_is_reported_once(own_site: QueueFixture) -> None:
    own_site.run("create sequence refusals")  # unlike a row, it keeps its value when the claim is rolled back
    own_site.run(
        "create function refuse() returns trigger language plpgsql as $$begin if new.locked_by is not null then"
        " perform nextval('graphile_worker.refusals'); raise 'no claims today'; end if; return new; end$$"
    )
    own_site.run("create trigger refuse before update on _private_jobs for each row execute function refuse()")
    own_site.fill(1)
    with own_site.running({"work": RunRecord()}, poll_interval=ms(10)) as running:
        wait_until(lambda: own_site.run("select last_value from refusals")[0]["last_value"] >= 5, what="five refusals")
        assert len(running.recorded.of(PoolConnectionLost)) == 1
        assert running.recorded.of(PoolConnectionRestored) == []
        own_site.run("drop trigger refuse on _private_jobs")
        running.recorded.wait_for(JobCompleted)
        running.recorded.wait_for(PoolConnectionRestored)


@pytest.mark.parametrize("seconds", [1e12, 1e9], ids=["beyond every calendar", "in thirty years"])
def test_a_delay_that_no_calendar_holds_does_not_hold_up_other_results(site: QueueFixture, seconds: float) -> None:
    def work(payload: dict[str, int]) -> None:
        if payload["n"] == 1:
            raise RetryAfter(seconds)
        if payload["n"] == 2:
            raise GiveUp("a NUL \0 and a lone surrogate \ud800")

    site.fill(5)
    result = site.run_once({"work": work})

    assert (result.completed, result.failed) == (3, 2)
    assert [job["locked_by"] for job in site.jobs()] == [None, None]


def test_a_row_that_stays_locked_does_not_hold_up_other_results(site: QueueFixture) -> None:
    gate = site.gate()
    site.fill(5)
    with site.running({"work": gate}) as running:
        gate.wait_for(5)
        with psycopg.connect(site.url) as other:
            other.execute("select from graphile_worker._private_jobs where id = %s for update", (site.jobs()[2]["id"],))
            gate.open()
            running.recorded.wait_for(JobCompleted, count=4)
            site.fill(3)
            running.recorded.wait_for(JobCompleted, count=7)
        running.recorded.wait_for(JobCompleted, count=8)

    assert running.recorded.of(JobLockLost) == []


def test_a_worker_goes_on_while_someone_waits_to_lock_the_table_of_a_locked_row(site: QueueFixture) -> None:
    waiting = (
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'gw:settle'"
        " and wait_event_type = 'Lock'"
    )
    gate = site.gate()
    site.fill(2)
    with site.running({"work": gate}) as running, psycopg.connect(site.url) as other, psycopg.connect(site.url) as last:
        gate.wait_for(2)
        other.execute("select from graphile_worker._private_jobs where id = %s for update", (site.jobs()[0]["id"],))
        gate.open()
        running.recorded.wait_for(JobCompleted)
        # As `alter table` or `vacuum full` does: later sessions wait behind it.
        locking = threading.Thread(
            target=last.execute, args=("lock table graphile_worker._private_jobs in access exclusive mode",)
        )
        locking.start()
        wait_until(lambda: site.run(waiting), what="the settler to wait for the table")
        wait_until(lambda: not site.run(waiting), what="the settler to give up")
        other.rollback()
        locking.join()
        last.rollback()
        running.recorded.wait_for(JobCompleted, count=2)

    assert running.recorded.of(JobLockLost) == []


def test_results_that_cannot_be_written_do_not_pile_up_without_end(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Any:
        raise DatabaseUnavailableError("the database cannot be reached, for the settler alone")

    monkeypatch.setattr("gw_core.worker.claim_demand.MAX_UNSETTLED", 40)
    done = RunRecord()
    with site.running({"work": done}, poll_interval=ms(20), claim_limit=10, concurrency=2) as running:
        with monkeypatch.context() as outage:
            outage.setattr(running.settler, "_ready_store", away)
            site.fill(500)
            wait_until(lambda: len(done.entries) >= 40)
            running.join(0.3)
            assert len(done.entries) <= 40 + 10 + 2 * 10
        running.recorded.wait_for(JobCompleted, count=500)
