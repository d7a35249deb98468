"""Cancel jobs of this worker on an operator's request, running or about to start."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.domain.job.cancellation import CancelRequest, JobCancelledError
from gw_core.domain.job.claim import is_same_claim
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Failed
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobCancelling
from gw_core.worker.ledger import Ledger
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.timeouts import Timeouts


class Cancellations:
    """The cancel requests this worker has received, by job: each is carried out once, however often it is received.

    `pending` is changed by single operations, which the interpreter makes atomic. A thread puts its run into its slot
    before it reads `pending`, and a request is added here before the slots are read: one of the two sees the other.
    """

    def __init__(self, worker_id: str, ledger: Ledger, timeouts: Timeouts, events: Events) -> None:
        self.pending: dict[int, CancelRequest] = {}
        """Requests not yet carried out; a thread checks whether there are any before and after each run."""
        self._worker_id = worker_id
        self._ledger = ledger
        self._timeouts = timeouts
        self._events = events

    def receive(self, requests: Sequence[CancelRequest], slots: Sequence[RunSlot]) -> None:
        """Ask the tasks of these jobs to stop; jobs that have not started will not start."""
        claimed = {job.id: job for job in self._ledger.open_jobs()}
        for job_id in list(self.pending):
            if job_id not in claimed:  # its run ended at the same time
                self.pending.pop(job_id, None)
        for request in requests:
            job = claimed.get(request.job_id)
            is_known = self.pending.get(request.job_id) == request
            if job is not None and not is_known and is_same_claim(job._locked_at, request.locked_at_epoch):
                self.pending[request.job_id] = request
                self._events.emit(JobCancelling(worker_id=self._worker_id, job=job, message=request.message))
        for slot in slots:
            context = slot.context
            if context is not None and (pending := self.pending.get(context.job.id)) is not None:
                self._timeouts.cancel(slot, context, retry=pending.retry)

    def outcome_of(self, job: Job, seconds: float = 0.0) -> Failed | None:
        """Return the outcome of a run whose job was cancelled, once; None for all others."""
        request = self.pending.pop(job.id, None)
        if request is None or not is_same_claim(job._locked_at, request.locked_at_epoch):  # of an earlier attempt
            return None
        return _failure(job, request, seconds)


def _failure(job: Job, request: CancelRequest, seconds: float) -> Failed:
    return Failed(job, seconds, JobCancelledError(request.message), request.message, permanent=not request.retry)
