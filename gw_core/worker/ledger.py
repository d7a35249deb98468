"""Which claims a worker holds in the database: jobs not yet settled, and the named queues locked for them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gw_core.domain.job.claim import Locked, QueueLock
from gw_core.domain.job.history import Keep
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Outcome

Key = TypeVar("Key")


class OutcomeBatch(msgspec.Struct, eq=False):
    """Outcomes of one kind, written in one statement."""

    outcomes: list[Outcome]
    in_doubt_since: float | None = None
    """When it was first sent, by `steady_time`, if the connection broke then: the server may have committed it."""
    is_reported: bool = False
    """True when it was reported that the database rejects it."""
    keeps: Mapping[str, Keep] = msgspec.field(default_factory=dict)
    """What history keeps of these outcomes, by task; empty: nothing."""
    _queue_locks: Counter[QueueLock] | None = None

    def job_ids(self) -> list[int]:
        """Return the ids of the jobs whose outcomes these are."""
        return [each.job.id for each in self.outcomes]

    def queue_locks(self) -> Counter[QueueLock]:
        """Return how many of these outcomes belong to each queue lock; counted once."""
        if self._queue_locks is None:
            self._queue_locks = Counter(_queue_locks(each.job for each in self.outcomes))
        return self._queue_locks


class Ledger:
    """The claims of this worker. Safe from any thread; `_lock` guards everything and is held briefly.

    A claim is *open* until its outcome is known, then *settling* until the outcome is written. A claim locks a queue
    together with the jobs it takes from it, and the queue is released with the last of these jobs, not before: that is
    what keeps it serial.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Job] = {}
        self._open_queues: dict[int, int] = {}
        self._settling: set[OutcomeBatch] = set()
        """Whole batches, so that a job costs nothing here."""
        self._unwritten: dict[QueueLock, int] = {}
        self._contested: list[Job] = []
        """Claims that had to be returned because an earlier one was open, until their outcome is written."""

    def __len__(self) -> int:
        """Return how many claims are open."""
        return len(self._open)

    def add(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], list[Job]]:
        """Add claimed jobs. Returns those that may start, and those that must be returned.

        A job is returned when this very worker still runs an earlier attempt of it, or an earlier job of its queue:
        the earlier lock was released by another session, as after a freeze, but the task does not know that yet.
        """
        with self._lock:
            conflicting = [job for job in jobs if job.id in self._open or job.queue_id in self._open_queues]
            start = jobs if not conflicting else [job for job in jobs if job not in conflicting]
            _add(self._unwritten, _queue_locks(jobs))
            for job in start:
                self._open[job.id] = job
            _add(self._open_queues, _queue_ids(start))
            self._contested += conflicting
        return start, conflicting

    @property
    def has_conflicts(self) -> bool:
        """True while there are two claims of a job or of a queue."""
        return bool(self._contested)

    def is_contested(self, outcome: Outcome) -> bool:
        """Return whether there are two claims of this job, or of its queue: then the outcome must be written alone.

        A settling statement receives the claims of all its outcomes together, and a row must match its own.
        """
        job = outcome.job
        with self._lock:
            return any(
                other.id == job.id or (job.queue_id is not None and other.queue_id == job.queue_id)
                for other in self._contested
            )

    def begin_settling(self, batches: Sequence[OutcomeBatch]) -> None:
        """Record that these outcomes are known and wait to be written."""
        with self._lock:
            for batch in batches:
                self._settling.add(batch)
                # A claim that had to be returned was never open.
                closed = [job for each in batch.outcomes if self._open.get((job := each.job).id) is job]
                for job in closed:
                    del self._open[job.id]
                _subtract(self._open_queues, _queue_ids(closed))

    def split(self, batch: OutcomeBatch, belongs: Callable[[Outcome], bool]) -> OutcomeBatch:
        """Move the outcomes that belong into a batch of their own, and return it."""
        other = replace(batch, outcomes=[each for each in batch.outcomes if belongs(each)], _queue_locks=None)
        with self._lock:
            self._settling.add(other)
            batch.outcomes = [each for each in batch.outcomes if not belongs(each)]
            batch._queue_locks = None
        return other

    def queues_released_by(self, batch: OutcomeBatch) -> list[QueueLock]:
        """Return the queue locks that end when this batch is written, since it has their last outcomes."""
        if not self._unwritten:  # nothing here belongs to a named queue
            return []
        locks = batch.queue_locks()
        with self._lock:
            return sorted(lock for lock, count in locks.items() if count == self._unwritten.get(lock))

    def discard(self, batch: OutcomeBatch) -> None:
        """Remove the claims of these outcomes: they are written, or known to be lost."""
        locks = batch.queue_locks().elements() if self._unwritten else ()
        with self._lock:
            self._settling.discard(batch)
            _subtract(self._unwritten, locks)
            if self._contested:
                written = {id(outcome.job) for outcome in batch.outcomes}
                self._contested = [job for job in self._contested if id(job) not in written]

    def open_jobs(self) -> list[Job]:
        """Return the jobs whose outcome is not known yet: running, or about to."""
        with self._lock:
            return list(self._open.values())

    def locked(self) -> Locked:
        """Return all jobs and queues locked in the database: open, or with an outcome not yet written."""
        with self._lock:
            settling = [outcome.job for batch in self._settling for outcome in batch.outcomes]
            jobs = {id(job): job for job in (*self._open.values(), *self._contested, *settling)}
            queues = sorted(self._unwritten)
        return Locked(sorted(jobs.values(), key=lambda job: job.id), queues)


def _queue_ids(jobs: Iterable[Job]) -> list[int]:
    return [job.queue_id for job in jobs if job.queue_id is not None]


def _queue_locks(jobs: Iterable[Job]) -> list[QueueLock]:
    return [(job.queue_id, job._locked_at or 0.0) for job in jobs if job.queue_id is not None]


def _add(counts: dict[Key, int], keys: Iterable[Key]) -> None:
    for key in keys:
        counts[key] = counts.get(key, 0) + 1


def _subtract(counts: dict[Key, int], keys: Iterable[Key]) -> None:
    """Count each key once less, and remove those that reach zero."""
    for key in keys:
        if counts[key] == 1:
            del counts[key]
        else:
            counts[key] -= 1
