"""Cancelling running jobs: the request to their workers, and the result."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec

from gw_core.domain.errors import GraphileWorkerError

CANCELLABLE_WORKERS: Final = r"^gw-.+-[0-9]+-[0-9a-f]{10}$"
"""The ids of workers that support cancellation; those of Node.js and graphile_worker_rs do not match."""


class JobCancelledError(GraphileWorkerError):
    """An operator cancelled the job while it ran; the message has the operator and the reason.

    Example: docs/api/errors.md
    """


class StopReason(StrEnum):
    """Why a task should stop.

    Example: docs/api/gw_core.md
    """

    SHUTDOWN = "shutdown"
    """The worker shuts down; a task that does not finish in time returns to the queue."""
    TIMEOUT = "timeout"
    """The task exceeded its timeout; the attempt fails."""
    CANCELLED = "cancelled"
    """An operator cancelled the job; the attempt fails, usually permanently."""
    LOCK_LOST = "lock_lost"
    """The worker lost the job's lock, because it was presumed dead; the result of the task is discarded."""


class Overrun(msgspec.Struct, frozen=True):
    """A task that has not ended although its timeout passed or its job was cancelled, `age` ago.

    It keeps its thread, and its job stays locked, until it returns or its worker's process ends.
    """

    job_id: int
    thread: str
    reason: StopReason
    age: timedelta


class CancelRequest(msgspec.Struct, frozen=True):
    """A request to cancel one attempt of a job; with `retry` the job keeps its further attempts."""

    job_id: int
    message: str
    retry: bool
    locked_at_epoch: float | None = None
    """The claim to cancel, as its `locked_at` in seconds since 1970; a later attempt is not cancelled."""
    asked_at_epoch: float = 0.0
    """When it was made, in seconds since 1970."""


class CancelResult(StrEnum):
    """The result of a request to cancel a job."""

    CANCELLED = "cancelled"
    """Its attempt has failed, or it waited for others and was dropped."""
    ALREADY_FINISHED = "already_finished"
    """It finished, or another worker claimed it, before the request arrived."""
    STOPPING = "stopping"
    """Its worker has notified the task, which is still running."""
    NO_RESPONSE = "no_response"
    """Its worker has not received the request yet: it only polls, is stopping, or is dead."""
    UNSUPPORTED_WORKER = "unsupported_worker"
    """Its worker does not support cancellation, for example one of Node.js."""
    NOT_RUNNING = "not_running"
    """No worker runs it."""
    NOT_FOUND = "not_found"
    """The job does not exist."""

    @property
    def is_over(self) -> bool:
        """True if the job is no longer running."""
        return self in (CancelResult.CANCELLED, CancelResult.ALREADY_FINISHED)


class CancelledJob(msgspec.Struct, frozen=True):
    """A job to cancel, the result, and the worker that runs or ran it.

    Example: docs/api/parts.md
    """

    id: int
    task: str | None
    result: CancelResult
    worker: str | None = None


Status = tuple[str | None, str | None, bool]
"""A job's status after the request: its worker, its last error, and whether the request is still pending."""


def message_of(by: str, reason: str | None) -> str:
    """Return the job's last error."""
    return f"cancelled by {by}" if not reason else f"cancelled by {by}: {reason}"


def result_of(status: Status | None, *, worker: str, message: str) -> CancelResult:
    """Return the result for a job that `worker` ran at the request; `status` is None if the job is deleted."""
    locked_by, last_error, is_pending = status or (None, None, False)
    if locked_by != worker:
        return CancelResult.CANCELLED if last_error == message else CancelResult.ALREADY_FINISHED
    return CancelResult.NO_RESPONSE if is_pending else CancelResult.STOPPING
