"""Run jobs on the caller's thread, one at a time: the road of a worker, for `gw_core.testing`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from datetime import datetime
from itertools import count
from threading import current_thread
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec import structs

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.claim import queue_locks
from gw_core.domain.job.history import keeps_of
from gw_core.domain.job.job import END_OF_TIME, Job, JobSpec, encode_payload
from gw_core.domain.job.outcome import Failed, Outcome, Returned
from gw_core.domain.job.task_of_function import identifier_of, tasks_of
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors, Plugin
from gw_core.execution.context import JobContext, TaskResources
from gw_core.execution.signature import compose
from gw_core.execution.steps import MemorySteps as MemorySteps
from gw_core.execution.task import LoadedTask, Task, called_function
from gw_core.postgres.connection.callers_connection import callers_connection
from gw_core.postgres.connection.callers_transaction import SingleConnection, psycopg_connection
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.database import DEFAULT_SCHEMA as DEFAULT_SCHEMA, Connection, Database
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.enqueue import AddOperations, Enqueuer, add_inline as add_inline, inline_loop as inline_loop
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.schema.migrations import migrate
from gw_core.postgres.schema.scratch_database import ScratchDatabase as ScratchDatabase
from gw_core.runner.callers_session import (
    CallersSession as CallersSession,
    PsycopgSession as PsycopgSession,
    async_session_of as async_session_of,
    loop_session,
    session_of as session_of,
)
from gw_core.tasks.registry import TaskRegistry, load_task, source_of
from gw_core.worker.cancellations import Cancellations
from gw_core.worker.handoff import Handoff
from gw_core.worker.lease import Lease
from gw_core.worker.ledger import Ledger
from gw_core.worker.pauses import CurrentPauses
from gw_core.worker.pool import new_pool_id
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.settler import divided, emit_settled, send_outcomes
from gw_core.worker.thread import WorkerThread, intercepted
from gw_core.worker.timeouts import Timeouts

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from gw_core.execution.event_loop import ProgramLoop as ProgramLoop

MAX_WAITING_JOBS: Final = 10_000
_UNSTORED_IDS: Final = count(1)


@hides("value")
class Attempt(msgspec.Struct, frozen=True):
    """One run of a job: its outcome, what the task returned, and what it raised.

    Example: docs/api/testing.md
    """

    job: Job
    outcome: Outcome
    value: Any
    error: BaseException | None


class TaskRunner:
    """Runs tasks as a worker's thread does, on the thread that calls, and without a queue.

    Without a connection, whatever a task asks of the database raises `InvalidInputError`.
    """

    def __init__(
        self,
        *,
        schema: str = DEFAULT_SCHEMA,
        session: CallersSession | None = None,
        loop: ProgramLoop | None = None,
        plugins: Sequence[Plugin] = (),
        clock: Callable[[], datetime] | None = None,
        steps: MemorySteps | None = None,
        results: Sequence[Any] | None = None,
    ) -> None:
        self.events = Events()
        self.worker_id = new_pool_id()
        self._interceptors = Interceptors.attached(plugins, self.events)
        adds = AddOperations(self._interceptors, self.events, clock=clock)
        if session is None:
            connections: ConnectionSource = _NoConnection()
            adder = Enqueuer(connections, schema, adds)
        else:
            connections, adder = session.connections, session.adder(adds)
        self._resources = TaskResources(adder, connections, steps=steps, results=results, loop=loop)
        self._timeouts = Timeouts(self.worker_id, self.events)
        self._outcomes: list[Outcome] = []
        self._task: LoadedTask | None = None
        slot = RunSlot(
            current_thread().name, worker_id=self.worker_id, report=self._outcomes.append, events=self.events
        )
        self._thread = WorkerThread(
            slot,
            handoff=Handoff(on_low=lambda: None),
            find_task=lambda identifier: self._task,
            resources=self._resources,
            timeouts=self._timeouts,
            cancellations=Cancellations(self.worker_id, Ledger(), self._timeouts, self.events),
            lease=Lease(),
            pauses=CurrentPauses(self.worker_id),
            on_end=lambda: None,
            clock=clock,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timeouts.stop()

    @property
    def with_steps(self) -> set[int]:
        """The jobs whose tasks have used steps."""
        return self._resources.with_steps

    def run(self, task: LoadedTask, job: Job) -> Attempt:
        """Run the task for the job; what the task raises is part of the answer."""
        record = _Recorder(intercepted(_in_this_process(task), self._interceptors))
        before = self._task
        self._task = structs.replace(task, invoke=record)
        copy_context().run(self._thread.run, job)
        self._task = before
        outcome = self._outcomes.pop()
        error = outcome.error if isinstance(outcome, Failed) else record.error
        return Attempt(job, outcome, record.value, error)


class _Recorder:
    """Calls a task and keeps what it returns or raises."""

    def __init__(self, task: LoadedTask) -> None:
        self._invoke = task.invoke
        self.value: Any = None
        self.error: BaseException | None = None

    def __call__(self, job: Job, context: JobContext) -> object:
        try:
            self.value = self._invoke(job, context)
        except BaseException as error:
            self.error = error
            raise
        return self.value


def program_loop(loop: AbstractEventLoop) -> ProgramLoop:
    """Return what runs async tasks on a loop of the program's."""
    from gw_core.execution.event_loop import ProgramLoop  # asyncio is loaded for those who use it

    return ProgramLoop(loop)


class _NoConnection:
    """Stands in for the database where tasks have no connection."""

    @property
    def database(self) -> Database:
        raise InvalidInputError(_NO_DATABASE)

    def connection(self) -> AbstractContextManager[Connection]:
        raise InvalidInputError(_NO_DATABASE)


_NO_DATABASE: Final = "the task asks its context for the database; pass your connection, as conn=…"


def _in_this_process(task: LoadedTask) -> LoadedTask:
    """Return the task without its isolation: another process would not see the caller's transaction."""
    if task.isolation is None or task.function is None:
        return task
    return structs.replace(task, invoke=compose(called_function(task.function)), isolation=None)


class ConnectionWorker:
    """Claims, runs and settles jobs on the caller's connection, in its transaction and on the calling thread."""

    def __init__(
        self,
        session: CallersSession,
        tasks: Mapping[str, LoadedTask],
        *,
        schema: str = DEFAULT_SCHEMA,
        loop: ProgramLoop | None = None,
        plugins: Sequence[Plugin] = (),
        clock: Callable[[], datetime] | None = None,
        with_scheduled: bool = False,
    ) -> None:
        self._session = session
        self._tasks = tasks
        self._keeps = keeps_of({identifier: task.history for identifier, task in tasks.items()}, None)
        self._now = (lambda: END_OF_TIME) if with_scheduled else clock
        self._runner = TaskRunner(schema=schema, session=session, loop=loop, plugins=plugins, clock=clock)
        self._store = JobStore(session.store_connection, schema)
        self._task_ids = self._store.register_tasks(tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.__exit__()

    def work_one(self) -> Attempt | None:
        """Claim, run and settle the next job; None when no job can run now."""
        jobs = self._claim(limit=1)
        return self._work(jobs[0]) if jobs else None

    def is_anything_runnable(self) -> bool:
        """Return whether `work_one` would find a job."""
        return self._store.is_anything_runnable(tasks=self._task_ids, now=None if self._now is None else self._now())

    def _claim(self, limit: int) -> Sequence[Job]:
        self._store.claims.skip_ahead.restart_scan()
        with self._session.claim_plan():
            return self._store.claims.claim(
                worker_id=self._runner.worker_id,
                tasks=self._task_ids,
                limit=limit,
                now=None if self._now is None else self._now(),
            )

    def _work(self, job: Job) -> Attempt:
        with self._session.savepoint():
            attempt = self._runner.run(self._tasks[job.task], job)
            if attempt.error is None:  # a session in which a flush has failed accepts nothing more
                self._session.flush()
        self._settle(attempt)
        return attempt

    def _settle(self, attempt: Attempt) -> None:
        outcome, worker_id = attempt.outcome, self._runner.worker_id
        [batch] = divided([outcome], self._keeps)
        settled = send_outcomes(self._store, batch, worker_id, queue_locks([attempt.job]))
        if not settled.ids:
            raise _lost_claim(attempt)
        if type(outcome) is not Returned:  # while it ran, its task may have added jobs that wait for it
            self._store.end_members([attempt.job.id], self._keeps)
        if attempt.job.id in self._runner.with_steps:
            self._store.end_steps([attempt.job.id])
        emit_settled(self._runner.events, worker_id, [outcome])


def _lost_claim(attempt: Attempt) -> BaseException:
    """Return the error of a task that rolled back its claim: its own, as from a failed flush of SQLAlchemy's."""
    message = (
        f"the task {attempt.job.task!r} rolled back the transaction that its job was claimed in; "
        "give the task a session or a transaction of its own"
    )
    if attempt.error is None:
        return InvalidInputError(message)
    attempt.error.add_note(message)
    return attempt.error


async def waiting_jobs_on_loop(conn: object, *, task: str | None = None, schema: str = DEFAULT_SCHEMA) -> list[Job]:
    """Return the waiting jobs that an asynchronous connection sees; see `waiting_jobs`."""
    session = await loop_session(conn, schema)
    return [Job(*row) for row in await session.fetch(_list_waiting_jobs(task))]


def _list_waiting_jobs(task: str | None) -> Call:
    return Call("list_waiting_jobs", {"task": task, "limit": MAX_WAITING_JOBS})


def task_for(task: Callable[..., object] | str, tasks: TaskRegistry | None) -> LoadedTask:
    """Return the task that a function, an identifier or a task stands for. Raises `InvalidInputError` if unknown."""
    if isinstance(task, str):
        found = None if tasks is None else tasks.get(task)
        if found is None:
            known = "no registry was given" if tasks is None else f"the registry has {', '.join(tasks.identifiers)}"
            raise InvalidInputError(f"no task {task!r} is known here: {known}")
        return found
    registered = next((each for each in tasks or () if each.function is task), None)
    if registered is not None:
        return registered
    marked = next(iter(tasks_of(task)), None)
    identifier: str = getattr(task, "__name__", "task").strip("<>")
    if marked is not None and marked._identifier is not None:
        identifier = marked._identifier
    made: Task[..., Any] = Task(called_function(task), identifier)
    if marked is not None:
        made._with({}, marked._run_options)
    return _in_this_process(load_task(identifier, task, made, source_of(task), _no_home))


def task_name(task: str | JobSpec | Callable[..., object]) -> str:
    """Return the identifier of what an assertion is given as a task. Raises `InvalidInputError` for anything else."""
    if isinstance(task, JobSpec):
        return task.task
    if not isinstance(task, str) and not callable(task):
        raise InvalidInputError(f"a task is an identifier, a function or a JobSpec, not {type(task).__name__}")
    return identifier_of(task)


def _no_home() -> Any:
    raise InvalidInputError("a task that is performed runs in this process")


def unstored_job(
    spec: JobSpec, *, attempt: int = 1, now: datetime | None = None, payload: str | None = None, worker_id: str
) -> Job:
    """Return the job that a worker would claim for the spec; it is in no database."""
    seconds = time.time() if now is None else now.timestamp()
    run_at = spec.run_at.timestamp() if isinstance(spec.run_at, datetime) else seconds
    return Job(
        id=next(_UNSTORED_IDS),
        task=spec.task,
        payload_json=encode_payload(spec.payload) if payload is None else payload,
        attempts=attempt,
        max_attempts=25 if spec.max_attempts is None else spec.max_attempts,
        priority=spec.priority or 0,
        _run_at=run_at,
        _created_at=seconds,
        _updated_at=seconds,
        revision=0,
        job_key=spec.job_key,
        _flags=msgspec.json.encode(dict.fromkeys(spec.flags, True)).decode() if spec.flags else None,
        queue_name=spec.queue_name,
        _locked_at=seconds,
        locked_by=worker_id,
    )


def items_of_batch(attempt: Attempt) -> list[Any] | None:
    """Return the items that a batch job has left to do; None for a job that is not a batch."""
    if isinstance(attempt.outcome, Failed) and attempt.outcome.payload is not None:
        items: list[Any] = msgspec.json.decode(attempt.outcome.payload)
        return items
    given = attempt.job.payload
    is_batch = isinstance(attempt.value, list) and isinstance(given, list) and len(attempt.value) == len(given)
    return [] if is_batch and attempt.error is None else None


def waiting_jobs(conn: object, *, task: str | None = None, schema: str = DEFAULT_SCHEMA) -> list[Job]:
    """Return the waiting jobs that the connection's transaction sees, in the order in which workers take them."""
    return [Job(*row) for row in callers_connection(conn, schema).fetch(_list_waiting_jobs(task))]


def install(conn: object, *, schema: str = DEFAULT_SCHEMA) -> None:
    """Install the schema in the database that `conn` leads to, or upgrade it.

    This uses a second connection and commits, so one call per test database is enough. `conn` is what `drain` takes.

    Example: docs/guide/testing.md
    """
    database = SingleConnection(psycopg_connection(conn, schema), schema).database
    try:
        migrate(database, schema)
    finally:
        database.close()
