"""Cancel jobs of this pool that an operator wants to end, running or about to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gw_core.domain.cancellation import CancelRequest, JobCancelledError
from gw_core.domain.claim import is_same_claim
from gw_core.domain.events import Events, JobCancelling
from gw_core.domain.job import Job
from gw_core.domain.outcome import Failed
from gw_core.worker.ledger import Ledger
from gw_core.worker.thread import WorkerThread
from gw_core.worker.timeouts import Timeouts


class Cancellations:
    """Wishes this pool has heard, by the job: each is fulfilled once.

    `pending` is changed by single operations, which the interpreter makes whole. A worker notes its run before it
    looks here, and a wish is noted here before the runs are looked at: one of the two sees the other.
    """

    def __init__(self, worker_id: str, ledger: Ledger, timeouts: Timeouts, events: Events) -> None:
        self.pending: dict[int, CancelRequest] = {}
        """Wishes not yet fulfilled; a worker asks whether there are any before and after each run."""
        self._worker_id = worker_id
        self._ledger = ledger
        self._timeouts = timeouts
        self._events = events

    def take(self, wishes: Sequence[CancelRequest], workers: Sequence[WorkerThread]) -> None:
        """Tell the tasks of these jobs to stop; jobs that have not begun will not."""
        held = {job.id: job for job in self._ledger.open_jobs()}
        for job_id in list(self.pending):
            if job_id not in held:  # ended by itself at that very moment
                self.pending.pop(job_id, None)
        for wish in wishes:
            job = held.get(wish.job_id)
            if job is not None and is_same_claim(job.locked_at_epoch, wish.locked_at_epoch):
                self.pending[wish.job_id] = wish
                self._events.emit(JobCancelling(worker_id=self._worker_id, job=job, message=wish.message))
        for worker in workers:
            context = worker.context
            if context is not None and context.job.id in self.pending:
                self._timeouts.cancel(worker, context, partial(self.verdict, context.job))

    def verdict(self, job: Job, seconds: float = 0.0) -> Failed | None:
        """Return how a run ends whose job was cancelled, once; None for all others."""
        wish = self.pending.pop(job.id, None)
        if wish is None or not is_same_claim(job.locked_at_epoch, wish.locked_at_epoch):  # it meant an earlier attempt
            return None
        return _failure(job, wish, seconds)


def _failure(job: Job, wish: CancelRequest, seconds: float) -> Failed:
    return Failed(job, seconds, JobCancelledError(wish.message), wish.message, permanent=not wish.retry)
