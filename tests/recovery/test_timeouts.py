"""A task with a timeout: notified, and failed when it has ended, however long that takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, RunningWorker, RunRecord, ms
from support.recovery_fixture import RecoveryFixture
from support.waiting import wait_until

from gw_core import JobContext, TaskRegistry, WorkerSettings, task
from gw_core.errors import InvalidSettingError
from gw_core.events import JobCompleted, JobErrored, JobLockLost, JobOverran
from gw_core.front_ends import TaskLoadError
from gw_core.worker import timeouts

SHORT = ms(100)
REASON = "TaskTimeoutError: the task took longer than its timeout of 100ms"


class Stubborn:
    """A task that ignores the request to stop, until the test lets it go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()
        self._free = threading.Event()
        self.was_notified = False

    def __call__(self, payload: Any, context: JobContext) -> None:
        self.began.set()
        self._free.wait(DEADLINE)
        self.was_notified = context.should_stop.is_set()
        self.ended.set()

    def let_go(self) -> None:
        self._free.set()


def a_registry(function: Any, timeout: timedelta | float | None = SHORT) -> TaskRegistry:
    registry = TaskRegistry()

    @registry.task("slow", timeout=timeout)
    def slow(payload: Any, context: JobContext) -> Any:
        return function(payload, context)

    return registry


@pytest.fixture
def reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait for the seconds after which a task that does not react is reported."""
    monkeypatch.setattr(timeouts, "FORCE_AFTER", 0.1)
    monkeypatch.setattr(timeouts, "OVERRUN_AFTER", 0.1)


def by_timeout(ward: RecoveryFixture, job_id: int) -> str:
    return REASON


def by_cancelling(ward: RecoveryFixture, job_id: int) -> str:
    (answer,) = ward.client.jobs.cancel([job_id], by="ann", retry=True, timeout=ms(0))
    assert not answer.result.is_over
    return "cancelled by ann"


End = Callable[[RecoveryFixture, int], str]
ENDS = [pytest.param(by_timeout, SHORT, id="timeout"), pytest.param(by_cancelling, None, id="cancelled with retry")]


@contextmanager
def overrunning(
    ward: RecoveryFixture, end: End, timeout: timedelta | None, *, queue: str | None = None, **options: Any
) -> Iterator[tuple[RunningWorker, Stubborn, int, str]]:
    """Run a task that does not react to its end; yield the worker, the task, its job, and the error to expect."""
    stubborn = Stubborn()
    job_id = ward.add("slow", queue_name=queue)
    registry = a_registry(stubborn, timeout)
    registry.register("quick", RunRecord())
    with ward.running(registry, **options) as running:
        assert stubborn.began.wait(DEADLINE)
        message = end(ward, job_id)
        running.recorded.wait_for(JobOverran, lambda event: event.job.id == job_id)
        yield running, stubborn, job_id, message
        stubborn.let_go()


@pytest.mark.parametrize(("end", "timeout"), ENDS)
def test_items_of_a_batch_that_were_done_are_not_done_again(
    ward: RecoveryFixture, end: End, timeout: timedelta | None
) -> None:
    began, done = threading.Event(), list[str]()

    def send(items: list[str], context: JobContext) -> list[ValueError | None]:
        began.set()
        assert context.should_stop.wait(DEADLINE)
        done.extend(items[:2])
        return [None, None, ValueError("no @")]

    job_id = ward.client.add_batch("slow", ["ann", "ben", "?"]).id
    ward.let_retries_wait()
    with ward.running(a_registry(send, timeout)) as running:
        assert began.wait(DEADLINE)
        message = end(ward, job_id)
        running.recorded.wait_for(JobCompleted)

    assert (ward.job(job_id)["payload"], done) == (["?"], ["ann", "ben"])
    assert ward.job(job_id)["last_error"] == message


@pytest.mark.usefixtures("reported_soon")
@pytest.mark.parametrize("queue", [None, "q"], ids=["without a queue", "in a queue"])
@pytest.mark.parametrize(("end", "timeout"), ENDS)
def test_an_attempt_keeps_its_lock_until_its_task_has_ended(
    ward: RecoveryFixture, end: End, timeout: timedelta | None, queue: str | None
) -> None:
    with overrunning(ward, end, timeout, queue=queue) as (running, stubborn, job_id, message):
        held = ward.held()
        ward.let_retries_wait()
        stubborn.let_go()
        running.recorded.wait_for(JobCompleted)

        job = ward.job(job_id)
        assert held == [running.worker_id] * (1 if queue is None else 2)
        assert (job["attempts"], job["last_error"], ward.held()) == (10, message, [])
        assert stubborn.was_notified
        result = running.stop()

    assert (result.failed, result.completed) == (1, 0)
    assert len(running.recorded.of(JobErrored)) == 1
    assert running.recorded.of(JobLockLost) == []


@pytest.mark.usefixtures("reported_soon")
def test_other_jobs_run_on_the_other_threads(ward: RecoveryFixture) -> None:
    with overrunning(ward, by_timeout, SHORT, concurrency=2) as (running, _, _, _):
        ward.fill(3, task="quick")
        running.recorded.wait_for(JobCompleted, lambda event: event.job.task == "quick", count=3)


@pytest.mark.usefixtures("reported_soon")
@pytest.mark.parametrize(("end", "timeout"), ENDS)
def test_an_overrun_fails_when_its_worker_stops(ward: RecoveryFixture, end: End, timeout: timedelta | None) -> None:
    """The process ends within a second of the grace period; the next attempt waits longer."""
    with overrunning(ward, end, timeout, grace_period=ms(100)) as (running, stubborn, job_id, message):
        now = ward.now()
        running.stop()

        job = ward.job(job_id)
        assert (job["attempts"], job["last_error"], job["locked_by"]) == (1, message, None)
        assert job["run_at"] - now > timedelta(seconds=20)
        assert not stubborn.ended.is_set()


@pytest.mark.usefixtures("reported_soon")
@pytest.mark.parametrize(
    ("concurrency", "left", "exit_code", "reason"),
    [
        pytest.param(2, 0, 0, "no job is left to run", id="a thread is free"),
        pytest.param(1, 0, 0, "no job is left to run", id="no thread is free, and no job is left"),
        pytest.param(1, 1, 1, "every thread is held by a task that does not end; jobs are left", id="a job is left"),
    ],
)
def test_a_single_run_does_not_wait_for_a_task_that_does_not_end(
    ward: RecoveryFixture, concurrency: int, left: int, exit_code: int, reason: str
) -> None:
    stubborn = Stubborn()
    job_id = ward.add("slow", priority=-1)
    ward.let_retries_wait()
    ward.fill(left, task="quick")
    registry = a_registry(stubborn)
    registry.register("quick", RunRecord())
    result = ward.run_once(registry, concurrency=concurrency, grace_period=ms(100), prefetch=ms(0))
    stubborn.let_go()

    assert (result.exit_code, result.reason, result.failed) == (exit_code, reason, 1)
    assert (ward.job(job_id)["last_error"], len(ward.jobs()), ward.held()) == (REASON, 1 + left, [])


@pytest.mark.usefixtures("reported_soon")
@pytest.mark.parametrize(("end", "timeout"), ENDS)
def test_reports_name_a_task_that_does_not_end(ward: RecoveryFixture, end: End, timeout: timedelta | None) -> None:
    def reasons(job_id: int) -> list[str]:
        report = ward.client.jobs.show(job_id)
        return [] if report is None else [each.message for each in report.reasons if each.code == "overran"]

    def findings() -> list[str]:
        return [each.message for each in ward.client.doctor.findings() if each.check == "overruns"]

    with overrunning(ward, end, timeout) as (running, stubborn, job_id, _):
        (reason,) = wait_until(lambda: reasons(job_id), what="the heartbeat that reports it")
        (finding,) = findings()
        ward.let_retries_wait()
        stubborn.let_go()
        running.recorded.wait_for(JobCompleted)
        wait_until(lambda: not findings(), what="the heartbeat that reports its end")

        assert reasons(job_id) == []

    happened = "its timeout passed" if end is by_timeout else "it was cancelled"
    assert reason.startswith(f"{happened} ")
    assert "ago, but its task still runs and holds thread gw-worker-" in reason
    assert finding.startswith(f"{running.worker_id} still runs jobs that have timed out or were cancelled, for up to ")
    assert finding.endswith(f": {job_id}")
    assert [line for line in running.log.of("warning") if "still runs although" in line]


def test_a_task_that_waits_for_the_signal_ends_immediately(ward: RecoveryFixture) -> None:
    ward.add("slow")
    ended = threading.Event()

    def polite(payload: Any, context: JobContext) -> None:
        if context.should_stop.wait(DEADLINE):
            ended.set()

    with ward.running(a_registry(polite)) as running:
        running.recorded.wait_for(JobCompleted)
        assert ended.wait(DEADLINE)

    assert ward.jobs()[0]["last_error"] == REASON


def test_the_timeout_of_the_worker_is_that_of_tasks_without_one(ward: RecoveryFixture) -> None:
    own: dict[str, Any] = {}

    def until_stopped(payload: Any, context: JobContext) -> None:
        assert context.should_stop.wait(DEADLINE)

    registry = a_registry(until_stopped, timeout=None)

    @registry.task("long", timeout=3_600)
    def long(payload: Any) -> None:
        (run,) = [each for each in own["worker"].pool.timeouts.runs.values() if each.context.job.task == "long"]
        own["timeout"] = run.timeout

    ward.add("slow")
    with ward.running(registry, timeout=SHORT) as running:
        own["worker"] = running
        running.recorded.wait_for(JobCompleted)
        ward.add("long")
        running.recorded.wait_for(JobCompleted, count=2)

    assert ward.jobs()[0]["last_error"] == REASON
    assert own["timeout"] == timedelta(hours=1)
    with pytest.raises(InvalidSettingError, match="timeout must be at least one millisecond"):
        WorkerSettings(timeout=timedelta(0))


def test_a_coroutine_is_cancelled(ward: RecoveryFixture) -> None:
    began, cancelled = threading.Event(), threading.Event()
    registry = TaskRegistry()

    @registry.task("slow", timeout=3_600)
    async def slow(payload: Any) -> None:
        try:
            began.set()
            await asyncio.sleep(DEADLINE)
        finally:
            cancelled.set()

    ward.add("slow")
    with ward.running(registry) as running:
        assert began.wait(DEADLINE)
        (run,) = running.pool.timeouts.runs.values()
        run.next_step = 0.0  # an hour later
        running.pool.timeouts.wake()
        running.recorded.wait_for(JobCompleted)
        assert cancelled.wait(DEADLINE)

    assert ward.jobs()[0]["last_error"] == REASON.replace("100ms", "1h")


def test_a_task_in_time_is_left_alone(ward: RecoveryFixture) -> None:
    done = RunRecord()
    ward.fill(50, task="slow")
    with ward.running(a_registry(lambda payload, context: done(payload), timeout=600)) as running:
        running.recorded.wait_for(JobCompleted, count=50)
        assert running.pool.timeouts.runs == {}

    assert len(done.entries) == 50


def test_the_timeout_of_a_task_file_is_what_its_decorator_says() -> None:
    @task("slow", timeout=2.5)
    def slow(payload: object) -> None:
        """Does nothing."""

    registry = TaskRegistry()
    registry.register("slow", slow)
    made = registry.get("slow")

    assert made is not None
    assert made.timeout == timedelta(seconds=2.5)


def test_a_timeout_of_nothing_is_rejected() -> None:
    with pytest.raises(TaskLoadError, match="greater than zero"):
        a_registry(lambda payload, context: None, timeout=0)
