"""A task with a timeout: notified, failed, and its thread counted as busy until it really ends."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, RunRecord, ms
from support.recovery_fixture import RecoveryFixture

from gw_core import JobContext, TaskRegistry, task
from gw_core.errors import TaskLoadError, TaskTimeoutError
from gw_core.events import JobCompleted, JobErrored, JobLockLost, JobStarted

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


def test_an_attempt_fails_when_its_time_is_over_also_if_the_task_takes_no_notice(ward: RecoveryFixture) -> None:
    stubborn = Stubborn()
    job_id = ward.add("slow")
    ward.let_retries_wait()
    with ward.running(a_registry(stubborn), concurrency=2) as running:
        (ended,) = running.recorded.wait_for(JobCompleted)
        assert not stubborn.ended.is_set()
        job = ward.job(job_id)
        stubborn.let_go()
        assert stubborn.ended.wait(DEADLINE)
        result = running.stop()

    assert isinstance(ended.error, TaskTimeoutError)
    assert (job["attempts"], job["last_error"], job["locked_by"]) == (10, REASON, None)
    assert stubborn.was_notified
    assert (result.failed, result.completed) == (1, 0)
    assert len(running.recorded.of(JobErrored)) == 1
    assert running.recorded.of(JobLockLost) == []


def test_the_thread_counts_as_busy_until_the_task_really_ends(ward: RecoveryFixture) -> None:
    stubborn, quick = Stubborn(), RunRecord()
    ward.add("slow")
    ward.let_retries_wait()
    registry = a_registry(stubborn)
    registry.register("quick", quick)
    with ward.running(registry, concurrency=1, poll_interval=ms(20)) as running:
        running.recorded.wait_for(JobCompleted)
        ward.add("quick", {"n": 1})
        slot = running.pool.threads[0].slot  # type: ignore[union-attr]
        assert slot.is_overrun
        assert quick.entries == []
        stubborn.let_go()
        running.recorded.wait_for(JobStarted, lambda event: event.job.task_identifier == "quick")
        running.recorded.wait_for(JobCompleted, count=2)
        assert not slot.is_overrun

    assert quick.entries == [1]


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


def test_a_queue_does_not_go_on_while_a_task_out_of_time_still_runs(ward: RecoveryFixture) -> None:
    stubborn = Stubborn()
    first = ward.add("slow", queue_name="q")
    ward.let_retries_wait()
    with ward.running(a_registry(stubborn)) as running:
        assert stubborn.began.wait(DEADLINE)
        runs = running.pool.timeouts.runs  # type: ignore[union-attr]
        (run,) = runs
        assert run.context.should_stop.wait(DEADLINE)
        assert ward.held() == [running.worker_id] * 2
        stubborn.let_go()
        running.recorded.wait_for(JobCompleted)

    assert (ward.job(first)["last_error"], ward.held()) == (REASON, [])


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
        timeouts = running.pool.timeouts
        (run,) = timeouts.runs
        run.next_step = 0.0  # an hour later
        timeouts.wake()
        running.recorded.wait_for(JobCompleted)
        assert cancelled.wait(DEADLINE)

    assert ward.jobs()[0]["last_error"] == REASON.replace("100ms", "1h")


def test_a_task_in_time_is_left_alone(ward: RecoveryFixture) -> None:
    done = RunRecord()
    ward.fill(50, task="slow")
    with ward.running(a_registry(lambda payload, context: done(payload), timeout=600)) as running:
        running.recorded.wait_for(JobCompleted, count=50)
        assert running.pool.timeouts.runs == set()  # type: ignore[union-attr]

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
