"""Run tasks in a test: one without a database, those of a transaction, or each where it is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gw_core import Job, JobSpec, Plugin, Task, TaskRegistry
from gw_core.errors import GraphileWorkerError
from gw_core.events import Failed, Returned
from gw_core.runner.synchronous import (
    DEFAULT_SCHEMA,
    Attempt,
    ConnectionWorker,
    TaskRunner,
    add_inline,
    connection_of,
    items_of_batch,
    task_for,
    unstored_job,
)
from gw_core.testing.clock import Clock

Function = Callable[..., object]
Time = Clock | datetime | None


class DrainLimitError(GraphileWorkerError):
    """A drain has run `limit` jobs and there are more, for example because a task adds itself again."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A job whose attempt failed during a drain, and what its task raised."""

    job: Job
    error: BaseException


@dataclass(slots=True)
class DrainResult:
    """What a drain has done."""

    completed: list[Job] = field(default_factory=list)
    """The jobs whose tasks returned, in the order in which they ran."""
    failed: list[FailedAttempt] = field(default_factory=list)
    """The attempts that failed; more than one of a job if it ran again."""
    returned: list[Job] = field(default_factory=list)
    """The jobs whose tasks raised `Snooze`."""

    def __len__(self) -> int:
        return len(self.completed) + len(self.failed) + len(self.returned)


def perform(
    task: Function | Task | str,
    payload: Any = None,
    *,
    tasks: TaskRegistry | None = None,
    attempt: int = 1,
    max_attempts: int = 25,
    queue_name: str | None = None,
    job_key: str | None = None,
    priority: int = 0,
    flags: Sequence[str] = (),
    conn: object | None = None,
    schema: str = DEFAULT_SCHEMA,
    plugins: Sequence[Plugin] = (),
    now: Time = None,
) -> Any:
    """Run a task as a worker does, and return what it returns; no job is added to a queue.

    `task` is a function, or an identifier in `tasks`. The payload is encoded and decoded as for a real job, and the
    context shows `attempt` and the other fields. What the task raises is raised here. For a batch job the items that
    are left to do are returned: those that failed.

    Without `conn`, a task that asks its context for the database raises `InvalidInputError`. A task with a
    process of its own runs in this process.
    """
    found = task_for(task, tasks)
    spec = JobSpec(
        task=found.identifier,
        payload=payload,
        max_attempts=max_attempts,
        queue_name=queue_name,
        job_key=job_key,
        priority=priority,
        flags=flags,
    )
    clock = _clock(now)
    with TaskRunner(schema=schema, connection=connection_of(conn, schema), plugins=plugins, clock=clock) as runner:
        job = unstored_job(spec, attempt=attempt, now=None if clock is None else clock(), worker_id=runner.worker_id)
        return _value(runner.run(found, job))


def _value(attempt: Attempt) -> Any:
    items = items_of_batch(attempt)
    if items is not None:
        return items
    if attempt.error is not None:
        raise attempt.error
    return attempt.value


def drain(
    conn: object,
    *,
    tasks: TaskRegistry,
    task: str | None = None,
    with_scheduled: bool = False,
    raises: bool = True,
    limit: int = 1_000,
    schema: str = DEFAULT_SCHEMA,
    plugins: Sequence[Plugin] = (),
    now: Time = None,
) -> DrainResult:
    """Run the waiting jobs on the caller's connection, in its transaction, until none is due; jobs that tasks add too.

    `conn` is a psycopg connection, a SQLAlchemy `Session` or `Connection` on psycopg, or Django's connection on
    psycopg 3; a session is flushed. Jobs run one after the other in the order of a worker, each in a savepoint: an SQL
    error undoes what its task has written. `task` names the only task to run, `with_scheduled` also runs jobs of later.
    The time is that of `now`, or the database's.

    A failed attempt is recorded, then its exception is raised; with `raises=False` it is listed in the result.
    Raises `DrainLimitError` when more than `limit` jobs are due.
    """
    wanted = tasks if task is None else [task_for(task, tasks)]
    by_name = {each.identifier: each for each in wanted}
    options: dict[str, Any] = {"schema": schema, "plugins": plugins, "clock": _clock(now)}
    result = DrainResult()
    with ConnectionWorker(conn, by_name, with_scheduled=with_scheduled, **options) as worker:
        while len(result) < limit:
            attempt = worker.work_one()
            if attempt is None:
                return result
            _record(attempt, result, raises=raises)
        if worker.is_anything_runnable():
            raise DrainLimitError(f"{limit} jobs have run and more are due; does a task add itself again?")
    return result


def _record(attempt: Attempt, result: DrainResult, *, raises: bool) -> None:
    outcome = attempt.outcome
    if isinstance(outcome, Failed):
        # Ctrl-C, and the exceptions with which pytest fails or skips a test, end the drain in any case.
        if raises or not isinstance(outcome.error, Exception):
            raise outcome.error
        result.failed.append(FailedAttempt(attempt.job, outcome.error))
    elif isinstance(outcome, Returned):
        result.returned.append(attempt.job)
    else:
        result.completed.append(attempt.job)


@contextmanager
def inline(
    tasks: TaskRegistry, *, raises: bool = True, schema: str = DEFAULT_SCHEMA, plugins: Sequence[Plugin] = ()
) -> Iterator[list[Attempt]]:
    """Run jobs at the place where a client adds them, in the block; yield the list of the attempts so far.

    Nothing is written to a queue, so no database is needed. A task that asks its context for a connection gets the
    `conn` of the caller. Keys, delays, priorities, queues and retries have no effect. What a task raises reaches the
    code that adds the job, unless `raises` is False.
    """
    attempts: list[Attempt] = []

    def run(spec: JobSpec, payload: str | None, conn: object | None) -> Job:
        task = task_for(spec.task, tasks)
        with TaskRunner(schema=schema, connection=connection_of(conn, schema), plugins=plugins) as runner:
            attempt = runner.run(task, unstored_job(spec, payload=payload, worker_id=runner.worker_id))
        attempts.append(attempt)
        if attempt.error is not None and (raises or not isinstance(attempt.error, Exception)):
            raise attempt.error
        return attempt.job

    token = add_inline.set(run)
    try:
        yield attempts
    finally:
        add_inline.reset(token)


def _clock(now: Time) -> Callable[[], datetime] | None:
    if isinstance(now, datetime):
        return Clock(now).now
    return None if now is None or not now.is_set else now.now
