"""End the attempts of jobs whose task has been given only so much time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gw_core.domain.cancellation import StopReason
from gw_core.domain.durations import format_duration
from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.outcome import Failed, Outcome, error_message
from gw_core.execution.context import JobContext
from gw_core.execution.kill import interrupt_given_back
from gw_core.service import Service

if TYPE_CHECKING:
    from gw_core.worker.thread import WorkerThread

UNTIL_WOKEN: Final = timedelta(hours=1)
INSIST_AFTER: Final = 5.0
"""Seconds from telling a task to killing its program or cancelling its coroutine, where the attempt waits for that."""


class TaskTimeoutError(GraphileWorkerError):
    """The task took longer than its timeout allows; the attempt has failed."""


@dataclass(slots=True, eq=False)
class TimedRun:
    """A run underway whose time is limited."""

    worker: WorkerThread
    context: JobContext
    timeout: timedelta
    began: float
    next_step: float
    is_over_time: bool = False
    cancelled: Callable[[float], Failed | None] | None = None
    """Says how the run ends that an operator cancelled, given how long it took; None for it when it has ended."""


class Timeouts(Service):
    """Thread `gw-timeouts`, started with the first run that needs it. `_lock` guards `_runs` and `_next`.

    When the time is over the task is told through `context.should_stop` and its attempt fails at once; its thread
    counts as busy until the task really ends. A job of a named queue fails when its task ends: its queue must not go
    on while it still runs.
    """

    def __init__(self, on_crash: Callable[[str, BaseException], None] | None = None) -> None:
        super().__init__("gw-timeouts", on_crash=on_crash)
        self._lock = threading.Lock()
        self._runs: set[TimedRun] = set()
        self._next = float("inf")
        self._has_started = False

    # -- the workers' side -----------------------------------------------------------------------------------------

    def begin(self, worker: WorkerThread, context: JobContext, timeout: timedelta) -> TimedRun:
        """Note a run that begins now."""
        _ = context.should_stop  # made now: of two threads that ask first at once, one would wait for another's signal
        now = time.perf_counter()
        run = TimedRun(worker, context, timeout, began=now, next_step=now + timeout.total_seconds())
        self._add(run)
        return run

    def cancel(self, worker: WorkerThread, context: JobContext, verdict: Callable[[float], Failed | None]) -> None:
        """Tell a task that its job was cancelled, and end the attempt soon if the task takes no notice."""
        stop_task(context, StopReason.CANCELLED)
        now = time.perf_counter()
        began = worker.busy_since or now
        self._add(TimedRun(worker, context, timedelta(0), began, next_step=now + INSIST_AFTER, cancelled=verdict))

    def _add(self, run: TimedRun) -> None:
        with self._lock:
            self._runs.add(run)
            is_sooner = run.next_step < self._next
            if not self._has_started:
                self._has_started = True
                self.start()
        if is_sooner:
            self.wake()

    def end(self, run: TimedRun, outcome: Outcome) -> Outcome:
        """Note that the run has ended, and return its outcome: a failure when its time was over."""
        with self._lock:
            self._runs.discard(run)
        return _failure(run) if run.is_over_time else outcome

    # -- one round -------------------------------------------------------------------------------------------------

    def turn(self) -> timedelta:
        """End the runs whose time is over; rest until the next one's."""
        now = time.perf_counter()
        with self._lock:
            due = [run for run in self._runs if run.next_step <= now]
        for run in due:
            self._step(run)
        with self._lock:
            self._next = min((run.next_step for run in self._runs), default=float("inf"))
            return min(UNTIL_WOKEN, timedelta(seconds=max(0.0, min(self._next - now, 3600.0))))

    def _step(self, run: TimedRun) -> None:
        context = run.context
        if run.cancelled is not None:
            self._end_cancelled(run, run.cancelled)
        elif context.job.queue_id is None:
            with self._lock:
                self._runs.discard(run)
            if run.worker.end_early(context, _failure(run)):
                stop_task(context, StopReason.TIMEOUT, forced=True)
        elif not run.is_over_time:
            run.is_over_time = True
            run.next_step += INSIST_AFTER
            stop_task(context, StopReason.TIMEOUT)
        else:
            run.next_step = float("inf")
            stop_task(context, StopReason.TIMEOUT, forced=True)

    def _end_cancelled(self, run: TimedRun, verdict: Callable[[float], Failed | None]) -> None:
        context = run.context
        with self._lock:
            self._runs.discard(run)
        if context is not run.worker.context:
            return
        if context.job.queue_id is not None:  # ends with its task, or its queue would go on while that runs
            stop_task(context, StopReason.CANCELLED, forced=True)
            return
        failure = verdict(time.perf_counter() - run.began)
        if failure is not None and run.worker.end_early(context, failure):
            stop_task(context, StopReason.CANCELLED, forced=True)


def stop_task(context: JobContext, reason: StopReason, *, forced: bool = False) -> None:
    """Tell a task why it should end; `forced` also kills its program and cancels its coroutine."""
    stop = context.should_stop
    stop.forced = stop.forced or forced
    stop.set(reason)
    if forced:
        interrupt_given_back()


def _failure(run: TimedRun) -> Failed:
    error = TaskTimeoutError(f"the task took longer than its timeout of {format_duration(run.timeout)}")
    return Failed(run.context.job, time.perf_counter() - run.began, error, error_message(error))
