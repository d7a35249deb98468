"""While another session locks the tables of the queue, live workers stay live, and no job starts twice."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queue_fixture import RunningWorker, RunRecord, ms
from support.recovery_fixture import RecoveryFixture
from support.waiting import wait_until

from gw_core import Events, WorkerSettings
from gw_core.events import JobCompleted
from gw_core.front_ends import Database, HeartbeatFailed, HeartbeatRestored, LockTimeoutError, MaintenanceFailed
from gw_core.maintenance.heartbeat import Heartbeat, heartbeat_session
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road import worker_store

THRESHOLD = 2.0
LOCK_JOBS = "lock table _private_jobs in access exclusive mode"


def oldest_heartbeat(ward: RecoveryFixture) -> Any:
    return ward.run("select min(last_heartbeat_at) as at from _private_gw_workers where id <> 'dead'")[0]["at"]


@pytest.mark.slow
def test_no_job_starts_twice_when_the_jobs_table_is_locked_for_longer_than_the_threshold(
    ward: RecoveryFixture, tmp_path: Path
) -> None:
    arguments = ("--recover", "--threshold", str(THRESHOLD), "--gate", str(tmp_path / "gate"))
    jobs = [ward.add("wait", queue_name=f"q{number}") for number in range(4)]
    with ward.process(*arguments) as one, ward.process(*arguments) as other:
        wait_until(lambda: len(ward.held()) == 8, what="both workers to hold jobs")
        wait_until(lambda: len(ward.workers()) == 2, what="both workers to be known")
        with ward.locking(LOCK_JOBS):
            # Sweepers read the jobs table when they find a dead worker, and wait for it.
            ward.dead_worker()
            locked_at = ward.run("select clock_timestamp() as at")[0]["at"]
            wait_until(
                lambda: oldest_heartbeat(ward) > locked_at + timedelta(seconds=2 * THRESHOLD),
                what="heartbeats while the table is locked",
            )
        wait_until(lambda: "dead" not in ward.workers(), what="a sweep after the lock")
        assert sorted(row["attempts"] for row in ward.jobs()) == [1, 1, 1, 1]
        (tmp_path / "gate").touch()
        wait_until(lambda: not ward.jobs(), what="the jobs to be done")
        one.kill()
        other.kill()

    said = [*one.output, *other.output]
    assert sorted(line.split()[1] for line in said if line.startswith("began")) == sorted(str(each) for each in jobs)
    assert not [line for line in said if "dead" in line and "Recovered 0 jobs" not in line]


def test_a_sweep_does_not_wait_long_for_a_locked_table(ward: RecoveryFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    ward.locked_by(ward.dead_worker())

    with monkeypatch.context() as patch:
        patch.setattr(worker_store, "LOCK_TIMEOUT", ms(50))
        with ward.locking(LOCK_JOBS), pytest.raises(LockTimeoutError):
            ward.sweep()

    assert ward.sweep().jobs == 1


def test_a_sweep_reads_heartbeats_after_it_may_change_jobs(
    ward: RecoveryFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = ward.locked_by(ward.dead_worker())
    lock_jobs_table = worker_store.WorkerStore.lock_jobs_table

    def lock_late(store: worker_store.WorkerStore) -> None:
        # While it waits for the table, the worker sends a heartbeat again.
        ward.run("update _private_gw_workers set last_heartbeat_at = clock_timestamp()")
        lock_jobs_table(store)

    monkeypatch.setattr(worker_store.WorkerStore, "lock_jobs_table", lock_late)

    assert ward.sweep().jobs == 0
    assert [row["id"] for row in ward.jobs()] == [job_id]
    assert ward.held() == ["dead"]


def test_a_heartbeat_gives_up_a_lock_on_its_own_table_and_tries_again(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord()}, heartbeat_interval=ms(50), sweep_threshold=ms(60_000)) as running:
        let_heartbeats_give_up_soon(ward, running)
        with ward.locking("lock table _private_gw_workers in access exclusive mode"):
            running.recorded.wait_for(HeartbeatFailed)
        running.recorded.wait_for(HeartbeatRestored)


@pytest.mark.parametrize("table", ["_private_gw_cancellations", "_private_gw_claim_rules", "migrations"])
def test_a_heartbeat_is_written_while_what_it_reads_is_locked(ward: RecoveryFixture, table: str) -> None:
    with ward.running({"work": RunRecord()}, heartbeat_interval=ms(50), sweep_threshold=ms(60_000)) as running:
        let_heartbeats_give_up_soon(ward, running)
        with ward.locking(f"lock table {table} in access exclusive mode"):
            running.recorded.wait_for(MaintenanceFailed)
            before = oldest_heartbeat(ward)
            wait_until(lambda: oldest_heartbeat(ward) > before, what="a heartbeat while the table is locked")

    assert running.recorded.of(HeartbeatFailed) == []


def test_a_worker_knows_when_its_own_heartbeats_came_too_late(ward: RecoveryFixture) -> None:
    settings = WorkerSettings(heartbeat_interval=ms(20), sweep_threshold=ms(80), sweep_interval=ms(20))
    session = heartbeat_session(settings.heartbeat_timeout)
    connection = SharedConnection(Database(ward.url), role="heartbeat", settings=session)
    heartbeat = Heartbeat(worker_id="gw-1", connection=connection, events=Events(), settings=settings, metadata=dict)
    assert heartbeat.held_up_at() is None
    heartbeat.write()
    written_at = heartbeat.last_written_at
    assert written_at is not None

    assert wait_until(heartbeat.held_up_at) > written_at + 0.04  # one is overdue: it is held up now
    heartbeat.write()
    late_at = heartbeat.held_up_at()
    assert late_at is not None
    assert heartbeat.last_written_at is not None
    assert written_at < heartbeat.last_written_at <= late_at

    connection.close()


def test_a_worker_that_may_be_presumed_dead_starts_no_job_until_its_next_heartbeat(ward: RecoveryFixture) -> None:
    began: list[float] = []
    settings = {"heartbeat_interval": ms(50), "sweep_threshold": ms(300), "poll_interval": ms(20)}
    with ward.running({"work": lambda payload: began.append(time.monotonic())}, **settings) as running:
        wait_until(ward.workers, what="the first heartbeat")
        with ward.locking("lock table _private_gw_workers in access exclusive mode"):
            wait_until(running.heartbeat.held_up_at, what="the heartbeats to be late")  # type: ignore[union-attr]
            ward.add("work")
            time.sleep(0.5)  # no event reports that nothing happens: ten times as long as a job takes to start
            unlocked_at = time.monotonic()
        running.recorded.wait_for(JobCompleted)

    assert began[0] > unlocked_at


def let_heartbeats_give_up_soon(ward: RecoveryFixture, running: RunningWorker) -> None:
    running.runner._connections.heartbeat._settings = heartbeat_session(ms(200))
    kill_heartbeat_connections(ward)


def kill_heartbeat_connections(ward: RecoveryFixture) -> None:
    with psycopg.connect(ward.url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'gw:heartbeat'"
        )
