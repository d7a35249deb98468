"""A worker: one thread that runs one job after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from gw_core.domain.events import (
    Events,
    JobErrored,
    JobFailed,
    JobStarted,
    JobSucceeded,
    WorkerStarted,
    WorkerStopped,
)
from gw_core.domain.job import Job
from gw_core.domain.outcome import Completed, Failed, Outcome, Returned
from gw_core.execution.context import JobContext, TaskResources
from gw_core.execution.executor import execute
from gw_core.worker.handoff import Handoff, Strand
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.timeouts import Timeouts

if TYPE_CHECKING:
    from gw_core.execution.task import Task
    from gw_core.worker.cancellations import Cancellations

FindTask = Callable[[str], "Task | None"]
Report = Callable[[Outcome], None]


LEASE_IS_OVER: Final = "no heartbeat was written for long, so another worker may have taken the job"
"""Why a job that was claimed goes back before it starts, as after a freeze of the process."""


class WorkerThread:
    """Takes jobs from the hand-off, runs them and reports how they ended.

    `busy_since` and `strand` are written by this worker's thread only; others read them and expect to be late.
    `_underway` holds the run underway, if any. Whoever takes it out says how the run ended, this thread with the
    outcome or the pool by giving the job back: never both, never neither. `_ended` holds its outcome while listeners
    are called.
    """

    def __init__(
        self,
        name: str,
        *,
        worker_id: str,
        handoff: Handoff,
        find_task: FindTask,
        report: Report,
        resources: TaskResources,
        events: Events,
        on_end: Callable[[], None],
        timeouts: Timeouts | None = None,
        cancellations: Cancellations | None = None,
        lease: Lease | None = None,
    ) -> None:
        self.name = name
        self.is_overrun = False
        """True while the thread is still busy with a run whose end was said already."""
        self._timeouts = timeouts or Timeouts()
        self._cancellations = cancellations
        self._lease = lease or Lease()
        self._pending: Mapping[int, object] = cancellations.pending if cancellations is not None else {}
        self.busy_since = 0.0
        self.strand: Strand | None = None
        self._underway: list[JobContext] = []
        self._ended: list[Outcome] = []
        self._worker_id = worker_id
        self._handoff = handoff
        self._find_task = find_task
        self._report = report
        self._resources = resources
        self._events = events
        self._on_end = on_end
        self._bell = threading.Lock()
        # A daemon: a task in native code that never returns must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def context(self) -> JobContext | None:
        """The context of the job that runs now."""
        try:
            return self._underway[0]
        except IndexError:
            return None

    def interrupt(self) -> JobContext | None:
        """Take the run underway away from this worker, whose outcome then counts for nothing; None: nothing runs."""
        try:
            return self._underway.pop()
        except IndexError:
            self._report_ended()  # a listener that does not return must not keep the outcome back
            return None

    def end_early(self, context: JobContext, outcome: Failed) -> bool:
        """Say how this run ended while its thread goes on, which counts for nothing; False: it has ended by itself."""
        self.is_overrun = True  # before the run is taken out, or the thread might end unseen in between
        try:
            self._underway.remove(context)
        except ValueError:
            self.is_overrun = False
            return False
        self._tell_failure(outcome)
        self._report(outcome)
        return True

    def start(self) -> None:
        """Begin to take jobs; returns at once."""
        self._thread.start()

    def join(self, seconds: float | None) -> bool:
        """Wait for the thread to end; True when it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._events.wants(WorkerStarted):
            self._events.emit(WorkerStarted(worker_id=self._worker_id, thread=self.name))
        while (item := self._handoff.take(self._bell)) is not None:
            if type(item) is Job:
                self.run(item)
            else:
                self._run_strand(item)  # type: ignore[arg-type] # the other member of the union
        if self._events.wants(WorkerStopped):
            self._events.emit(WorkerStopped(worker_id=self._worker_id, thread=self.name))
        self._on_end()

    def _run_strand(self, strand: Strand) -> None:
        """Run the jobs of one named queue in their order; the pool may take back those at the far end meanwhile."""
        self.strand = strand
        while True:
            try:
                job = strand.popleft()
            except IndexError:
                break
            if self._handoff.is_closed:
                self._report(Returned(job, "the worker is stopping", started=False))
            else:
                self.run(job)
        self.strand = None

    def run(self, job: Job) -> None:
        """Run one job and report its outcome."""
        task = self._find_task(job.task_identifier)
        if task is None:  # its file was deleted under --watch between claim and run
            self._report(Returned(job, f"task '{job.task_identifier}' is no longer known here", started=False))
            return
        if steady_time() > self._lease.until:
            self._report(Returned(job, LEASE_IS_OVER, started=False))
            return
        context = JobContext(job, self._resources, worker_id=self._worker_id, thread_name=self.name)
        events = self._events
        self.busy_since = time.perf_counter()
        self._underway.append(context)
        if self._pending and self._end_unbegun(job):
            return
        if events.wants(JobStarted):
            events.emit(JobStarted(thread=self.name, job=job))
        timed = None if task.timeout is None else self._timeouts.begin(self, context, task.timeout)
        try:
            outcome: Outcome = execute(job, task, context)
        except BaseException as error:  # noqa: BLE001 - an exception can be as broken as its task
            outcome = self._failure(job, error)
        if timed is not None:
            outcome = self._timeouts.end(timed, outcome)
        if self._pending and self._cancellations is not None:
            seconds = time.perf_counter() - self.busy_since
            outcome = self._cancellations.verdict(job, seconds) or outcome
        self.busy_since = 0.0
        if self.is_overrun and not self._underway:
            self.is_overrun = False
            return
        # Taken out before anything is said of it: whoever takes it out is the only one to say how the run ended.
        try:
            self._underway.pop()
        except IndexError:  # interrupted: the job has been given back, or failed
            self.is_overrun = False
            return
        self._ended.append(outcome)
        if type(outcome) is Completed:
            if events.wants(JobSucceeded):
                events.emit(JobSucceeded(thread=self.name, job=job, seconds=outcome.seconds))
        elif type(outcome) is Failed:
            self._tell_failure(outcome)
        self._report_ended()

    def _report_ended(self) -> None:
        """Report the outcome of the run that has ended, unless somebody else has done so."""
        try:  # not `suppress`, which takes as long as all the rest of a trivial run's end
            outcome = self._ended.pop()
        except IndexError:
            return
        self._report(outcome)

    def _end_unbegun(self, job: Job) -> bool:
        """End a run before it begins when its job was cancelled; False: it was not."""
        failure = self._cancellations.verdict(job) if self._cancellations is not None else None
        if failure is None:
            return False
        self.busy_since = 0.0
        if self.interrupt() is not None:
            self._tell_failure(failure)
            self._report(failure)
        return True

    def _failure(self, job: Job, error: BaseException) -> Failed:
        """Return the outcome when not even the task's own error could be read: a job must not hang on it."""
        message = f"{type(error).__name__} while the task's own error was read"
        return Failed(job, time.perf_counter() - self.busy_since, error, message)

    def _tell_failure(self, outcome: Failed) -> None:
        job, error = outcome.job, outcome.error
        self._events.emit(JobErrored(thread=self.name, job=job, error=error, seconds=outcome.seconds))
        if outcome.is_final:
            self._events.emit(JobFailed(thread=self.name, job=job, error=error))
