"""One sweep: what it recovers from dead workers, what it leaves, and what it logs."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.recovery_fixture import Deciding, RecoveryFixture, minutes, seconds
from support.rust_schema import WORKERS
from support.time_range import MeasuredBlock

from gw_core import Client, Event, Events, Plugin, RecoverySettings
from gw_core.events import JobRecovered, WorkersRecovered
from gw_core.front_ends import LockTimeoutError, RecoveryHookFailed
from gw_core.recovery import FailWithBackoff, Reschedule, SkipRecovery


def test_a_dead_workers_jobs_go_back_without_counting_their_attempt_after_a_delay(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")

    with MeasuredBlock(ward.now) as block:
        report = ward.sweep()

    job = ward.job(job_id)
    assert (report.jobs, [worker.id for worker in report.workers]) == (1, ["dead"])
    assert (job["attempts"], job["locked_by"], job["locked_at"]) == (0, None, None)
    assert job["last_error"] == "Job recovered after worker interruption"
    assert job["run_at"] in block.later(30)
    assert ward.workers() == []


def test_the_delay_keeps_its_milliseconds_and_never_makes_a_job_run_earlier(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    soon = ward.locked_by("dead")
    later = ward.locked_by("dead", run_at=timedelta(hours=1))
    before = ward.job(later)["run_at"]

    with MeasuredBlock(ward.now) as block:
        ward.sweep(recovery_delay=timedelta(milliseconds=60_750))

    assert ward.job(soon)["run_at"] in block.later(60.75)
    assert ward.job(later)["run_at"] == before


def test_a_job_of_a_dead_worker_has_started_so_it_does_not_expire(ward: RecoveryFixture) -> None:
    ran: list[Any] = []
    ward.dead_worker()
    ward.locked_by("dead", task="work", payload={"n": 1}, expires_at=datetime(2026, 1, 1, tzinfo=UTC))

    ward.sweep(recovery_delay=timedelta(0))
    ward.run_once({"work": ran.append})

    assert (ran, ward.jobs()) == ([{"n": 1}], [])


def test_a_living_workers_jobs_are_left_alone(ward: RecoveryFixture) -> None:
    ward.a_worker("alive", inactive_for=minutes(4))
    ward.locked_by("alive", queue_name="q", locked_for=minutes(300))

    assert ward.sweep().workers == ()
    assert ward.held() == ["alive", "alive"]
    assert ward.workers() == ["alive"]


def test_a_worker_that_claimed_just_now_lives_whatever_its_heartbeat_says(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead", locked_for=minutes(60))
    ward.locked_by("dead", locked_for=seconds(1))

    assert ward.sweep().jobs == 0


def test_queues_of_a_dead_worker_are_freed_also_one_whose_job_is_gone(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead", queue_name="kept")
    gone = ward.locked_by("dead", queue_name="gone")
    ward.run("delete from _private_jobs where id = %s", gone)

    report = ward.sweep()

    assert (report.jobs, report.queues) == (1, 2)
    assert ward.held() == []


def test_a_dead_worker_that_holds_nothing_is_forgotten(ward: RecoveryFixture) -> None:
    ward.dead_worker()

    assert (ward.sweep().jobs, ward.workers()) == (0, [])


def test_a_worker_with_a_resilient_job_may_stay_without_heartbeats_for_three_times_as_long(
    ward: RecoveryFixture,
) -> None:
    flags = {"flags": ["infrastructure_resilient"]}
    for worker, inactivity in (("patient", minutes(14)), ("gone", minutes(16))):
        ward.a_worker(worker, inactive_for=inactivity)
        ward.locked_by(worker, locked_for=minutes(30), **flags)
        ward.locked_by(worker, locked_for=minutes(30))

    report = ward.sweep()

    assert [worker.id for worker in report.workers] == ["gone"]
    assert ward.held() == ["patient", "patient"]


@pytest.mark.parametrize(
    ("flags", "dead"),
    [
        pytest.param('{"mine": true}', False, id="set"),
        pytest.param('{"mine": "yes"}', False, id="set to a text"),
        pytest.param('{"mine": false}', True, id="false"),
        pytest.param('{"mine": null}', True, id="null"),
        pytest.param('{"mine": 0}', True, id="zero"),
        pytest.param('{"mine": ""}', True, id="an empty text"),
        pytest.param('{"other": true}', True, id="another flag"),
        pytest.param('["mine"]', True, id="no object"),
    ],
)
def test_a_resilient_flag_must_be_set_to_something(ward: RecoveryFixture, flags: str, dead: bool) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")
    ward.run("update _private_jobs set flags = %s where id = %s", flags, job_id)

    assert ward.sweep(resilient_flags=["mine"]).jobs == int(dead)


# -- without a heartbeat ----------------------------------------------------------------------------------------------


def test_a_worker_without_a_heartbeat_is_left_alone_for_four_hours(ward: RecoveryFixture) -> None:
    ward.locked_by("pool-node", locked_for=minutes(239), queue_name="q")
    ward.locked_by("pool-gone", locked_for=minutes(241))

    report = ward.sweep()

    assert [worker.id for worker in report.workers] == ["pool-gone"]
    assert ward.held() == ["pool-node", "pool-node"]


def test_one_recent_lock_shows_that_a_worker_without_a_heartbeat_lives(ward: RecoveryFixture) -> None:
    ward.locked_by("pool-node", locked_for=minutes(60))
    ward.locked_by("pool-node", locked_for=minutes(1))

    assert ward.sweep(orphans_after=minutes(10)).jobs == 0
    assert ward.sweep(orphans_after=seconds(30)).jobs == 2


def test_a_queue_locked_by_an_unknown_worker_is_released(ward: RecoveryFixture) -> None:
    job_id = ward.locked_by("pool-gone", queue_name="q", locked_for=minutes(300))
    ward.run("update _private_jobs set locked_by = null, locked_at = null where id = %s", job_id)

    assert (ward.sweep().queues, ward.held()) == (1, [])


# -- jobs that must not come back -------------------------------------------------------------------------------------


def test_a_job_removed_while_it_ran_is_unlocked_and_stays_retired(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", job_key="k")
    ward.client.remove("k")

    ward.sweep()

    job = ward.job(job_id)
    assert (job["attempts"], job["max_attempts"], job["locked_by"]) == (25, 25, None)


def test_a_job_superseded_while_it_ran_stays_retired_also_after_its_lock_was_renewed(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    old = ward.locked_by("dead", job_key="k", locked_for=minutes(20))
    new = ward.add(job_key="k")
    ward.run("update _private_jobs set locked_at = now() - interval '6 minutes' where id = %s", old)
    ward.run("update _private_jobs set updated_at = now() - interval '10 minutes' where id = %s", old)

    ward.sweep()

    assert new != old
    assert ward.job(old)["attempts"] == ward.job(old)["max_attempts"]
    assert ward.job(new)["attempts"] == 0


def test_a_job_removed_by_a_transaction_older_than_its_claim_stays_retired(ward: RecoveryFixture) -> None:
    job_id = ward.add(job_key="k")
    ward.run("update _private_jobs set created_at = now() - interval '1 day', updated_at = now() - interval '1 day'")
    ward.dead_worker()
    with psycopg.connect(ward.url) as slow:
        slow.execute("select now()")
        ward.run("update _private_jobs set attempts = 1, locked_by = 'dead', locked_at = now() where id = %s", job_id)
        slow.execute("select graphile_worker.remove_job('k')")
    (row,) = ward.run("select updated_at < locked_at as is_older from _private_jobs")

    ward.sweep(sweep_threshold=seconds(0))

    assert row["is_older"]
    assert ward.job(job_id)["attempts"] == 25


def test_the_last_attempt_of_a_job_without_a_key_is_not_counted_either(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", max_attempts=1)

    ward.sweep()

    assert ward.job(job_id)["attempts"] == 0


# -- a sweep beside others --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_stranger", [False, True])
def test_two_concurrent_sweeps_recover_each_job_once(ward: RecoveryFixture, has_stranger: bool) -> None:
    ward.dead_worker()
    for _ in range(50):
        ward.locked_by("dead")
    start = threading.Barrier(2)
    reports: list[Any] = []

    def sweep() -> None:
        start.wait(60)
        reports.append(ward.sweep())

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    with a_stranger(ward) if has_stranger else nullcontext():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert sum(report.jobs for report in reports) == 50
    assert all(job["attempts"] == 0 for job in ward.jobs())
    if has_stranger:
        # Each of the two may have seen jobs of the other as still locked, and then both left the heartbeat.
        ward.sweep()
    assert ward.workers() == []


@contextmanager
def a_stranger(ward: RecoveryFixture) -> Iterator[None]:
    """Let a role that may only connect hold the lock of sweeps: sweeps then run side by side."""
    role = f"stranger_{uuid4().hex[:10]}"
    ward.run(f"create role {role} login")
    try:
        with psycopg.connect(make_conninfo(ward.url, user=role)) as session:
            session.execute("select pg_advisory_lock(1196905043, 1398228304)")
            yield
    finally:
        ward.run(f"drop role {role}")


def test_a_sweep_beside_one_of_the_rust_port_names_its_session_and_does_nothing(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead")

    with ward.locking("select pg_advisory_xact_lock(1196905043, 1398228304)"):
        holder = ward.value("select pid from pg_locks where locktype = 'advisory'")
        with pytest.raises(LockTimeoutError, match=f"another session is sweeping: process {holder} of role "):
            ward.sweep()

    assert ward.held() == ["dead"]
    assert ward.sweep().jobs == 1


def test_a_job_its_worker_settles_after_all_is_left_to_the_next_sweep(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    settled, other = ward.locked_by("dead"), ward.locked_by("dead")

    with ward.locking("select from _private_jobs where id = %s for update", settled):
        report = ward.sweep()

    assert report.jobs == 1
    assert ward.job(other)["locked_by"] is None
    assert ward.workers() == ["dead"]
    assert ward.sweep().jobs == 1
    assert ward.workers() == []


def test_a_worker_the_rust_port_knows_is_judged_by_its_heartbeat_there(own_ward: RecoveryFixture) -> None:
    own_ward.run(WORKERS)
    own_ward.a_worker("rust-dead", inactive_for=minutes(6), table="_private_workers")
    own_ward.a_worker("rust-alive", inactive_for=minutes(4), table="_private_workers")
    own_ward.locked_by("rust-dead")
    own_ward.locked_by("rust-alive", locked_for=minutes(300))

    report = own_ward.sweep()

    assert [worker.id for worker in report.workers] == ["rust-dead"]
    assert own_ward.held() == ["rust-alive"]
    assert [row["id"] for row in own_ward.run("select id from _private_workers")] == ["rust-alive"]


# -- dry run ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_a_sweep_then_does_and_changes_nothing(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    for number in range(3):
        ward.locked_by("dead", queue_name=f"q{number % 2}")
    ward.locked_by("pool-node")
    ward.a_worker("alive")
    before = ward.jobs()

    reported = ward.sweep(dry_run=True)

    assert (ward.jobs(), ward.workers()) == (before, ["alive", "dead"])
    done = ward.sweep()
    assert (reported.dry_run, reported.jobs, reported.queues) == (True, done.jobs, done.queues) == (True, 3, 2)
    assert [worker.id for worker in reported.workers] == [worker.id for worker in done.workers]


# -- hooks and events -------------------------------------------------------------------------------------------------


def test_a_hook_receives_the_job_the_dead_worker_and_the_reason(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")
    hook = Deciding(None)

    ward.sweep(hook)

    assert hook.asked == [(job_id, "dead", "WorkerCrashed", None)]
    assert ward.job(job_id)["attempts"] == 0


def test_a_hook_may_reschedule_a_job(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")
    timestamp = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)

    ward.sweep(Deciding(Reschedule(timestamp, attempts=3)))

    job = ward.job(job_id)
    assert (job["run_at"], job["attempts"], job["locked_by"]) == (timestamp, 3, None)


def test_a_hook_cannot_bring_a_removed_job_back(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", job_key="k")
    ward.client.remove("k")

    ward.sweep(Deciding(Reschedule(datetime(2031, 1, 1, tzinfo=UTC), attempts=0)))

    assert ward.job(job_id)["attempts"] == 25


def test_a_hook_may_fail_the_attempt(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")

    with MeasuredBlock(ward.now) as block:
        ward.sweep(Deciding(FailWithBackoff()))

    job = ward.job(job_id)
    assert (job["attempts"], job["last_error"], job["locked_by"]) == (1, "WorkerCrashed", None)
    assert job["run_at"] in block.later(math.e)


def test_a_hook_may_leave_a_job_and_its_queue_locked_and_is_asked_again(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead", queue_name="q")

    report = ward.sweep(Deciding(SkipRecovery()))

    assert (report.jobs, report.queues, report.skipped) == (0, 0, 1)
    assert ward.held() == ["dead", "dead"]
    assert ward.workers() == ["dead"]
    assert ward.sweep().jobs == 1


def test_a_hook_that_raises_is_reported_and_its_job_goes_the_usual_way(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead")
    reported: list[RecoveryHookFailed] = []
    events = Events()
    events.on(RecoveryHookFailed, reported.append)

    with Client(ward.url, events=events, plugins=[Deciding(ValueError("broken"))]) as client:
        client.workers.sweep()

    assert [(event.job.id, str(event.error)) for event in reported] == [(job_id, "broken")]
    assert ward.job(job_id)["attempts"] == 0


def test_hooks_hold_no_locks_while_they_think(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", queue_name="q")

    class Observer(Plugin):
        def on_recovery(self, job: Any, dead_worker: str, reason: str, recovered_by: str | None) -> None:
            ward.run("set lock_timeout = '1s'")
            ward.run("select from _private_jobs where id = %s for update", job_id)
            ward.run("select from _private_job_queues for update")
            assert ward.run("select pg_try_advisory_xact_lock(1196905043, 1398228304) as free")[0]["free"]

    assert ward.sweep(Observer()).jobs == 1


def test_a_worker_that_speaks_while_hooks_think_keeps_its_jobs(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead")

    class Waking(Plugin):
        def on_recovery(self, job: Any, dead_worker: str, reason: str, recovered_by: str | None) -> None:
            ward.run("update _private_gw_workers set last_heartbeat_at = now()")

    report = ward.sweep(Waking())

    assert (report.jobs, report.workers, ward.held()) == (0, (), ["dead"])


def test_a_sweep_reports_every_job_and_the_total(ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", queue_name="q")
    reported: list[Event] = []
    events = Events()
    events.on("*", reported.append)

    with Client(ward.url, events=events) as client:
        client.workers.sweep()

    (interrupted,) = [event for event in reported if isinstance(event, JobRecovered)]
    assert (interrupted.job.id, interrupted.worker_id, interrupted.reason) == (job_id, "dead", "WorkerCrashed")
    assert interrupted.job.attempts == 1
    assert reported[-1] == WorkersRecovered(worker_id=None, workers=("dead",), jobs=1, queues=1)


# -- looking ----------------------------------------------------------------------------------------------------------


def test_workers_are_listed_with_what_they_hold_and_whether_they_count_as_dead(ward: RecoveryFixture) -> None:
    ward.a_worker("alive")
    began = ward.now()
    ward.dead_worker()
    ward.locked_by("dead", queue_name="q")
    ward.locked_by("pool-node", locked_for=minutes(1))

    found = {worker.id: worker for worker in ward.client.workers.list()}
    passed = ward.now() - began

    assert {name: (each.has_heartbeat, each.is_stale, each.jobs, each.queues) for name, each in found.items()} == {
        "alive": (True, False, 0, 0),
        "dead": (True, True, 1, 1),
        "pool-node": (False, False, 1, 0),
    }
    assert minutes(10) <= found["dead"].inactive_for <= minutes(10) + passed
    assert ward.client.workers.list(RecoverySettings(orphans_after=seconds(30)))[-1].is_stale


def test_a_schema_of_any_name_is_swept(empty_database_url: str) -> None:
    schema = 'odd "schema" 100%'
    with Client(empty_database_url, schema=schema) as client:
        client.migrate()
        client.add("work")
        with psycopg.connect(empty_database_url, autocommit=True) as hands:
            hands.execute(
                """update "odd ""schema"" 100%"._private_jobs"""
                """ set locked_by = 'x', locked_at = now() - interval '5 hours'"""
            )

        assert client.workers.sweep().jobs == 1
        assert client.workers.list() == []
