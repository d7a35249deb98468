"""Shutdown is graceful: running jobs may end, others are returned, and no lock outlives the pool."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, NEVER, Gate, QueueFixture, RunningWorker, RunRecord, ms
from support.time_range import MeasuredBlock
from support.waiting import wait_until

from gw_core import WorkerSettings
from gw_core.events import JobCompleted, JobLockLost, JobReturned, JobSucceeded, PoolStopped, PoolStopping
from gw_core.front_ends import PoolInterrupting, PoolListening, WorkerStopped
from gw_core.runtime import service
from gw_core.worker import pool
from gw_core.worker.handoff import Handoff

pytestmark = pytest.mark.usefixtures("time_to_settle")

WAITING_CLAIM = """
select pid from pg_stat_activity
 where datname = current_database() and application_name = 'gw:claim' and wait_event_type = 'Lock'
"""

FAR = timedelta(minutes=10)
"""To check ahead so far that jobs are claimed ahead even if the machine stood still in one of the quick ones."""


def warm_up(site: QueueFixture, running: RunningWorker) -> None:
    """Let the pool learn that its tasks are quick, so that it claims ahead."""
    site.fill(30, task="quick")
    running.recorded.wait_for(JobCompleted, count=30)


@pytest.mark.direct("it counts sessions of the server, which the pooler keeps")
def test_an_idle_pool_stops_immediately(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        result = running.stop(within=30)

    assert (result.reason, result.exit_code, result.completed) == ("the test asked", 0, 0)
    assert len(running.recorded.of(WorkerStopped)) == 10
    wait_until(lambda: site.connections() == [], what="the server to see the connections close")


def test_a_running_job_may_end_and_counts(site: QueueFixture) -> None:
    gate = site.gate()
    site.fill(1)
    with site.running({"work": gate}) as running:
        gate.wait_for(1)
        running.request_stop()
        running.recorded.wait_for(PoolStopping, lambda event: event.running == 1)
        gate.open()
        result = running.end()

    assert (result.completed, site.jobs()) == (1, [])
    assert running.recorded.of(PoolInterrupting) == []


def test_a_stop_ends_with_the_last_job_however_slowly_threads_end(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = threading.Thread.run

    def run_and_linger(thread: threading.Thread) -> None:
        run(thread)
        if thread.name.startswith("gw-worker"):
            time.sleep(0.2)  # the last that it does: by now the worker that stops has seen its end

    monkeypatch.setattr(threading.Thread, "run", run_and_linger)
    with site.running({"work": RunRecord()}, grace_period=NEVER, notify_tasks_after=NEVER) as running:
        site.fill(1)
        running.recorded.wait_for(JobCompleted)

        assert running.stop().completed == 1


@pytest.mark.parametrize("queue", ["null", "'q'"], ids=["unqueued", "in one queue"])
def test_what_was_claimed_ahead_is_returned_without_counting_an_attempt(site: QueueFixture, queue: str) -> None:
    gate = site.gate()
    with site.running({"quick": RunRecord(), "work": gate}, concurrency=1, prefetch=FAR) as running:
        warm_up(site, running)
        site.fill(20, queue=queue)
        gate.wait_for(1)
        wait_until(lambda: len([job for job in site.jobs() if job["locked_by"]]) > 1)
        running.request_stop()
        wait_until(lambda: len(running.recorded.of(JobReturned)) >= 19)
        gate.open()
        result = running.end()

    assert result.completed == 31
    assert [(job["attempts"], job["locked_by"]) for job in site.jobs()] == [(0, None)] * 19
    assert site.held() == []


def test_the_log_states_of_each_lost_job_whether_it_had_started(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running({"quick": RunRecord(), "work": gate}, concurrency=1, prefetch=FAR) as running:
        warm_up(site, running)
        site.fill(5)
        gate.wait_for(1)
        wait_until(lambda: all(job["locked_by"] for job in site.jobs()), what="all jobs to be claimed")
        site.client.workers.unlock([running.pool.id])
        running.request_stop()
        running.recorded.wait_for(JobLockLost, count=4)
        gate.open()
        running.recorded.wait_for(JobLockLost, count=5)

    lost = [line.partition("): ")[2] for line in running.log.of("warning") if line.startswith("Lost job")]
    assert sorted(lost) == [
        *["it lost its lock before it started"] * 4,
        "it lost its lock while running; the result was discarded",
    ]


def test_when_the_grace_period_ends_what_still_runs_is_returned_with_a_delay(site: QueueFixture) -> None:
    gate = site.gate()
    job_id = site.add(queue_name="q")
    with site.running({"work": gate}, grace_period=ms(100)) as running:
        gate.wait_for(1)
        with MeasuredBlock(site.now) as block:
            running.stop(within=30)

    job = site.job(job_id)
    assert (job["attempts"], job["locked_by"], job["last_error"]) == (0, None, None)
    assert job["run_at"] in block.later(seconds=30)
    assert site.held() == []
    assert [job.id for job in running.recorded.of(PoolInterrupting)[0].jobs] == [job_id]
    [said] = [line for line in running.log.of("info") if line.startswith("Returned task")]
    assert float(said.split(", ")[1].split("ms")[0]) >= 100, "the time the job ran, not 0.00ms"
    assert running.recorded.of(PoolStopped)[0].unsettled == 0


def test_the_rest_of_a_queue_behind_a_stubborn_job_is_returned_too(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running(
        {"quick": RunRecord(), "work": gate}, concurrency=1, prefetch=FAR, grace_period=ms(100)
    ) as running:
        warm_up(site, running)
        site.fill(10, queue="'q'")
        gate.wait_for(1)
        running.stop(within=30)

    assert site.held() == []
    assert [job["attempts"] for job in site.jobs()] == [0] * 10


def test_a_stop_that_is_forced_amid_a_claim_returns_its_jobs(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        wait_until(lambda: running.claimer.polled_at is not None, what="the first claim")
        with site.hands.transaction():
            site.run("lock table _private_jobs in exclusive mode")
            running.claimer.request_claim()
            wait_until(lambda: site.run(WAITING_CLAIM), what="a claim that waits for the table")
            site.fill(1)
            running.request_stop()
            running.recorded.wait_for(PoolStopping)
            running.runner.force()
            time.sleep(0.3)  # in which a stop that does not wait would be over
        running.end()

    assert [(job["attempts"], job["locked_by"]) for job in site.jobs()] == [(0, None)]
    assert [event.has_unknown_claim for event in running.recorded.of(PoolStopped)] == [False]


def test_a_second_request_ends_the_grace_period(site: QueueFixture) -> None:
    gate = site.gate()
    site.fill(3)
    with site.running({"work": gate}) as running:
        gate.wait_for(3)
        running.request_stop()
        running.recorded.wait_for(PoolStopping)
        running.runner.force()
        running.end(within=30)

    assert site.held() == []
    assert [job["attempts"] for job in site.jobs()] == [0, 0, 0]


def test_tasks_are_notified_that_they_should_stop(site: QueueFixture) -> None:
    notified = threading.Event()
    began = threading.Event()

    def work(payload: object, context: Any) -> None:
        began.set()
        if context.should_stop.wait(DEADLINE):
            notified.set()

    site.fill(1)
    with site.running({"work": work}, notify_tasks_after=ms(50)) as running:
        assert began.wait(DEADLINE)
        assert not notified.is_set()
        result = running.stop(within=30)

    assert notified.is_set()
    assert result.completed == 1


@pytest.mark.parametrize(
    ("grace_period", "expected"),
    [pytest.param(25, 5, id="long"), pytest.param(4, 2, id="half of a short one"), pytest.param(0, 0, id="none")],
)
def test_tasks_are_notified_within_the_grace_period(grace_period: float, expected: float) -> None:
    settings = WorkerSettings(grace_period=timedelta(seconds=grace_period))

    assert settings.effective_notify_delay == timedelta(seconds=expected)


def test_a_job_that_ended_but_whose_listener_does_not_return_is_not_left_locked(site: QueueFixture) -> None:
    release, reached = threading.Event(), threading.Event()

    def stand_still(event: JobSucceeded) -> None:
        reached.set()
        release.wait(DEADLINE)

    site.fill(1)
    with site.running({"work": lambda payload: None}, grace_period=ms(50)) as running:
        running.runner.events.on(JobSucceeded, stand_still)
        site.fill(1)
        assert reached.wait(DEADLINE)
        running.stop(within=30)
        assert site.held() == []
        release.set()


def test_an_outcome_after_the_job_was_returned_changes_nothing(site: QueueFixture) -> None:
    gate = site.gate()
    job_id = site.add()
    with site.running({"work": gate}, grace_period=ms(20)) as running:
        gate.wait_for(1)
        running.stop(within=30)
        gate.open()
        running.recorded.wait_for(WorkerStopped, count=10)

    assert site.job(job_id)["attempts"] == 0


def test_stopping_twice_is_stopping_once(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}) as running:
        running.request_stop()
        running.runner.stop("another reason")
        result = running.end()

    assert result.reason == "the test asked"
    assert len(running.recorded.of(PoolStopping)) == 1


# -- a machine that stands still --------------------------------------------------------------------------------------


class Slow(service.Service):
    """Ends when it is released."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.released = threading.Event()

    def step(self) -> timedelta:
        return timedelta(hours=1)

    def teardown(self) -> None:
        self.released.wait(DEADLINE)


@pytest.mark.parametrize(("seconds", "ends"), [(6.0, True), (0.02, False)], ids=["it stood still", "it did not"])
def test_a_deadline_is_extended_when_the_machine_stalled(
    monkeypatch: pytest.MonkeyPatch, seconds: float, ends: bool
) -> None:
    slow, checks = Slow(), count()

    def clock() -> float:
        check = next(checks)
        if check == 4:
            slow.released.set()
            assert slow.join(timedelta(seconds=DEADLINE))
        return 0.0 if check == 0 else seconds + check * 0.02

    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=clock))
    slow.start()
    slow.request_stop()

    assert slow.join_until(lambda: timedelta(0)) is ends
    slow.released.set()


def test_stalls_do_not_extend_a_deadline_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, checks = Slow(), count()

    def clock() -> float:
        check = next(checks)
        assert check <= 1_000, "it never ends"
        return float(check)  # a second passes between two calls

    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(service, "TICK", timedelta(0))
    slow.start()
    slow.request_stop()

    assert not slow.join_until(lambda: timedelta(0))
    slow.released.set()


def test_results_are_written_although_a_stall_used_up_the_time_for_them(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "FINAL_SETTLE_TIMEOUT", timedelta(0))
    gate = site.gate()
    site.fill(1)
    with site.running({"work": gate}, grace_period=ms(0)) as running:
        gate.wait_for(1)
        running.stop(within=30)

    assert site.held() == []


# -- the hand-off alone -----------------------------------------------------------------------------------------------


def test_a_closed_hand_off_starts_nothing_and_keeps_what_is_left_for_the_owner() -> None:
    handoff = Handoff(on_low=lambda: None)
    jobs: list[Any] = ["first", "second"]
    handoff.put(jobs)
    handoff.close()
    handoff.put(["late"])  # type: ignore[list-item] # anything will do

    assert handoff.take(threading.Lock()) is None
    assert handoff.remove_waiting() == ["late", "second", "first"]


def test_closing_wakes_every_parked_thread() -> None:
    handoff = Handoff(on_low=lambda: None)
    ended: list[object] = []
    threads = [
        threading.Thread(target=lambda: ended.append(handoff.take(threading.Lock())), daemon=True) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: handoff.idle == 3)
    handoff.close()
    for thread in threads:
        thread.join(DEADLINE)

    assert ended == [None, None, None]


class Bell:
    """The lock that a thread waits for. The test decides when the thread that was woken runs."""

    def __init__(self) -> None:
        self.was_rung = False
        self.may_run = threading.Event()
        self._lock = threading.Lock()

    def acquire(self, blocking: bool = True) -> bool:
        is_acquired = self._lock.acquire(blocking)
        return is_acquired and (not blocking or self.may_run.wait(DEADLINE))

    def release(self) -> None:
        self.was_rung = True
        self._lock.release()


def test_a_hand_off_wakes_one_thread_and_that_one_the_next() -> None:
    handoff = Handoff(on_low=lambda: None)
    bells, taken = [Bell() for _ in range(3)], []
    threads = [
        threading.Thread(target=lambda bell=bell: taken.append(handoff.take(bell)), daemon=True) for bell in bells
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: handoff.idle == 3)
    handoff.put(["first", "second"])  # type: ignore[list-item] # anything will do
    handoff.put(["third"])  # type: ignore[list-item]

    for woken in (1, 2, 3):
        wait_until(lambda woken=woken: sum(bell.was_rung for bell in bells) >= woken)  # type: ignore[misc]
        rung = [bell for bell in bells if bell.was_rung]
        assert len(rung) == woken
        for bell in rung:
            bell.may_run.set()
    for thread in threads:
        thread.join(DEADLINE)

    assert sorted(taken) == ["first", "second", "third"]


# -- prefetch ---------------------------------------------------------------------------------------------------------


def test_jobs_behind_stuck_threads_are_returned_for_another_pool_to_run(site: QueueFixture) -> None:
    gate: Gate = site.gate()
    done = RunRecord()
    with site.running({"quick": done, "work": gate}, concurrency=10, prefetch=ms(1_000), poll_interval=NEVER) as stuck:
        stuck.claimer.claimed_jobs.overdue_after = 0.1  # type: ignore[union-attr] # not seconds, in a test
        warm_up(site, stuck)
        site.fill(10, task="work")
        gate.wait_for(10)
        site.fill(50, task="quick")
        with site.running({"quick": done}, poll_interval=ms(50)) as other:
            wait_until(lambda: len(done.entries) >= 80, what="the quick jobs to run elsewhere")
            assert gate.arrived == 10
            other.recorded.wait_for(JobCompleted, count=1)
    assert all(job.job.attempts == 1 for job in other.recorded.of(JobCompleted))
