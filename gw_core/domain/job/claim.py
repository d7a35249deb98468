"""What identifies a claim: one worker's lock on one attempt of a job, and on the queue of that job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gw_core.domain.job.job import Job

RENEWAL_STEP: Final = 600
"""Seconds. A renewal moves `locked_at` by whole multiples of this; `parts/is_of_claim.sql` relies on it."""

QueueLock = tuple[int, float]
"""A queue's id, and the `locked_at` of the claim that locked it, in seconds since 1970."""


class Locked(msgspec.Struct, frozen=True):
    """Everything a worker has locked in the database, as far as it knows."""

    jobs: Sequence[Job]
    queues: Sequence[QueueLock]


def queue_lock(job: Job) -> QueueLock | None:
    """Return the lock on its queue that the claim of this job holds; None for a job without a named queue."""
    return None if job.queue_id is None else (job.queue_id, job._locked_at or 0.0)


def queue_locks(jobs: Iterable[Job]) -> list[QueueLock]:
    """Return the queue locks of the claims of these jobs, each once, in order."""
    return sorted({lock for job in jobs if (lock := queue_lock(job)) is not None})


def claim_number(locked_at: float | None) -> int:
    """Return the number of the claim that wrote `locked_at` (seconds since 1970); renewals do not change it."""
    return round((locked_at or 0.0) * 1e6) % (RENEWAL_STEP * 1_000_000)


def is_same_claim(locked_at: float | None, other: float | None) -> bool:
    """Return whether two values of `locked_at` of a job and worker, in seconds since 1970, belong to one claim."""
    return locked_at is not None and other is not None and claim_number(locked_at) == claim_number(other)
