"""End the attempts of jobs whose task has a timeout or was cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from gw_core.domain.durations import format_duration
from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.cancellation import Overrun, StopReason
from gw_core.domain.job.outcome import Failed, error_message
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobOverran
from gw_core.execution.context import JobContext
from gw_core.runtime.service import Service
from gw_core.worker.lease import steady_time
from gw_core.worker.run_slot import RunSlot

UNTIL_WOKEN: Final = timedelta(hours=1)
FORCE_AFTER: Final = 5.0
"""Seconds from asking a cancelled task to stop to cancelling its coroutine or killing its program."""

OVERRUN_AFTER: Final = 5.0
"""Seconds after that until a task that still runs is reported: Python cannot end its thread."""


class TaskTimeoutError(GraphileWorkerError):
    """The task took longer than its timeout allows; the attempt has failed.

    Example: docs/api/errors.md
    """


class EndingRun(msgspec.Struct, eq=False):
    """A run in progress that has to end at some time. Times are by `steady_time`."""

    slot: RunSlot
    context: JobContext
    reason: StopReason
    ends_at: float
    """When it should end: when its timeout passes, or when it was cancelled."""
    next_step: float
    timeout: timedelta = timedelta(0)
    is_forced: bool = False
    is_overrun: bool = False

    @property
    def is_current(self) -> bool:
        """False once it has ended; a cancellation that arrives at the same time is then never removed."""
        return self.slot.context is self.context

    def overrun(self) -> Overrun:
        """Return what others may know of it."""
        seconds = steady_time() - self.ends_at
        return Overrun(self.context.job.id, self.slot.thread, self.reason, timedelta(seconds=seconds))


class Timeouts(Service):
    """Thread `gw-timeouts`, started with the first run that needs it. `_lock` guards `runs` and `_next`.

    A task whose time is over is asked to stop; its coroutine is cancelled, or its process killed. The attempt fails
    when the task has ended, not before: until then the job stays locked, so no other attempt of it and no other job of
    its queue runs beside it.
    """

    def __init__(self, worker_id: str, events: Events) -> None:
        super().__init__("gw-timeouts")
        self.on_overruns: Callable[[], None] = lambda: None
        """Called when a run has become an overrun, and when one has ended."""
        self.runs: dict[JobContext, EndingRun] = {}
        self._worker_id = worker_id
        self._events = events
        self._lock = threading.Lock()
        self._next = float("inf")
        self._has_started = False

    @property
    def overruns(self) -> Sequence[Overrun]:
        """The runs that have not reacted to their end."""
        with self._lock:
            return [run.overrun() for run in self.runs.values() if run.is_overrun and run.is_current]

    # -- called by other threads -------------------------------------------------------------------------------------

    def begin(self, slot: RunSlot, context: JobContext, timeout: timedelta) -> None:
        """Add a run that starts now."""
        ends_at = steady_time() + timeout.total_seconds()
        self._add(EndingRun(slot, context, StopReason.TIMEOUT, ends_at, next_step=ends_at, timeout=timeout))

    def cancel(self, slot: RunSlot, context: JobContext, *, retry: bool) -> None:
        """Ask a task to stop because its job was cancelled; with `retry` the job keeps its further attempts."""
        context.should_stop.keeps_attempts = retry
        context.should_stop.set(StopReason.CANCELLED)
        now = steady_time()
        self._add(EndingRun(slot, context, StopReason.CANCELLED, now, next_step=now + FORCE_AFTER))

    def _add(self, run: EndingRun) -> None:
        with self._lock:
            known = self.runs.get(run.context)
            if known is not None and (known.is_forced or known.next_step <= run.next_step):
                return  # it ends as soon without this
            self.runs[run.context] = run
            is_sooner = run.next_step < self._next
            if not self._has_started:
                self._has_started = True
                self.start()
        if is_sooner:
            self.wake()

    def end(self, context: JobContext) -> Failed | None:
        """Remove a run that has ended; return its failure if its time was over."""
        with self._lock:
            run = self.runs.pop(context, None)
        if run is None:
            return None
        if run.is_overrun:
            self.on_overruns()
        return _failure(run) if run.is_forced and run.reason is StopReason.TIMEOUT else None

    # -- one step ----------------------------------------------------------------------------------------------------

    def step(self) -> timedelta:
        """End the runs whose time is over; rest until the next one's."""
        now = steady_time()
        with self._lock:
            due = [run for run in self.runs.values() if run.next_step <= now]
        for run in due:
            self._advance(run, now)
        with self._lock:
            self._next = min((run.next_step for run in self.runs.values()), default=float("inf"))
            return min(UNTIL_WOKEN, timedelta(seconds=max(0.0, min(self._next - now, 3600.0))))

    def _advance(self, run: EndingRun, now: float) -> None:
        """Force the run to end; one that was forced and still runs is an overrun."""
        with self._lock:
            if not run.is_current:
                self.runs.pop(run.context, None)
                return
            is_overrun = run.is_overrun = run.is_forced
            run.is_forced = True
            run.next_step = float("inf") if is_overrun else now + OVERRUN_AFTER
        if is_overrun:
            job, thread = run.context.job, run.slot.thread
            self._events.emit(JobOverran(worker_id=self._worker_id, thread=thread, job=job, reason=run.reason))
            self.on_overruns()
        else:
            run.context.should_stop.force(run.reason)


def _failure(run: EndingRun) -> Failed:
    error = TaskTimeoutError(f"the task took longer than its timeout of {format_duration(run.timeout)}")
    seconds = steady_time() - run.ends_at + run.timeout.total_seconds()
    return Failed(run.context.job, seconds, error, error_message(error))
