"""Run tasks in a test: a single task without a database, the jobs of a transaction, or each job where it is added."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

import msgspec

from gw_core import Job, JobSpec, Plugin, Task, TaskRegistry
from gw_core.errors import GraphileWorkerError, InvalidJobError
from gw_core.front_ends import Failed, Returned
from gw_core.runner.synchronous import (
    DEFAULT_SCHEMA,
    Attempt,
    CallersSession,
    ConnectionWorker,
    MemorySteps,
    PsycopgSession,
    TaskRunner,
    add_inline,
    inline_loop,
    items_of_batch,
    program_loop,
    session_of,
    task_for,
    unstored_job,
)
from gw_core.testing.clock import Clock

if TYPE_CHECKING:
    from gw_core.front_ends import Payload, TakesContext, TakesContextByName, TakesPayload, TaskFunction
    from gw_core.runner.synchronous import ProgramLoop

P = TypeVar("P")
R = TypeVar("R")

Function = Callable[..., object]
Time = Clock | datetime | None


class DrainLimitError(GraphileWorkerError):
    """A drain has run `limit` jobs and there are more, for example because a task adds itself again.

    Example: docs/guide/testing.md
    """


class FailedAttempt(msgspec.Struct, frozen=True):
    """A job whose attempt failed during a drain, and what its task raised.

    Example: docs/api/testing.md
    """

    job: Job
    error: BaseException


class DrainResult(msgspec.Struct):
    """The outcomes of a drain.

    Example: docs/api/testing.md
    """

    completed: list[Job] = msgspec.field(default_factory=list)
    """The jobs whose tasks returned, in the order in which they ran."""
    failed: list[FailedAttempt] = msgspec.field(default_factory=list)
    """The attempts that failed; more than one of a job if it ran again."""
    returned: list[Job] = msgspec.field(default_factory=list)
    """The jobs whose tasks raised `Snooze`."""

    def __len__(self) -> int:
        return len(self.completed) + len(self.failed) + len(self.returned)


class PerformOptions(TypedDict, total=False):
    """The options of `perform`: see there."""

    tasks: TaskRegistry | None
    attempt: int
    max_attempts: int
    queue_name: str | None
    job_key: str | None
    priority: int
    flags: Sequence[str]
    conn: object | None
    schema: str
    plugins: Sequence[Plugin]
    now: Time
    steps: MutableMapping[str, Any] | None
    interrupts_at: str | None
    results: Sequence[Any]


@overload
def perform(task: str, payload: Any = None, **options: Unpack[PerformOptions]) -> Any: ...
@overload
def perform(task: Callable[[], Coroutine[Any, Any, R]], **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(task: Callable[[], R], **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(task: TaskFunction[P, Coroutine[Any, Any, R]], payload: P, **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(task: TaskFunction[P, R], payload: P, **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(
    task: TakesPayload[P, Coroutine[Any, Any, R]], payload: Payload[P], **options: Unpack[PerformOptions]
) -> R: ...
@overload
def perform(task: TakesPayload[P, R], payload: Payload[P], **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(
    task: TakesContext[P, Coroutine[Any, Any, R]], payload: Payload[P], **options: Unpack[PerformOptions]
) -> R: ...
@overload
def perform(task: TakesContext[P, R], payload: Payload[P], **options: Unpack[PerformOptions]) -> R: ...
@overload
def perform(
    task: TakesContextByName[P, Coroutine[Any, Any, R]], payload: Payload[P], **options: Unpack[PerformOptions]
) -> R: ...
@overload
def perform(task: TakesContextByName[P, R], payload: Payload[P], **options: Unpack[PerformOptions]) -> R: ...
def perform(
    task: Function | str,
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
    steps: MutableMapping[str, Any] | None = None,
    interrupts_at: str | None = None,
    results: Sequence[Any] = (),
) -> Any:
    """Run a task as a worker does, and return what it returns; no job is added to a queue.

    `task` is a function, or an identifier in `tasks`. The payload is encoded and decoded as for a real job, and the
    context shows `attempt` and the other fields. An exception of the task is raised here. A batch job returns the
    items that are left to do because they failed.

    `steps` are the results and cursors that earlier attempts have kept, by the names of their steps; this run adds
    its own. The step named `interrupts_at` finds a stopping worker, and `Interrupted` is raised here.

    `results` is what the jobs returned that this one waited for.

    Without `conn`, a task that asks its context for the database raises `InvalidInputError`. A task with a
    process of its own runs in this process.

    Example: docs/guide/testing.md
    """
    given: dict[str, Any] = {
        "attempt": attempt,
        "max_attempts": max_attempts,
        "queue_name": queue_name,
        "job_key": job_key,
    }
    given |= {"priority": priority, "flags": flags, "steps": steps, "interrupts_at": interrupts_at}
    given["results"] = results
    place = Place(session_of(conn, schema), schema=schema, plugins=plugins, now=now)
    return performed(place, task, payload, tasks, **given)


class Place:
    """Where tasks of a test run: its session, its event loop, and what is the same for all of them."""

    def __init__(
        self,
        session: CallersSession | None,
        *,
        schema: str,
        plugins: Sequence[Plugin],
        now: Time,
        loop: ProgramLoop | None = None,
    ) -> None:
        self.session = session
        self.is_cancelled = False
        self._loop = loop
        self.clock = _clock(now)
        self.options: dict[str, Any] = {"schema": schema, "plugins": plugins, "loop": loop, "clock": self.clock}

    def cancel(self) -> None:
        """Cancel the async tasks that run here, and start no further job; from any thread."""
        self.is_cancelled = True
        if self._loop is not None:
            self._loop.interrupt_all()


def performed(
    place: Place,
    task: Function | str,
    payload: Any,
    tasks: TaskRegistry | None,
    *,
    attempt: int = 1,
    steps: MutableMapping[str, Any] | None = None,
    interrupts_at: str | None = None,
    results: Sequence[Any] = (),
    **fields: Any,
) -> Any:
    """Run one task at the place, and return what `perform` returns."""
    found = task_for(task, tasks)
    stored = _stored(task, payload)
    spec = JobSpec(**{"task": found.identifier, "payload": stored, "max_attempts": 25, "priority": 0, **fields})
    kept = MemorySteps({} if steps is None else steps, interrupts_at)
    with TaskRunner(session=place.session, steps=kept, results=results, **place.options) as runner:
        now = None if place.clock is None else place.clock()
        return _value(runner.run(found, unstored_job(spec, attempt=attempt, now=now, worker_id=runner.worker_id)))


def _stored(task: Function | str, payload: Any) -> Any:
    """Return the payload that a job has: without one, `null` if the task takes None, and otherwise `{}`."""
    if payload is None and isinstance(task, Task):
        with suppress(InvalidJobError):  # the run names what does not fit
            return task.job().payload
    return payload


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
    task: Function | str | None = None,
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

    Example: docs/guide/testing.md
    """
    place = Place(PsycopgSession(conn, schema), schema=schema, plugins=plugins, now=now)
    return drained(place, tasks, task=task, with_scheduled=with_scheduled, raises=raises, limit=limit)


def drained(
    place: Place,
    tasks: TaskRegistry,
    *,
    task: Function | str | None = None,
    with_scheduled: bool = False,
    raises: bool = True,
    limit: int = 1_000,
) -> DrainResult:
    """Run the waiting jobs at the place, and return what `drain` returns."""
    wanted = tasks if task is None else [task_for(task, tasks)]
    by_name = {each.identifier: each for each in wanted}
    result = DrainResult()
    assert place.session is not None  # noqa: S101 - jobs wait in a database
    with ConnectionWorker(place.session, by_name, with_scheduled=with_scheduled, **place.options) as worker:
        while len(result) < limit:
            attempt = None if place.is_cancelled else worker.work_one()
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
        if raises or not isinstance(outcome.error, Exception | SystemExit):
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
    `conn` of the caller. Keys, delays, priorities, queues and retries have no effect. An exception of a task reaches
    the code that adds the job, unless `raises` is False.

    Example: docs/guide/testing.md
    """
    attempts: list[Attempt] = []

    def run(spec: JobSpec, payload: str | None, conn: object | None) -> Job:
        task = task_for(spec.task, tasks)
        # The id of a job that is stored nowhere may be that of a stored one: nothing may be read under it.
        options: dict[str, Any] = {"plugins": plugins, "steps": MemorySteps({}), "results": ()}
        loop = inline_loop.get()
        options["loop"] = None if loop is None else program_loop(loop)
        with TaskRunner(schema=schema, session=session_of(conn, schema), **options) as runner:
            attempt = runner.run(task, unstored_job(spec, payload=payload, worker_id=runner.worker_id))
        attempts.append(attempt)
        if attempt.error is not None and (raises or not isinstance(attempt.error, Exception | SystemExit)):
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
