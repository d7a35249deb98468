"""The states a job can be in."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """The state of a job; each job is in exactly one.

    Example: docs/api/gw_core.md
    """

    READY = "ready"
    """It may run now; a job whose named queue is busy waits for it in this state."""
    SCHEDULED = "scheduled"
    """It is scheduled for later and has not failed."""
    WAITING = "waiting"
    """It waits for other jobs to end."""
    RUNNING = "running"
    """A worker holds it."""
    BACKOFF = "backoff"
    """It has failed and waits for its next attempt."""
    FAILED = "failed"
    """It failed permanently: no attempts are left."""


UNCLAIMED: Final = frozenset({JobState.READY, JobState.SCHEDULED, JobState.WAITING, JobState.BACKOFF})
"""The states of jobs that a worker will take, now or later."""

LATER: Final = UNCLAIMED - {JobState.READY}
"""The states of jobs that wait for their `run_at`, or for other jobs."""
