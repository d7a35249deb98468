"""The run in progress on one thread, and who reports how it ends."""

from __future__ import annotations

from collections.abc import Callable

from gw_core.domain.job.outcome import Failed, Outcome
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobErrored, JobFailed
from gw_core.execution.context import JobContext
from gw_core.worker.handoff import QueueBatch

Report = Callable[[Outcome], None]


class RunSlot:
    """What one thread runs now. The party that takes the run out of the slot reports its outcome: exactly one does.

    That is the thread itself when the task ends, or a worker that stops.
    Only the thread writes `busy_since` and `queue_batch`; other threads may read old values.
    """

    __slots__ = (
        "busy_since",
        "ended",
        "events",
        "queue_batch",
        "report",
        "running",
        "thread",
        "worker_id",
    )

    def __init__(self, thread: str, *, worker_id: str, report: Report, events: Events) -> None:
        self.thread = thread
        self.worker_id = worker_id
        self.report = report
        self.events = events
        self.busy_since = 0.0
        """When the run started, by `steady_time`; 0.0 while nothing runs."""
        self.queue_batch: QueueBatch | None = None
        """The jobs of a named queue that the thread runs next."""
        self.running: list[JobContext] = []
        """Holds at most one context. `pop` is atomic, so one of two threads gets it."""
        self.ended: list[Outcome] = []
        """Holds the outcome while listeners run."""

    @property
    def context(self) -> JobContext | None:
        """The context of the job that runs now."""
        try:
            return self.running[0]
        except IndexError:
            return None

    def interrupt(self) -> JobContext | None:
        """Take the run out, so that its outcome is discarded; None when nothing runs."""
        try:
            return self.running.pop()
        except IndexError:
            self.report_ended()  # a listener that does not return must not keep the outcome back
            return None

    def report_ended(self) -> None:
        """Report the outcome of the run that has ended, unless another thread has done so."""
        try:  # not `suppress`, which takes as long as the rest of a trivial run's end
            outcome = self.ended.pop()
        except IndexError:
            return
        self.report(outcome)

    def emit_failure(self, outcome: Failed) -> None:
        """Emit the events of a failed attempt."""
        job, error = outcome.job, outcome.error
        worker_id, thread = self.worker_id, self.thread
        self.events.emit(JobErrored(worker_id=worker_id, thread=thread, job=job, error=error, seconds=outcome.seconds))
        if outcome.is_final:
            self.events.emit(JobFailed(worker_id=worker_id, thread=thread, job=job, error=error))
