"""What history keeps of a job that has ended, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gw_core.domain.errors import (
    InvalidJobError,
    JobFailedError,
    ResultError,
    ResultUnavailableError,
)
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.job import json_text

DEFAULT_KEEP: Final = timedelta(days=1)
"""How long the job of a task with `result=True` is kept when neither the task nor the worker sets a duration."""

MAX_KEEP: Final = timedelta(days=36_500)

MAX_RESULT_BYTES: Final = 1_000_000
"""The size of the largest result that history takes, as JSON."""


class HistoryOptions(msgspec.Struct, frozen=True):
    """What a task declares: `@task(keep=…, result=…, keep_payload=…)`. Without `keep`, the worker's setting counts."""

    keep: timedelta | None = None
    result: bool = False
    payload: bool = False


NO_OPTIONS: Final = HistoryOptions()


class Keep(msgspec.Struct, frozen=True):
    """What history keeps of the jobs of one task."""

    period: timedelta
    result: bool = False
    payload: bool = False


def keep_of(options: HistoryOptions, default: timedelta | None) -> Keep | None:
    """Return what history keeps of a task's jobs; None: nothing. `default` is the setting of the worker."""
    period = options.keep if options.keep is not None else default
    if period is None and options.result:
        period = DEFAULT_KEEP
    return Keep(period, options.result, options.payload) if period else None


def keeps_of(options: Mapping[str, HistoryOptions], default: timedelta | None) -> Mapping[str, Keep]:
    """Return what history keeps of each task's jobs, without the tasks of which it keeps nothing."""
    keeps = {task: keep_of(each, default) for task, each in options.items()}
    return MappingProxyType({task: keep for task, keep in keeps.items() if keep is not None})


@hides("text")
class EncodedResult(msgspec.Struct, frozen=True):
    """What a task returned, as JSON text; or why it is not kept."""

    text: str | None
    problem: str | None = None


def encoded_result(value: object) -> EncodedResult:
    """Return the result as JSON text. Never raises: a result that cannot be kept does not fail its job."""
    if isinstance(value, EncodedResult):
        return value
    try:
        text = json_text(value, what="result")
        msgspec.json.decode(text, type=msgspec.Raw)  # a `msgspec.Raw` in the result is not checked before
    except InvalidJobError as error:
        return EncodedResult(None, f"the result is not kept: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a model of the task's raises while it is encoded
        return EncodedResult(None, f"the result is not kept: {type(error).__name__} while it was written as JSON")
    size = len(text.encode())
    if size > MAX_RESULT_BYTES:
        return EncodedResult(
            None,
            f"the result is not kept: it is {size:,} bytes long and at most {MAX_RESULT_BYTES:,} are allowed; "
            "store large results elsewhere and return a reference",
        )
    return EncodedResult(text)


ENDED_BY_OTHERS: Final = (
    "a worker in another language or SQL completed or deleted it, and history has no record of that (gw record-others)"
)
"""Why nothing is known of the end of a job whose last attempt in history is not its end."""


# -- what history shows ------------------------------------------------------------------------------------------------


class HistoryState(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    """The task returned; the job is gone."""
    RETRIED = "retried"
    """The attempt failed, and the job was to be tried again."""
    FAILED = "failed"
    """The attempt failed and was the last: the job stays in the queue until it is retried or removed."""
    REMOVED = "removed"
    """The job was deleted while no worker had it: by an operator, or by another program if those are recorded."""


@hides("result_json", "payload_json")
class EndedAttempt(msgspec.Struct, frozen=True):
    """One row of history, in the order of its columns: an attempt that has ended.

    Example: docs/api/parts.md
    """

    job_id: int
    attempt: int
    max_attempts: int
    task: str
    queue_name: str | None
    job_key: str | None
    state: HistoryState
    final: bool
    """Whether the job has left the queue with this attempt."""
    error: str | None
    """Why the attempt failed, or why the result of a completed job is not kept."""
    worker_id: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime
    expires_at: datetime
    error_type: str | None = None
    """The class of the exception that the task raised, such as `builtins.ValueError`."""
    result_json: str | None = None
    """What the task returned, as JSON text; None when it is not kept, or was not asked for."""
    payload_json: str | None = None
    """The payload as JSON text; None when it is not kept, or was not asked for."""
    traceback: str | None = None
    """The traceback of a failed attempt; only of the attempts of one job."""

    @property
    def result(self) -> Any:
        """What the task returned, as plain Python values; None when it is not kept, or was not asked for."""
        return None if self.result_json is None else msgspec.json.decode(self.result_json)

    @property
    def payload(self) -> Any:
        """The payload as plain Python values; None when it is not kept, or was not asked for."""
        return None if self.payload_json is None else msgspec.json.decode(self.payload_json)


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some ended attempts, the latest first; `after` continues the list, and is None at its end.

    Example: docs/api/parts.md
    """

    attempts: tuple[EndedAttempt, ...] = ()
    after: str | None = None


class JobEnd(msgspec.Struct, frozen=True):
    """What the queue and history know of how a job ended."""

    is_queued: bool
    """Whether the job is in the queue."""
    has_failed: bool
    """Whether it is there with no attempt left."""
    attempts: int
    error: str | None
    is_known: bool | None
    """Whether a job with this id was ever added; None when the role may not ask."""
    last: EndedAttempt | None
    """The latest attempt in history."""

    def outcome(self, job_id: int, read: Callable[[str], Any] = msgspec.json.decode) -> Any:
        """Return the result as `read` makes it of JSON.

        Raises `JobPendingError` while there is none yet, else a `ResultError` with the reason.
        """
        if self.is_queued:
            if self.has_failed:
                # Giving up sets the attempts of the row to their maximum; history has the number of the last one.
                attempts = self.attempts if self.last is None else self.last.attempt
                raise JobFailedError(job_id, self.error or "", attempts=attempts)
            raise JobPendingError(job_id)
        last = self.last
        if last is None:
            raise _missing(job_id, is_known=self.is_known)
        if last.state is not HistoryState.COMPLETED:
            raise _without_result(job_id, last)
        if last.result_json is not None:
            return read(last.result_json)
        if last.error is not None:
            raise ResultUnavailableError(job_id, "rejected", f"job {job_id} completed; {last.error}")
        raise ResultUnavailableError(
            job_id, "not kept", f"job {job_id} completed, but its task keeps no results; declare it with result=True"
        )


class JobPendingError(ResultError):
    """The job has not ended."""


def _missing(job_id: int, *, is_known: bool | None) -> ResultUnavailableError:
    if is_known is False:
        return ResultUnavailableError(job_id, "unknown", f"no job has had the id {job_id} yet")
    return ResultUnavailableError(
        job_id,
        "expired",
        f"neither the queue nor history has job {job_id}: its period in history is over, its task keeps nothing, or "
        "the transaction that added it is open or was rolled back",
    )


def _without_result(job_id: int, last: EndedAttempt) -> ResultError:
    if last.state is HistoryState.FAILED:
        return JobFailedError(job_id, last.error or "", attempts=last.attempt)
    if last.state is HistoryState.RETRIED:
        return ResultUnavailableError(job_id, "expired", f"the end of job {job_id} is unknown: {ENDED_BY_OTHERS}")
    return ResultUnavailableError(job_id, "removed", f"job {job_id} was removed before it completed")
