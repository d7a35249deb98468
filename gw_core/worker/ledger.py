"""What a pool holds in the database: its jobs, and the named queues they keep."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from gw_core.domain.job import Job
from gw_core.domain.outcome import Outcome


class Ledger:
    """The jobs claimed and not yet settled. Safe from any thread; `_lock` guards everything and is held briefly.

    A queue is freed with the last of its jobs that this pool holds, and not before: that is what keeps it serial.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._being_written: list[Sequence[Outcome]] = []
        self._held_of_queue: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._jobs)

    def enter(self, jobs: Iterable[Job]) -> None:
        """Note jobs that were claimed.

        A job that is already noted was taken from us and claimed again: the older run's outcome will count for nothing.
        """
        with self._lock:
            for job in jobs:
                older = self._jobs.get(job.id)
                self._jobs[job.id] = job
                if older is not None:  # and perhaps of another queue: it was free to be replaced in between
                    self._drop(older.queue_id)
                if job.queue_id is not None:
                    self._held_of_queue[job.queue_id] += 1

    def strike(self, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome], list[int]]:
        """Take out the jobs of these outcomes.

        Returns the outcomes to write, those that are void because the run is no longer the noted one, and the queues
        that can be freed.
        """
        valid: list[Outcome] = []
        void: list[Outcome] = []
        freed: list[int] = []
        with self._lock:
            for outcome in outcomes:
                job = outcome.job
                if self._jobs.get(job.id) is not job:
                    void.append(outcome)
                    continue
                del self._jobs[job.id]
                valid.append(outcome)
                if job.queue_id is not None and self._drop(job.queue_id):
                    freed.append(job.queue_id)
            self._being_written.append(valid)
        return valid, void, freed

    def forget(self, struck: Sequence[Outcome]) -> None:
        """Note that the outcomes of one `strike`, this very list, are written."""
        with self._lock:
            self._being_written = [each for each in self._being_written if each is not struck]

    def holds(self, job: Job) -> bool:
        """True while this very run is the noted one."""
        return self._jobs.get(job.id) is job

    def jobs(self) -> list[Job]:
        """Return the jobs held now."""
        with self._lock:
            return list(self._jobs.values())

    def ids(self) -> list[int]:
        """Return the ids of all jobs that are ours in the database: held, or with an outcome not yet written."""
        with self._lock:
            return sorted({*self._jobs, *(each.job.id for each in self._all_being_written())})

    def queue_ids(self) -> list[int]:
        """Return the queues of those jobs."""
        with self._lock:
            being_freed = {each.job.queue_id for each in self._all_being_written()}
            return sorted({*self._held_of_queue, *(each for each in being_freed if each is not None)})

    def _all_being_written(self) -> list[Outcome]:
        return [each for struck in self._being_written for each in struck]

    def _drop(self, queue_id: int | None) -> bool:
        """Count one job less of this queue; True when it was the last."""
        if queue_id is None:
            return False
        self._held_of_queue[queue_id] -= 1
        if self._held_of_queue[queue_id]:
            return False
        del self._held_of_queue[queue_id]
        return True
