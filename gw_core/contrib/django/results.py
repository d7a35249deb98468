"""The result of a task, from the queue while its job is there and from history afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from gw_core import Client, Job
from gw_core.contrib.django.compat import TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from gw_core.contrib.django.task import time_of_django

if TYPE_CHECKING:
    from gw_core.operations import EndedAttempt

UNKNOWN: Final = "unknown"
"""Stands for the worker of an attempt that history does not have."""

MAX_ID: Final = 2**63 - 1


def read_result(client: Client, result_id: str, find_task: Any, alias: str) -> Any:
    """Return the result with this id, as the current transaction sees it; raises `TaskResultDoesNotExist`."""
    job_id = int(result_id) if result_id.isascii() and result_id.isdecimal() else 0
    if not 0 < job_id <= MAX_ID:
        raise TaskResultDoesNotExist(result_id)
    # The job first: one that ends in between is in history by then.
    job = client.jobs.get(job_id)
    attempts = client.history.attempts(job_id)
    if job is None and not attempts:
        raise TaskResultDoesNotExist(result_id)
    task = find_task(attempts[-1].task if job is None else job.task)
    if task is None:
        raise TaskResultDoesNotExist(result_id)
    return _result(task, job_id, job, attempts, alias)


def _result(task: Any, job_id: int, job: Job | None, attempts: Sequence[EndedAttempt], alias: str) -> Any:
    status = _status(job, attempts)
    is_over = status in (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED)
    arguments = _arguments(attempts[-1].payload_json if job is None else job.payload_json)
    started = [each.started_at for each in attempts if each.started_at is not None]
    if job is not None and job.started_at is not None:
        started.append(job.started_at)
    started = [time_of_django(each) for each in started]
    result = TaskResult(
        task=task,
        id=str(job_id),
        status=status,
        enqueued_at=time_of_django(attempts[0].created_at if job is None else job.created_at),
        started_at=min(started, default=None),
        finished_at=time_of_django(attempts[-1].finished_at) if is_over and attempts else None,
        last_attempted_at=max(started, default=None),
        args=arguments.get("args", []),
        kwargs=arguments.get("kwargs", {}),
        backend=alias,
        errors=[_error(each) for each in attempts if each.error_type is not None],
        worker_ids=_workers(job, attempts),
    )
    if status == TaskResultStatus.SUCCESSFUL:
        object.__setattr__(result, "_return_value", attempts[-1].result)
    return result


def _status(job: Job | None, attempts: Sequence[EndedAttempt]) -> Any:
    if job is None:
        is_completed = attempts[-1].state == "completed"
        return TaskResultStatus.SUCCESSFUL if is_completed else TaskResultStatus.FAILED
    if job.locked_by is not None:
        return TaskResultStatus.RUNNING
    return TaskResultStatus.FAILED if job.is_last_attempt else TaskResultStatus.READY


def _workers(job: Job | None, attempts: Sequence[EndedAttempt]) -> list[str]:
    """Return the worker of each attempt in order; Django counts the attempts by them."""
    known = {each.attempt: each.worker_id for each in attempts}
    if job is not None and job.locked_by is not None:
        known[job.attempts] = job.locked_by
    # A job that was given up counts as tried `max_attempts` times; only attempts that were made have a worker.
    last = max(known) if known else 0 if job is None or job.is_last_attempt else job.attempts
    return [known.get(number) or UNKNOWN for number in range(1, last + 1)]


def _error(attempt: EndedAttempt) -> Any:
    return TaskError(exception_class_path=attempt.error_type or "", traceback=attempt.traceback or attempt.error or "")


def _arguments(payload: str | None) -> dict[str, Any]:
    """Return the arguments in a payload, which another language may have written, or which is not kept."""
    decoded = None if payload is None else json.loads(payload)
    return decoded if isinstance(decoded, dict) else {}


def path_of(identifier: str, lanes: Iterable[str]) -> str:
    """Return the path of a task from the identifier of its jobs, which may begin with a lane."""
    lane, slash, path = identifier.partition("/")
    return path if slash and lane in set(lanes) else identifier
