"""The states a job can be in."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from gw_core.domain.errors import InvalidInputError


class JobState(StrEnum):
    """What a job is doing; each job is in exactly one state."""

    READY = "ready"
    """It may run now; a job whose named queue is busy waits for it in this state."""
    SCHEDULED = "scheduled"
    """It is scheduled for later and has not failed."""
    RUNNING = "running"
    """A worker holds it."""
    BACKOFF = "backoff"
    """It has failed and waits for its next attempt."""
    FAILED = "failed"
    """It failed permanently: no attempts are left."""

    @classmethod
    def parse(cls, value: str) -> JobState:
        """Return the state of that name; raises `InvalidInputError` for a name that is none."""
        try:
            return cls(value)
        except ValueError:
            raise InvalidInputError(f"{value!r} is not a state of a job; give one of {', '.join(cls)}") from None


WAITING: Final = frozenset({JobState.READY, JobState.SCHEDULED, JobState.BACKOFF})
"""The states of jobs that a worker will take, now or later."""
