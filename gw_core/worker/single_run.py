"""The end of a run that ends with its last job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.history import Keep
from gw_core.postgres.road.job_store import JobStore
from gw_core.worker.claim_policy import ClaimPolicy
from gw_core.worker.claimed_jobs import ClaimedJobs
from gw_core.worker.timeouts import Timeouts

MAX_REJECTIONS: Final = 3
"""How often in a row a function for forbidden flags may fail before the run gives up."""


class AllThreadsHeldError(GraphileWorkerError):
    """No thread of a single run is free, and none will be."""


class EndOfRun(msgspec.Struct, frozen=True):
    """What a single run calls at its end: with the reason, or with the error for which it gives up."""

    on_ended: Callable[[str], None]
    on_rejected: Callable[[GraphileWorkerError], None]


class SingleRun:
    """Decides when a single run has ended. The thread that claims uses it; any thread may call `is_settled`."""

    def __init__(
        self,
        *,
        threads: int,
        policy: ClaimPolicy,
        claimed_jobs: ClaimedJobs,
        timeouts: Timeouts,
        keeps: Callable[[], Mapping[str, Keep]],
        end: EndOfRun,
    ) -> None:
        self._threads = threads
        self._policy = policy
        self._claimed_jobs = claimed_jobs
        self._timeouts = timeouts
        self._keeps = keeps
        self._end = end

    def is_settled(self) -> bool:
        """Return whether all outcomes are written, except those of tasks that still run although they were stopped."""
        return self._claimed_jobs.is_settled(self._overruns())

    def end_if_drained(self, store: JobStore) -> bool:
        """End the run if nothing is left that it may run; return whether it has ended."""
        if not self.is_settled():
            return False
        # What may run is among what is due, so an empty queue needs only one of these statements.
        left = self._policy.left_jobs(store)
        if left and self._policy.is_anything_runnable(store):
            return False
        # No worker in another language notes that a job may go on, and this run has no check every minute.
        if store.end_members_of_others(self._keeps()):
            return False
        if self._claimed_jobs.has_run_any:  # where all runs are single ones, no other worker deletes these
            store.end_steps(None)
            store.expire_unique()
            store.forget_expiries()
        self._end.on_ended(self._policy.reason_to_end(left))
        return True

    def end_if_stuck(self, store: JobStore) -> None:
        """End the run if all its threads are held by tasks that do not end: it can run nothing more."""
        if self._overruns() >= self._threads and not self.end_if_drained(store):
            message = "every thread is held by a task that does not end; jobs are left"
            self._end.on_rejected(AllThreadsHeldError(message))

    def reject(self, error: GraphileWorkerError) -> None:
        """Give up after several failures of the function for forbidden flags."""
        if self._policy.rejections >= MAX_REJECTIONS:
            self._end.on_rejected(error)

    def _overruns(self) -> int:
        return len(self._timeouts.overruns) if self._timeouts.runs else 0
