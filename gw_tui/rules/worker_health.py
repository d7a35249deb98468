"""The health of a worker, derived from its last heartbeat or lock, and what it does with a request to cancel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import structs

from gw_core import RecoverySettings
from gw_core.front_ends import FoundJob, counted
from gw_core.operations import WorkerInfo
from gw_tui.text import formatting, sanitize

LATE: Final = 1 / 3
"""A heartbeat older than this share of the threshold is late: several are missing."""


class WorkerHealth(StrEnum):
    """How a worker is, in one word."""

    HEALTHY = "healthy"
    LATE = "late"
    """Some heartbeats are missing."""
    STALE = "stale"
    """It counts as dead; a sweep takes its jobs."""
    UNKNOWN = "unknown"
    """It holds locks and writes no heartbeat, as workers of Node.js do."""


def health(worker: WorkerInfo, recovery: RecoverySettings) -> WorkerHealth:
    """Return how a worker is."""
    if worker.is_stale:
        return WorkerHealth.STALE
    if not worker.has_heartbeat:
        return WorkerHealth.UNKNOWN
    return WorkerHealth.LATE if staleness(worker, recovery) >= LATE else WorkerHealth.HEALTHY


def staleness(worker: WorkerInfo, recovery: RecoverySettings) -> float:
    """Return how close a worker is to being presumed dead, from 0 to 1."""
    return min(1.0, worker.inactive_for / max(recovery.allowed_inactivity(worker), timedelta(milliseconds=1)))


def aged(worker: WorkerInfo, by: timedelta) -> WorkerInfo:
    """Return a worker with the ages that it has a while later."""
    heartbeat, lock = worker.heartbeat_age, worker.lock_age
    return structs.replace(
        worker,
        heartbeat_age=None if heartbeat is None else heartbeat + by,
        lock_age=None if lock is None else lock + by,
    )


def cancel_effects(jobs: Iterable[FoundJob], workers: Mapping[str, WorkerInfo]) -> Iterator[str]:
    """Yield a line for each worker that holds some of the jobs."""
    held = Counter(each.job.locked_by for each in jobs if each.job.locked_by is not None)
    for worker_id, count in sorted(held.items()):
        yield f"{sanitize.line(worker_id, 40)}: {_effect(count, workers.get(worker_id))}"


def _effect(count: int, worker: WorkerInfo | None) -> str:
    jobs = counted(count, "job")
    if worker is None or worker.heartbeat_age is None:
        return f"{jobs}; sends no heartbeats, so it may be unable to cancel, like a Node.js worker"
    age = formatting.duration(worker.heartbeat_age)
    if worker.is_stale:
        return f"{jobs}; gone for {age}, nothing stops. Release its locks with u instead"
    return f"asks {jobs} to stop; last heartbeat {age} ago"
