"""End the attempts of jobs whose task has a timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from gw_core.domain.durations import format_duration
from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.outcome import Failed, Outcome, error_message
from gw_core.execution.context import JobContext
from gw_core.runtime.service import Service
from gw_core.worker.lease import steady_time
from gw_core.worker.run_slot import RunSlot

UNTIL_WOKEN: Final = timedelta(hours=1)
FORCE_AFTER: Final = 5.0
"""Seconds from asking a task to stop to killing its program or cancelling its coroutine, where the attempt waits."""


class TaskTimeoutError(GraphileWorkerError):
    """The task took longer than its timeout allows; the attempt has failed."""


class TimedRun(msgspec.Struct, eq=False):
    """A run in progress whose time is limited. Times are by `steady_time`."""

    slot: RunSlot
    context: JobContext
    timeout: timedelta
    started: float
    next_step: float
    is_over_time: bool = False
    cancelled: Callable[[float], Failed | None] | None = None
    """Returns the outcome of a cancelled run, given how long it took; None for it when the run has ended."""


class Timeouts(Service):
    """Thread `gw-timeouts`, started with the first run that needs it. `_lock` guards `runs` and `_next`.

    When the time is over, `context.should_stop` is set and the attempt fails immediately; the thread counts as busy
    until the task ends. A job of a named queue fails when its task ends: the next job of the queue must not start
    while it still runs.
    """

    def __init__(self) -> None:
        super().__init__("gw-timeouts")
        self._lock = threading.Lock()
        self.runs: set[TimedRun] = set()
        self._next = float("inf")
        self._has_started = False

    # -- called by worker threads ------------------------------------------------------------------------------------

    def begin(self, slot: RunSlot, context: JobContext, timeout: timedelta) -> TimedRun:
        """Add a run that starts now."""
        now = steady_time()
        run = TimedRun(slot, context, timeout, started=now, next_step=now + timeout.total_seconds())
        self._add(run)
        return run

    def cancel(self, slot: RunSlot, context: JobContext, outcome: Callable[[float], Failed | None]) -> None:
        """Ask a task to stop because its job was cancelled, and end the attempt soon if the task does not react."""
        context.should_stop.set(StopReason.CANCELLED)
        now = steady_time()
        started = slot.busy_since or now
        self._add(TimedRun(slot, context, timedelta(0), started, next_step=now + FORCE_AFTER, cancelled=outcome))

    def _add(self, run: TimedRun) -> None:
        with self._lock:
            self.runs.add(run)
            is_sooner = run.next_step < self._next
            if not self._has_started:
                self._has_started = True
                self.start()
        if is_sooner:
            self.wake()

    def end(self, run: TimedRun, outcome: Outcome) -> Outcome:
        """Remove a run that has ended, and return its outcome: a failure when its time was over."""
        with self._lock:
            self.runs.discard(run)
        return _failure(run) if run.is_over_time else outcome

    # -- one step ----------------------------------------------------------------------------------------------------

    def step(self) -> timedelta:
        """End the runs whose time is over; rest until the next one's."""
        now = steady_time()
        with self._lock:
            due = [run for run in self.runs if run.next_step <= now]
        for run in due:
            self._end_or_warn(run)
        with self._lock:
            self._next = min((run.next_step for run in self.runs), default=float("inf"))
            return min(UNTIL_WOKEN, timedelta(seconds=max(0.0, min(self._next - now, 3600.0))))

    def _end_or_warn(self, run: TimedRun) -> None:
        context = run.context
        if run.cancelled is not None:
            self._end_cancelled(run, run.cancelled)
        elif context.job.queue_id is None:
            with self._lock:
                self.runs.discard(run)
            if run.slot.end_early(context, _failure(run)):
                context.should_stop.force(StopReason.TIMEOUT)
        elif not run.is_over_time:
            run.is_over_time = True
            run.next_step += FORCE_AFTER
            context.should_stop.set(StopReason.TIMEOUT)
        else:
            run.next_step = float("inf")
            context.should_stop.force(StopReason.TIMEOUT)

    def _end_cancelled(self, run: TimedRun, outcome: Callable[[float], Failed | None]) -> None:
        context = run.context
        with self._lock:
            self.runs.discard(run)
        if context is not run.slot.context:
            return
        if context.job.queue_id is not None:  # ends with its task: the next job of the queue must not start before
            context.should_stop.force(StopReason.CANCELLED)
            return
        failure = outcome(steady_time() - run.started)
        if failure is not None and run.slot.end_early(context, failure):
            context.should_stop.force(StopReason.CANCELLED)


def _failure(run: TimedRun) -> Failed:
    error = TaskTimeoutError(f"the task took longer than its timeout of {format_duration(run.timeout)}")
    return Failed(run.context.job, steady_time() - run.started, error, error_message(error))
