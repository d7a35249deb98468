"""Which claims a worker holds in the database: jobs not yet settled, and the named queues locked for them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from gw_core.domain.claim import Locked, QueueLock
from gw_core.domain.job import Job
from gw_core.domain.outcome import Outcome

Key = TypeVar("Key")


class Ledger:
    """The claims of this worker. Safe from any thread; `_lock` guards everything and is held briefly.

    A claim is *open* until its outcome is known, then *settling* until the outcome is written. A claim locks a queue
    together with the jobs it takes from it, and the queue is released with the last of these jobs, not before: that is
    what keeps it serial.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Job] = {}
        self._open_of_queue: Counter[int] = Counter()
        self._settling: dict[int, Job] = {}
        """By identity: an earlier claim of a job may still be settling, in doubt, when a later one is open."""
        self._unwritten: Counter[QueueLock] = Counter()
        self._contested: list[Job] = []
        """Claims that had to go back because of an earlier one that was open."""

    def __len__(self) -> int:
        """Return how many claims are open."""
        return len(self._open)

    def add(self, jobs: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """Note claimed jobs. Returns those that may start, and those that must go back.

        A job goes back when this very worker still runs an earlier attempt of it, or an earlier job of its queue: the
        earlier lock was taken away, as after a freeze, but the task does not know that yet.
        """
        start: list[Job] = []
        conflicting: list[Job] = []
        with self._lock:
            running_queues = set(self._open_of_queue)
            for job in jobs:
                if job.queue_id is not None:
                    self._unwritten[_queue_lock(job.queue_id, job)] += 1
                if job.id in self._open or job.queue_id in running_queues:
                    self._settling[id(job)] = job
                    self._contested.append(job)
                    conflicting.append(job)
                    continue
                self._open[job.id] = job
                if job.queue_id is not None:
                    self._open_of_queue[job.queue_id] += 1
                start.append(job)
        return start, conflicting

    def begin_settling(self, outcomes: Iterable[Outcome]) -> bool:
        """Note that the outcomes of these claims are known and wait to be written; True if any may be contested."""
        with self._lock:
            for outcome in outcomes:
                job = outcome.job
                if self._open.get(job.id) is not job:  # one that had to go back was never open
                    continue
                del self._open[job.id]
                self._settling[id(job)] = job
                if job.queue_id is not None:
                    _count_down(self._open_of_queue, job.queue_id)
            return bool(self._contested)

    def is_contested(self, outcome: Outcome) -> bool:
        """Tell whether there are two claims of this job, or of its queue: then the outcome must be written alone.

        A settling statement is given the claims of all its outcomes at once, and a row must match its own.
        """
        job = outcome.job
        with self._lock:
            return any(
                other.id == job.id or (job.queue_id is not None and other.queue_id == job.queue_id)
                for other in self._contested
            )

    def queues_released_by(self, outcomes: Iterable[Outcome]) -> list[QueueLock]:
        """Return the queue locks that end when these outcomes are written, for they are the last of their claim."""
        settled = Counter(
            _queue_lock(outcome.job.queue_id, outcome.job) for outcome in outcomes if outcome.job.queue_id is not None
        )
        if not settled:
            return []
        with self._lock:
            return sorted(lock for lock, count in settled.items() if count == self._unwritten[lock])

    def discard(self, outcomes: Iterable[Outcome]) -> None:
        """Forget the claims of these outcomes: they are written, or known to be lost."""
        with self._lock:
            for outcome in outcomes:
                job = outcome.job
                if self._settling.pop(id(job), None) is not None and job.queue_id is not None:
                    _count_down(self._unwritten, _queue_lock(job.queue_id, job))
            if self._contested:
                self._contested = [job for job in self._contested if id(job) in self._settling]

    def open_jobs(self) -> list[Job]:
        """Return the jobs whose outcome is not known yet: running, or about to."""
        with self._lock:
            return list(self._open.values())

    def locked(self) -> Locked:
        """Return all jobs and queues locked in the database: open, or with an outcome not yet written."""
        with self._lock:
            jobs = [*self._open.values(), *self._settling.values()]
            queues = sorted(self._unwritten)
        return Locked(sorted(jobs, key=lambda job: job.id), queues)


def _queue_lock(queue_id: int, job: Job) -> QueueLock:
    return queue_id, job.locked_at_epoch or 0.0


def _count_down(counter: Counter[Key], key: Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
