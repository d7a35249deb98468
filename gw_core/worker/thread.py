"""A worker thread: runs one job at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import structs

from gw_core.domain.job.expiry import expired_before_start
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Completed, Failed, Outcome, Returned
from gw_core.domain.rules.events import JobStarted, JobSucceeded, WorkerStarted, WorkerStopped
from gw_core.domain.rules.plugins import Interceptors, Skip, run_wrapped
from gw_core.execution.async_wrapper import on_loop
from gw_core.execution.context import JobContext, TaskResources
from gw_core.execution.executor import execute
from gw_core.execution.functions import is_coroutine_function
from gw_core.runtime.current_job import RUN
from gw_core.worker.cancellations import Cancellations
from gw_core.worker.handoff import Handoff, QueueBatch
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.pauses import PAUSED, CurrentPauses
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.timeouts import Timeouts

if TYPE_CHECKING:
    from gw_core.execution.task import LoadedTask

FindTask = Callable[[str], "LoadedTask | None"]

LEASE_IS_OVER: Final = "no heartbeat was written for too long, so another worker may have recovered the job"
"""Why a claimed job is returned before it starts, for example after the process was frozen."""


class WorkerThread:
    """Takes jobs from the hand-off, runs them and reports their outcomes."""

    def __init__(
        self,
        slot: RunSlot,
        *,
        handoff: Handoff,
        find_task: FindTask,
        resources: TaskResources,
        timeouts: Timeouts,
        cancellations: Cancellations,
        lease: Lease,
        pauses: CurrentPauses,
        on_end: Callable[[], None],
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.name = slot.thread
        self.slot = slot
        self._timeouts = timeouts
        self._cancellations = cancellations
        self._pending: Mapping[int, object] = cancellations.pending
        self._lease = lease
        self._pauses = pauses
        self._worker_id = slot.worker_id
        self._handoff = handoff
        self._find_task = find_task
        self._report = slot.report
        self._resources = resources
        self._events = slot.events
        self._on_end = on_end
        self._clock = clock
        self.has_ended = False
        """Whether it runs no further job; set before `on_end` is called, when the thread itself is still alive."""
        self._wake = threading.Lock()
        # A daemon: a task in native code that never returns must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=slot.thread, daemon=True)

    def start(self) -> None:
        """Start to take jobs. Does not block."""
        self._thread.start()

    def join(self, seconds: float | None) -> bool:
        """Wait for the thread to end; True when it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._run_all()
        finally:
            self.has_ended = True
            self._on_end()

    def _run_all(self) -> None:
        """Run what is handed over, until the hand-off is closed."""
        self._events.emit(WorkerStarted(worker_id=self._worker_id, thread=self.name))
        while (item := self._handoff.take(self._wake)) is not None:
            if type(item) is Job:
                copy_context().run(self.run, item)
            else:
                self._run_queue_batch(item)  # type: ignore[arg-type] # the other member of the union
            del item  # a thread that waits keeps no payload in memory
        self._events.emit(WorkerStopped(worker_id=self._worker_id, thread=self.name))

    def _run_queue_batch(self, batch: QueueBatch) -> None:
        """Run the jobs of one named queue in their order; the claimer may return those at the far end."""
        self.slot.queue_batch = batch
        while True:
            try:
                job = batch.popleft()
            except IndexError:
                break
            if self._handoff.is_closed:
                self._report(Returned(job, "the worker is stopping", started=False))
            else:
                copy_context().run(self.run, job)
        self.slot.queue_batch = None

    def run(self, job: Job) -> None:
        """Run one job and report its outcome. The caller gives it a `contextvars` context that the job has alone."""
        task, now = self._find_task(job.task), steady_time()
        if task is None:  # its file was deleted under --watch between claim and run
            self._report(Returned(job, f"task '{job.task}' is no longer known here", started=False))
            return
        if now > self._lease.until:
            self._report(Returned(job, LEASE_IS_OVER, started=False))
            return
        if (paused := self._pauses.active) is not None and paused.forbids(job):
            self._report(Returned(job, PAUSED, started=False))
            return
        if job._flags is not None and self._has_expired(job):
            return
        slot, events = self.slot, self._events
        context = JobContext(job, self._resources, worker_id=self._worker_id, thread_name=self.name)
        slot.busy_since = now
        slot.running.append(context)
        RUN.set(context)
        if self._pending and self._end_before_start(job):
            return
        if events.wants(JobStarted):
            events.emit(JobStarted(worker_id=self._worker_id, thread=self.name, job=job))
        if task.timeout is not None:
            self._timeouts.begin(slot, context, task.timeout)
        try:
            outcome: Outcome = execute(job, task, context, steady_time, now)
        except BaseException as error:  # noqa: BLE001 - an exception can be as broken as its task
            outcome = self._failure(job, error)
        if task.timeout is not None or self._pending:
            outcome = _replaced(outcome, self._timeouts.end(context))
        if self._pending:
            outcome = _replaced(outcome, self._cancellations.outcome_of(job, steady_time() - now))
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        """Take the run out of the slot and report its outcome, unless another thread has done so."""
        slot = self.slot
        slot.busy_since = 0.0
        # Taken out before anything is reported: only the party that takes it out reports the outcome.
        try:
            slot.running.pop()
        except IndexError:  # interrupted: another thread reported its outcome
            return
        if type(outcome) is Completed and not self._events.wants(JobSucceeded):
            self._report(outcome)
            return
        slot.ended.append(outcome)
        self._emit(outcome)
        slot.report_ended()

    def _emit(self, outcome: Outcome) -> None:
        if type(outcome) is Completed:
            self._events.emit(
                JobSucceeded(worker_id=self._worker_id, thread=self.name, job=outcome.job, seconds=outcome.seconds)
            )
        elif type(outcome) is Failed:
            self.slot.emit_failure(outcome)

    def _has_expired(self, job: Job) -> bool:
        """Fail a job that did not start in time, and return whether it did not; `clock` is that of a test."""
        failure = expired_before_start(job, None if self._clock is None else self._clock().timestamp())
        if failure is None:
            return False
        self.slot.emit_failure(failure)
        self._report(failure)
        return True

    def _end_before_start(self, job: Job) -> bool:
        """End a run before its task starts when its job was cancelled; False: it was not."""
        failure = self._cancellations.outcome_of(job)
        if failure is None:
            return False
        self.slot.busy_since = 0.0
        if self.slot.interrupt() is not None:
            self.slot.emit_failure(failure)
            self._report(failure)
        return True

    def _failure(self, job: Job, error: BaseException) -> Failed:
        """Return the outcome when not even the task's own error could be read: a job must not hang on it."""
        unreadable = type(error.__context__ or error).__name__
        message = f"{unreadable}, which could not be read: {type(error).__name__} was raised"
        return Failed(job, steady_time() - self.slot.busy_since, error, message)


def _replaced(outcome: Outcome, failure: Failed | None) -> Outcome:
    """Return the failure that took the place of an outcome, if any, with the items that the batch has left to do."""
    if failure is None or type(outcome) is not Failed or outcome.payload is None:
        return failure or outcome
    return structs.replace(failure, payload=outcome.payload)


def intercepted(task: LoadedTask, interceptors: Interceptors) -> LoadedTask:
    """Return the task with all wrappers of the plugins around it."""
    invoke = task.invoke
    wrappers = [on_loop(each) if is_coroutine_function(each) else each for each in interceptors.around_run]

    def call(job: Job, context: JobContext) -> object:
        result = run_wrapped(wrappers, job, context, lambda: invoke(job, context))
        return None if isinstance(result, Skip) else result

    return structs.replace(task, invoke=call)
