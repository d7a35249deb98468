"""How a worker is, classify_error from its last sign of life."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

from gw_core import RecoverySettings
from gw_core.operations import WorkerInfo

LATE: Final = 1 / 3
"""A heartbeat older than this share of what counts as dead is late: several beats are missing."""


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
    return WorkerHealth.LATE if silence(worker, recovery) >= LATE else WorkerHealth.HEALTHY


def silence(worker: WorkerInfo, recovery: RecoverySettings) -> float:
    """Return how near a worker is to counting as dead, from 0 to 1."""
    return min(1.0, worker.inactive_for / max(allowed(worker, recovery), timedelta(milliseconds=1)))


def allowed(worker: WorkerInfo, recovery: RecoverySettings) -> timedelta:
    """Return how long this worker may be silent."""
    if not worker.has_heartbeat:
        return recovery.orphans_after
    return recovery.threshold * (recovery.resilient_multiplier if worker.is_resilient else 1)
