"""Real workers, killed and frozen: their jobs run elsewhere, and what they do too late changes nothing."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from support.queue_fixture import DEADLINE, RunRecord, ms
from support.recovery_fixture import RecoveryFixture, WorkerProcess
from support.waiting import wait_until

from gw_core.events import JobCompleted, JobLockLost, JobRecovered, JobStarted, WorkersRecovered
from gw_core.front_ends import MaintenanceFailed

# A worker whose own heartbeats come later than half of the threshold does not sweep.
QUICK: dict[str, Any] = {
    "recover": True,
    "heartbeat_interval": ms(100),
    "sweep_interval": ms(100),
    "sweep_threshold": ms(6_000),
    "recovery_delay": ms(0),
    "poll_interval": ms(50),
}


def rows(ward: RecoveryFixture) -> list[dict[str, Any]]:
    """The jobs without `locked_at`: a worker that paused for a while renews its locks."""
    return [{**job, "locked_at": job["locked_at"] is not None} for job in ward.jobs()]


def the_worker_of(process: WorkerProcess, job_id: int) -> str:
    return process.wait_to_say(f"began {job_id} as").rpartition(" ")[2]


def test_the_jobs_of_a_killed_worker_run_elsewhere(ward: RecoveryFixture) -> None:
    done = RunRecord()
    first, second = (ward.add("wait", {"n": number}, queue_name=f"q{number}") for number in (1, 2))
    with ward.process() as process:
        dead = the_worker_of(process, first)
        process.wait_to_say(f"began {second}")
        process.kill()
        assert ward.held() == [dead] * 4
        ward.let_time_pass(dead)
        with ward.running({"wait": done}, **QUICK) as running:
            running.recorded.wait_for(JobCompleted, count=2)
            (recovered,) = running.recorded.wait_for(WorkersRecovered)

    assert sorted(done.entries) == [1, 2]
    assert (recovered.workers, recovered.jobs, recovered.queues) == ((dead,), 2, 2)
    assert [event.job.attempts for event in running.recorded.of(JobStarted)] == [1, 1]
    assert len(running.recorded.of(JobRecovered)) == 2
    assert (ward.jobs(), ward.held(), ward.workers()) == ([], [], [])


def test_a_worker_that_cannot_sweep_names_the_session_that_does_and_recovers_afterwards(ward: RecoveryFixture) -> None:
    job_id = ward.add("wait", {"n": 1})
    with ward.process() as process:
        dead = the_worker_of(process, job_id)
        process.kill()
    ward.let_time_pass(dead)
    with ward.running({"wait": RunRecord()}, **QUICK) as running:
        with ward.locking("select pg_advisory_xact_lock(1196905043, 1398228304)"):
            # Other databases of the server have locks too.
            holder = ward.value(
                "select pid from pg_locks where locktype = 'advisory' and granted"
                " and database = (select oid from pg_database where datname = current_database())"
            )
            (failed,) = running.recorded.wait_for(MaintenanceFailed)
        running.recorded.wait_for(WorkersRecovered)
        running.recorded.wait_for(JobCompleted)

    assert (failed.service, f"another session is sweeping: process {holder} of" in str(failed.error)) == (
        "gw-sweep",
        True,
    )


def test_without_recovery_a_manual_sweep_returns_the_jobs_of_a_killed_worker(ward: RecoveryFixture) -> None:
    done = RunRecord()
    job_id = ward.add("wait", {"n": 1})
    with ward.process() as process:
        dead = the_worker_of(process, job_id)
        process.kill()
    ward.let_time_pass(dead)
    with ward.running({"wait": done}, **{**QUICK, "recover": False}) as running:
        assert ward.sweep(dry_run=True).jobs == 1
        assert ward.held() == [dead]

        assert ward.sweep(recovery_delay=ms(0)).jobs == 1
        running.recorded.wait_for(JobCompleted)

    assert done.entries == [1]


def test_what_a_frozen_worker_does_too_late_changes_nothing_and_is_reported(
    ward: RecoveryFixture, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    here = ward.gate()
    job_id = ward.add("wait", queue_name="q")
    with ward.process("--gate", str(gate)) as zombie:
        frozen = the_worker_of(zombie, job_id)
        zombie.freeze()
        ward.let_time_pass(frozen)
        with ward.running({"wait": here}, **QUICK) as running:
            here.wait_for(1)
            before = rows(ward)
            gate.touch()
            zombie.send(signal.SIGCONT)
            zombie.wait_to_say(f"lost {job_id}")

            assert rows(ward) == before
            assert ward.held() == [running.worker_id] * 2
            here.open()
            running.recorded.wait_for(JobCompleted)
        assert here.arrived == 1
        zombie.wait_to_say("presumed dead")

    assert (ward.jobs(), ward.held()) == ([], [])


def test_a_fleet_recovers_each_job_of_a_killed_worker_once(ward: RecoveryFixture) -> None:
    done = RunRecord()
    jobs = [ward.add("wait", {"n": number}) for number in range(2)]
    with ward.process() as process:
        dead, _ = (the_worker_of(process, job_id) for job_id in jobs)
        process.kill()
    ward.let_time_pass(dead)
    with ward.running({"wait": done}, **QUICK) as one, ward.running({"wait": done}, **QUICK) as other:
        wait_until(lambda: len(done.entries) == 2 and not ward.jobs(), what="both jobs to be done")

    recovered = [*one.recorded.of(WorkersRecovered), *other.recorded.of(WorkersRecovered)]
    assert sum(event.jobs for event in recovered) == 2
    assert sorted(done.entries) == [0, 1]


def test_a_worker_that_was_presumed_dead_notifies_only_tasks_that_have_lost_their_job(ward: RecoveryFixture) -> None:
    both, free = threading.Barrier(3), threading.Event()
    results: dict[int, bool] = {}

    def work(payload: Any, context: Any) -> None:
        both.wait(DEADLINE)
        results[context.job.id] = (
            context.should_stop.wait(DEADLINE)
            if payload["is_lost"]
            else free.wait(DEADLINE) and bool(context.should_stop)
        )

    lost, kept = ward.add("work", {"is_lost": True}), ward.add("work", {"is_lost": False})
    with ward.running({"work": work}, **QUICK) as running:
        both.wait(DEADLINE)
        ward.run("update _private_jobs set locked_by = 'another' where id = %s", lost)
        ward.run("delete from _private_gw_workers")
        running.recorded.wait_for(JobLockLost)
        free.set()
        running.recorded.wait_for(JobCompleted)

    assert results == {lost: True, kept: False}
    assert [job["locked_by"] for job in ward.jobs()] == ["another"]
