"""How many jobs the next claim should ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gw_core.domain.job.job import Job
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.worker.handoff import Handoff
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.ledger import Ledger
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.settler import Settler

MAX_UNSETTLED: Final = 20_000
"""With more outcomes waiting for the database no jobs are claimed: they fill memory and keep their jobs locked."""

ORDINARY: Final = 500
"""The jobs of a claim at most, unless one thread runs more than these within the prefetch window."""

RETURN_SHARE: Final = 0.2
"""Share of the prefetch window that remains for returning jobs that cannot start here and claiming them elsewhere."""


class ClaimDemand:
    """How many jobs to claim: for idle threads, and ahead for those that end soon. The thread that claims uses it."""

    def __init__(
        self,
        *,
        settings: WorkerSettings,
        handoff: Handoff,
        ledger: Ledger,
        settler: Settler,
        slots: Sequence[RunSlot],
        lease: Lease,
    ) -> None:
        self.size = ClaimSize(claim_limit=settings.claim_limit, claim_bytes=settings.claim_bytes)
        self._settings = settings
        self._handoff = handoff
        self._ledger = ledger
        self._settler = settler
        self._slots = slots
        self._lease = lease
        self._window = prefetch_window(settings)

    def limit(self) -> int:
        """Return how many jobs to claim now. Without demand, the hand-off wakes the claimer when it runs low."""
        if limit := self._limit():
            self._handoff.call_when_low(-1)
            return limit
        # Requested before checking again, so that a thread that becomes idle in between is noticed.
        self._handoff.call_when_low(self._prefetch_limit() // 2)
        limit = self._limit()
        if limit:
            self._handoff.call_when_low(-1)
        return limit

    def per_queue(self) -> int:
        """Return how many jobs of one named queue a claim may take: as many as one thread runs within the window."""
        mean = self._settler.durations.mean
        limit = self._settings.claim_limit
        return 1 if mean is None else max(1, jobs_in_window(mean, window=self._window, claim_limit=limit))

    def _limit(self) -> int:
        """Return how many jobs to claim; none while too many outcomes are unwritten or the lease allows none."""
        if self._settler.unsettled >= MAX_UNSETTLED or not self._lease.allows_claims:
            return 0
        demand = claim_demand(
            idle=self._handoff.idle,
            waiting=self._handoff.waiting,
            prefetch=self._prefetch_limit(),
            threads=self._settings.concurrency,
            outstanding=len(self._ledger) - self._settler.reported,
            max_jobs=min(self.size.max_jobs, self._claim_size()),
        )
        return max(0, demand)

    def _claim_size(self) -> int:
        mean, limit = self._settler.durations.lasting_mean, self._settings.claim_limit
        return claim_size(mean, window=self._window, claim_limit=limit, queues=self.size.queues)

    def _prefetch_limit(self) -> int:
        """Return how many jobs fit into the prefetch window of the threads that are not stuck in a long job."""
        return prefetch_limit(
            self._settler.durations.mean,
            threads=available_threads(self._slots, self._window),
            window=self._window,
            claim_limit=self._claim_size(),
        )


class ClaimSize:
    """How many jobs a claim asks for at most.

    Fewer after one that failed, for its answer may have been too large, and after one that was cut for the size of its
    payloads, since the server unpacks all that it is asked for.
    """

    def __init__(self, *, claim_limit: int, claim_bytes: int) -> None:
        self._claim_limit = claim_limit
        self._claim_bytes = claim_bytes
        self.max_jobs = claim_limit
        self.queues = 0
        """How many named queues the last claim locked."""
        self.has_filled_memory = False
        """Whether payloads have filled the memory for a claim since memory was last returned to the system."""

    def note_claim(self, jobs: Sequence[Job], limit: int) -> bool:
        """Note what a claim found; return whether the size of the payloads may have ended it."""
        # A character takes up to four bytes.
        is_cut = 0 < len(jobs) < limit and 4 * sum(len(job.payload_json) for job in jobs) >= self._claim_bytes
        self.has_filled_memory |= is_cut
        self.queues = len({job.queue_id for job in jobs} - {None})
        self.max_jobs = min(self._claim_limit, 2 * (len(jobs) if is_cut else self.max_jobs))
        return is_cut

    def note_failure(self) -> None:
        """Note that a claim failed."""
        self.max_jobs = max(1, self.max_jobs // 2)


def prefetch_window(settings: WorkerSettings) -> float:
    """Return the seconds of work that are claimed beyond idle threads."""
    return (1 - RETURN_SHARE) * settings.prefetch.total_seconds()


def available_threads(slots: Iterable[RunSlot], window: float) -> int:
    """Return how many threads are not stuck in a job that takes longer than the window."""
    long_ago = steady_time() - window
    return sum(1 for slot in slots if not 0.0 < slot.busy_since < long_ago)


def jobs_in_window(mean_seconds: float, *, window: float, claim_limit: int) -> int:
    """Return how many jobs of mean duration one thread runs within the prefetch window."""
    return int(window / mean_seconds) if mean_seconds > 1e-9 else claim_limit


def claim_size(lasting_mean: float, *, window: float, claim_limit: int, queues: int) -> int:
    """Return how many jobs a claim may ask for: more of those that take microseconds.

    A claim passes the index entries of all jobs claimed since the last vacuum, so that fewer and larger claims cost
    less. Of longer jobs, large claims would take too many from other workers and from urgent jobs. If the last claim
    locked several `queues`, a large one might lock them all, and the next would find none until they are released.
    """
    if queues > 1:
        return min(claim_limit, ORDINARY)
    return min(claim_limit, max(ORDINARY, jobs_in_window(lasting_mean, window=window, claim_limit=claim_limit)))


def prefetch_limit(mean_seconds: float | None, *, threads: int, window: float, claim_limit: int) -> int:
    """Return how many jobs may wait for `threads` threads; none before the first job has ended."""
    if mean_seconds is None:
        return 0
    per_thread = jobs_in_window(mean_seconds, window=window, claim_limit=claim_limit)
    return min(2 * claim_limit, threads * per_thread)


def claim_demand(*, idle: int, waiting: int, prefetch: int, threads: int, outstanding: int, max_jobs: int) -> int:
    """Return how many jobs to claim: for idle threads, and ahead up to the prefetch limit.

    While no thread is idle and more than half of the prefetch limit waits, the next claim can wait too.
    """
    if not idle and waiting > prefetch // 2:
        return 0
    return min(max_jobs, max(idle - waiting, threads + prefetch - outstanding))
