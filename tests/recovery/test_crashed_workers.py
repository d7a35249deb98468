"""Real workers, killed and frozen: their jobs run elsewhere, and what they do too late changes nothing."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, RunRecord, ms
from support.recovery_fixture import RecoveryFixture, WorkerProcess
from support.waiting import wait_until

from gw_core.events import JobCompleted, JobLockLost, JobRecovered, JobStarted, WorkersRecovered

# A worker whose own heartbeats come later than half of the threshold does not sweep.
QUICK: dict[str, Any] = {
    "recover": True,
    "heartbeat_interval": ms(100),
    "sweep_interval": ms(100),
    "sweep_threshold": ms(3_000),
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

        assert ward.sweep(delay=ms(0)).jobs == 1
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


# -- beside Graphile Worker's way -------------------------------------------------------------------------------------
# The statements of Graphile Worker end a job by its id alone, and always count an attempt back.


@pytest.mark.parametrize(
    ("statement", "survives"),
    [
        pytest.param("delete from _private_jobs where id = %s", False, id="the ancestor's completion"),
        pytest.param(None, True, id="ours"),
    ],
)
def test_only_a_fenced_completion_leaves_the_new_owners_job_alone(
    ward: RecoveryFixture, statement: str | None, survives: bool
) -> None:
    from gw_core.events import Completed
    from gw_core.operations import Database
    from gw_core.postgres.job_store import JobStore

    ward.dead_worker("zombie")
    job_id = ward.held_by("zombie")
    held = ward.client.jobs.get(job_id)
    assert held is not None
    ward.sweep(delay=ms(0))
    ward.lock(job_id, "new owner")

    if statement is not None:
        ward.run(statement, job_id)
    else:
        connection = Database(ward.url).connect("zombie")
        assert JobStore(connection, "graphile_worker").complete([Completed(held, 0.1)], worker_id="zombie") == set()
        connection.close()

    assert bool(ward.jobs()) is survives


@pytest.mark.parametrize(
    ("is_ours", "comes_back"),
    [pytest.param(False, True, id="the ancestor's recovery"), pytest.param(True, False, id="ours")],
)
def test_only_our_recovery_keeps_a_removed_job_retired(ward: RecoveryFixture, is_ours: bool, comes_back: bool) -> None:
    ward.dead_worker()
    job_id = ward.held_by("dead", job_key="k")
    ward.client.remove("k")

    if is_ours:
        ward.sweep()
    else:
        ward.run(
            "update _private_jobs set attempts = attempts - 1, locked_by = null, locked_at = null"
            " where locked_by = 'dead'"
        )

    assert ward.job(job_id)["is_available"] is comes_back


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
