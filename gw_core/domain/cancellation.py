"""Cancelling running jobs: what is asked of their pools, and what an operator is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gw_core.domain.errors import GraphileWorkerError

HEARS: Final = r"^gw-.+-[0-9]+-[0-9a-f]{10}$"
"""The ids of pools that know how to cancel; those of Node.js and of the Rust port look otherwise."""


class JobCancelledError(GraphileWorkerError):
    """Somebody cancelled the job while it ran; the message says who, and why."""


class StopReason(StrEnum):
    """Why a task is asked to stop."""

    WORKER_STOPS = "worker stops"
    """The worker was told to end; what the task cannot end in time is given back."""
    TIMEOUT = "timeout"
    """The task's time is over; the attempt fails."""
    CANCELLED = "cancelled"
    """An operator cancelled the job; the attempt fails, usually for good."""
    LOST = "lost"
    """The job was taken from this worker, which had been silent; nothing the task still does will count."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A request to cancel one attempt of a job; with `retry` the job keeps its further attempts."""

    job_id: int
    message: str
    retry: bool
    locked_at_epoch: float | None = None
    """The claim that was seen when the request was made, in seconds since 1970; a later attempt is left alone."""


class CancelResult(StrEnum):
    """What became of the wish to cancel a job."""

    CANCELLED = "cancelled"
    """Its attempt has ended as failed."""
    ENDED = "ended"
    """It ended by itself, or went to another worker, before the wish arrived."""
    STOPPING = "stopping"
    """Its worker has heard, and the task was told, but it still runs."""
    NO_ANSWER = "no answer"
    """Its worker has not heard yet: it only polls, is stopping, or is dead. It will, when it looks."""
    CANNOT_HEAR = "cannot hear"
    """Its worker is of another kind, such as Node.js, and cannot be asked."""
    NOT_RUNNING = "not running"
    """Nobody runs it."""
    MISSING = "missing"
    """There is no such job, or no longer."""

    @property
    def is_over(self) -> bool:
        """True when the job does not run any more, or did not."""
        return self in (CancelResult.CANCELLED, CancelResult.ENDED)


@dataclass(frozen=True, slots=True)
class CancelledJob:
    """A job that was to be cancelled, what became of that, and who runs or ran it."""

    id: int
    task: str | None
    result: CancelResult
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class CancelStatus:
    """A job as it is found after the wish: who holds it, what it says, and whether the wish still waits."""

    locked_by: str | None
    last_error: str | None
    is_waiting: bool


def message_of(by: str, reason: str | None) -> str:
    """Return what the job's last error is to say."""
    return f"cancelled by {by}" if not reason else f"cancelled by {by}: {reason}"


def result_of(look: CancelStatus | None, *, worker: str, message: str) -> CancelResult:
    """Say what became of a job that `worker` ran when it was asked; `look` is None when the job is gone."""
    if look is None or look.locked_by != worker:
        was_ours = look is not None and look.last_error == message
        return CancelResult.CANCELLED if was_ours else CancelResult.ENDED
    return CancelResult.NO_ANSWER if look.is_waiting else CancelResult.STOPPING
