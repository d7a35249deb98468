"""Jobs that were claimed: hand them to the threads, and return those that cannot start in time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Returned
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import PoolClaimed
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.worker.claim_demand import available_threads, prefetch_window
from gw_core.worker.handoff import Handoff, Item, QueueBatch
from gw_core.worker.lease import steady_time
from gw_core.worker.ledger import Ledger
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.settler import Settler

CONFLICT_DELAY: Final = timedelta(seconds=5)
"""How long a claimed job waits whose earlier attempt still runs here, after its lock was taken away."""

MIN_REST: Final = 0.002
"""Seconds between two checks whether waiting jobs must be returned."""

MIN_STUCK: Final = 0.04
"""Seconds for which a job may wait behind busy threads at least, however short the window."""


class ClaimedJobs:
    """The thread that claims uses it; `return_unstarted` and `return_waiting` may be called by any thread."""

    def __init__(
        self,
        *,
        worker_id: str,
        settings: WorkerSettings,
        handoff: Handoff,
        ledger: Ledger,
        settler: Settler,
        slots: Sequence[RunSlot],
        events: Events,
    ) -> None:
        self._worker_id = worker_id
        self._handoff = handoff
        self._ledger = ledger
        self._settler = settler
        self._slots = slots
        self._events = events
        self._window = prefetch_window(settings)
        self._stuck_after = max(MIN_STUCK, self._window)
        self.overdue_after = 2 * self._stuck_after
        """Seconds after which a job is returned that no thread has started."""
        self._handed_over = 0.0

    def is_settled(self, overruns: int = 0) -> bool:
        """Return whether this worker has no job whose outcome is not written, except these runs; from any thread."""
        return len(self._ledger) == overruns and self._settler.is_idle

    @property
    def has_run_any(self) -> bool:
        """Whether this worker has written how an attempt ended."""
        return self._settler.completed + self._settler.failed > 0

    def accept(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Record the claims of these jobs, and hand over and return those that may start."""
        startable, conflicting = self._ledger.add(jobs)
        if jobs and self._events.wants(PoolClaimed):
            self._events.emit(PoolClaimed(worker_id=self._worker_id, jobs=jobs))
        for job in conflicting:
            reason = "an earlier attempt of the job, or a job of its queue, still runs in this worker"
            self._settler.report(Returned(job, reason, delay=CONFLICT_DELAY, started=False))
        if startable:
            self._hand_over(startable)
        return startable

    def _hand_over(self, jobs: Sequence[Job]) -> None:
        items: list[Item] = []
        batches: dict[int, QueueBatch] = {}
        for job in jobs:
            if job.queue_id is None:
                items.append(job)
            elif job.queue_id in batches:
                batches[job.queue_id].append(job)
            else:
                batches[job.queue_id] = batch = QueueBatch([job])
                items.append(batch)
        self._handed_over = time.monotonic()
        is_alone = len(items) == 1 and self._handoff.idle == len(self._slots)
        self._handoff.put(items)
        if is_alone:
            # Gives up the GIL, for which the woken thread would wait until this one rests. With many jobs, this thread
            # would wait up to 5 ms to get it back before the next claim, which takes a tenth off a drain.
            time.sleep(0)

    # -- returning ---------------------------------------------------------------------------------------------------

    def return_overdue(self, now: float) -> None:
        """Return what was prefetched and still waits: another worker may be idle.

        That is when every thread is stuck in a job longer than the window, or the jobs are slower than thought.
        """
        if self._handoff.waiting and not self._handoff.idle:
            waited = now - self._handed_over
            is_stuck = waited > self._stuck_after and not available_threads(self._slots, self._window)
            if is_stuck or waited > self.overdue_after:
                self.return_waiting("not started within the prefetch window")
        stuck_since = steady_time() - self.overdue_after
        for slot in self._slots:
            batch = slot.queue_batch
            if batch and 0.0 < slot.busy_since < stuck_since:
                self._return(_emptied(batch), "not started within the prefetch window")

    def overdue_in(self, now: float) -> float:
        """Return the seconds until waiting jobs may have to be returned, unless a thread becomes idle first."""
        if not self._handoff.waiting:
            return float("inf")
        waited = now - self._handed_over
        youngest = steady_time() - max(slot.busy_since for slot in self._slots)
        stuck_in = max(self._stuck_after - waited, self._window - youngest)
        return max(MIN_REST, min(stuck_in, self.overdue_after - waited))

    def return_unstarted(self, reason: str) -> None:
        """Return everything claimed that has not started; from any thread, once the hand-off is closed."""
        self.return_waiting(reason)
        for slot in self._slots:
            if batch := slot.queue_batch:
                self._return(_emptied(batch), reason)

    def return_waiting(self, reason: str) -> None:
        """Return everything no thread has taken."""
        jobs: list[Job] = []
        for item in self._handoff.remove_waiting():
            if type(item) is Job:
                jobs.append(item)
            else:
                jobs.extend(_emptied(item))  # type: ignore[arg-type] # the other member of the union
        self._return(jobs, reason)

    def _return(self, jobs: Sequence[Job], reason: str) -> None:
        for job in jobs:
            self._settler.report(Returned(job, reason, started=False))


def _emptied(batch: QueueBatch) -> list[Job]:
    """Take the jobs from the far end of a batch, which its thread empties from the near end."""
    taken: list[Job] = []
    while True:
        try:
            taken.append(batch.pop())
        except IndexError:
            return taken
