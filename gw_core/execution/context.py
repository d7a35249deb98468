"""What a task is given beside its payload."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, TypeVarTuple, Union, Unpack, overload

import msgspec

from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.job import AddOptions, Job, JobOptions, JobSpec, batch_spec, job_spec
from gw_core.domain.job.outcome import Interrupted
from gw_core.domain.rules.plugins import Skip
from gw_core.execution.functions import is_coroutine_function
from gw_core.execution.payloads import CronRun, cron_of, trace_of
from gw_core.execution.steps import JobSteps, MemorySteps, Step
from gw_core.runtime.loggers import JobLogger, get_logger, job_fields

if TYPE_CHECKING:
    # Not at run time: a process that runs an isolated task starts in half the time without the database driver.
    from gw_core.postgres.connection.connections import ConnectionSource
    from gw_core.postgres.connection.database import Connection, Database
    from gw_core.postgres.road.enqueue import Enqueuer

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")
A = TypeVarTuple("A")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Calls(Protocol):
    """What a coroutine requests of the thread that waits for it."""

    def serve(self) -> None:
        """Do what is requested, until the end."""

    def end(self) -> None:
        """Let the thread go."""


class TaskLoop(Protocol):
    """An event loop that async tasks run on."""

    def run(self, work: Awaitable[Any], context: JobContext | None = None, calls: Calls | None = None) -> Any:
        """Run to the end and return the result; for worker threads, which wait here and serve `calls`."""


@hides("results")
class TaskResources(msgspec.Struct, frozen=True):
    """What all jobs of a pool share."""

    adder: Enqueuer
    connections: ConnectionSource
    logger: logging.Logger | None = None
    """The logger above the jobs' own; `graphile_worker` unless given."""
    steps: MemorySteps | None = None
    """Where steps are kept; in the database unless given."""
    with_steps: set[int] = msgspec.field(default_factory=set)
    """The jobs whose tasks have used steps."""
    results: Sequence[Any] | None = None
    """What the jobs returned that a job waited for; read from the database unless given."""
    is_stopping: Callable[[], bool] = bool  # which returns False
    """Whether the worker stops, so that steps end their runs."""
    loop: TaskLoop | None = None
    """Where async tasks run; a loop of gw's own unless given."""


class StopSignal:
    """Signals a task that its job should end soon; used like a `threading.Event` that others set.

    Creates its event only when a task waits: creating one for each of 70,000 jobs a second would be measurable.

    Example: docs/api/gw_core.md
    """

    # Defaults of the class and no __init__: one is made for every job, most are never touched.
    _is_set = False
    _event: threading.Event | None = None
    reason: StopReason | None = None
    """Why; None while there is no reason."""
    keeps_attempts = False
    """True where the job was cancelled with `retry`: only this attempt fails."""
    forced = False
    """True once the job is being returned: the result of the task is discarded."""
    on_force: Callable[[], object] | None = None
    """Ends what runs for the job outside of Python's own threads: its program, its coroutine. Must not block."""

    def is_set(self) -> bool:
        """True once the task should end."""
        return self._is_set

    def __bool__(self) -> bool:
        return self._is_set

    def set(self, reason: StopReason = StopReason.SHUTDOWN) -> None:
        """Ask the task to end; the first reason counts."""
        self.reason = self.reason or reason
        # The flag before the event is read, in `wait` the event before the flag is read: one of the two sees the other.
        self._is_set = True
        if self._event is not None:
            self._event.set()

    def force(self, reason: StopReason = StopReason.SHUTDOWN) -> None:
        """Ask the task to end, discard its result, and end its program or coroutine. Does not block."""
        # The flag before `on_force` is read; those that set `on_force` read the flag after it.
        self.forced = True
        self.set(reason)
        if (end := self.on_force) is not None:
            end()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the task should end, at most `timeout` seconds; use it in place of `time.sleep`."""
        if self._event is None:
            self._event = threading.Event()
        if self._is_set:
            return True
        return self._event.wait(timeout)


class _Adding(Protocol[R_co]):
    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., R_co]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> Adds[R_co]: ...


class _AddingBatch(Protocol[R_co]):
    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., R_co]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> AddsBatch[R_co]: ...


def adding(method: Callable[..., R]) -> _Adding[R]:
    """Let type checkers see the method as one of `Adds`."""
    return method


def adding_batch(method: Callable[..., R]) -> _AddingBatch[R]:
    """Let type checkers see the method as one of `AddsBatch`."""
    return method


class JobContext:
    """The job a task runs for, and what it may use: logger, connections, adding jobs, knowing when to stop.

    Example: docs/api/index.md
    """

    __slots__ = ("_logger", "_resources", "_steps", "job", "should_stop", "thread_name", "worker_id")

    def __init__(self, job: Job, resources: TaskResources, *, worker_id: str, thread_name: str) -> None:
        self.job = job
        self.worker_id = worker_id
        """The worker that runs the job, as in the job's `locked_by`."""
        self.thread_name = thread_name
        """The worker thread that runs the job."""
        self._resources = resources
        self._logger: JobLogger | None = None
        self._steps: JobSteps | None = None
        self.should_stop = StopSignal()
        """Set when this job should end: the worker stops, the timeout has passed, or an operator cancelled it."""

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the job should end, once `should_stop` is set: `StopReason.CANCELLED`, for example."""
        return self.should_stop.reason

    @overload
    def step(self, name: str) -> Step: ...
    @overload
    def step(self, name: str, function: Callable[[*A], T], *args: *A, conn: object | None = None) -> T: ...
    def step(  # type: ignore[misc] # mypy does not accept the arguments of a TypeVarTuple here
        self, name: str, function: Any = None, *args: Any, conn: object | None = None
    ) -> Any:
        """Call the function once for the job and keep its result: a later attempt returns what is kept instead.

        The result is a JSON value of at most 10 MB, which the function's return annotation decodes. A coroutine
        function is awaited: `await context.step(…)`. `conn` is your own connection, as in `Client.add`: the result
        belongs to its transaction, with what the function writes there.

        Without a function, `with context.step("rows") as step:` keeps a cursor: `step.cursor` is the last one that
        `step.save(cursor)` kept, None at first. In a coroutine, use `async with` and `await step.save(cursor)`.

        Raises `InvalidInputError` for a name that this attempt has used, and `InvalidJobError` for a value that cannot
        be kept. When the worker stops, a step ends the run as `checkpoint` does.
        """
        if self._steps is None:
            self._steps = self._new_steps()
        if function is None:
            return Step(self._steps, name)
        run = self._steps.run_on_loop if is_coroutine_function(function) else self._steps.run
        return run(name, function, args, conn)

    def results(self) -> list[Any]:
        """Return what the jobs returned that this one waited for (`after`), in the order in which it named them.

        Their tasks need `result=True`. A job that failed permanently, or was removed, has None as its result. Raises
        `ResultUnavailableError` for one that completed and whose result is not kept.
        """
        from gw_core.postgres.read.dependency_results import results_of_dependencies

        given = self._resources.results
        return list(given) if given is not None else results_of_dependencies(self._resources.connections, self.job.id)

    def checkpoint(self) -> None:
        """End the run here if the worker stops: the job runs again immediately, and this attempt does not count.

        The same happens at each step. A job that was cancelled, or whose timeout has passed, ends here as well, as
        failed. Raises `Interrupted`, which is no `Exception`.
        """
        if self.should_stop or self.is_stopping:
            raise Interrupted

    @property
    def is_stopping(self) -> bool:
        """True from the first signal to stop: a task may end early by a step or `checkpoint`."""
        return self._resources.is_stopping()

    def _note_steps(self) -> None:
        """Record that the job has steps, which end with it."""
        self._resources.with_steps.add(self.job.id)

    def _new_steps(self) -> JobSteps:
        from gw_core.postgres.road.step_store import StepStore

        self._note_steps()
        return JobSteps(
            self.job,
            self.worker_id,
            self._resources.steps or StepStore(self._resources.connections),
            checkpoint=self.checkpoint,
            gives_up=lambda: self.should_stop.forced,
        )

    @property
    def logger(self) -> JobLogger:
        """A standard `logging` adapter; its records have the job's fields, such as `job_id`."""
        if self._logger is None:
            logger = get_logger("job", self._resources.logger)
            self._logger = JobLogger(logger, job_fields(self.job, self.worker_id))
        return self._logger

    @property
    def queue_name(self) -> str | None:
        """The named queue the job belongs to."""
        return self.job.queue_name

    @property
    def cron(self) -> CronRun | None:
        """When the job of a recurring task was due, from the payload's `_cron`; None for other jobs."""
        return cron_of(self.job.payload_json)

    @property
    def trace(self) -> Any:
        """The payload's `_trace`, with which producers pass on the context of a trace; None when it has none."""
        return trace_of(self.job.payload_json)

    @property
    def database(self) -> Database:
        """Where the connections of this context lead."""
        return self._resources.connections.database

    @adding
    def add(
        self,
        task: str | JobSpec | Callable[..., object],
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Add a job and return it, as `Client.add` does."""
        return self._resources.adder.add(job_spec(task, payload, **options), conn=conn)

    @adding
    def try_add(
        self,
        task: str | JobSpec | Callable[..., object],
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Job | Skip:
        """Add a job and return it, or why a plugin skipped it, as `Client.try_add` does."""
        return self._resources.adder.try_add(job_spec(task, payload, **options), conn=conn)

    def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> list[int]:
        """Add several jobs, all or none, and return their ids, as `Client.add_many` does."""
        return self._resources.adder.add_many(specs, conn=conn)

    @adding_batch
    def add_batch(
        self,
        task: str | JobSpec | Callable[..., object],
        items: Sequence[Any] = (),
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Add one job whose payload is the list of `items`, as `Client.add_batch` does."""
        return self._resources.adder.add(batch_spec(task, items, **options), conn=conn)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide a psycopg connection in autocommit mode; open a transaction with `with connection.transaction():`."""
        with self._resources.connections.connection() as connection:
            yield connection

    def query(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own and return its rows."""
        from gw_core.postgres.connection.connections import fetch_all

        with self._resources.connections.connection() as connection:
            return fetch_all(connection, statement, values)


# -- how type checkers compare a payload with what its task takes ------------------------------------------------------

TaskFunction = Callable[[P], R] | Callable[[P, JobContext], R]
"""A function of a payload, with or without a context."""


class TakesPayload(Protocol[P_contra, R_co]):
    """A function of a payload."""

    def __call__(self, payload: P_contra, /) -> R_co:
        """Run the task."""


class TakesContext(Protocol[P_contra, R_co]):
    """A function of a payload and a context."""

    def __call__(self, payload: P_contra, context: JobContext, /) -> R_co:
        """Run the task."""


class TakesContextByName(Protocol[P_contra, R_co]):
    """A function of a payload and a keyword `context`."""

    def __call__(self, payload: P_contra, /, *, context: JobContext) -> R_co:
        """Run the task."""


class _Inferred(Generic[P]):
    """Has no instance."""


# For mypy alone: other calls fit an overload with `TaskFunction`, which stands first.
# mypy infers what stands in a callable after the rest, so it knows the type from the task when it comes to the payload.
# It would otherwise infer `dict[str, int]` for a literal that is to be a `dict[str, float]`, or a `TypedDict`.
Payload = Union[P, "_Inferred[Callable[[P], object]]"]
"""A payload of the type that the task takes."""
Items = Union[Sequence[P], "_Inferred[Callable[[P], object]]"]
"""The items of a batch job of a task that takes a list of them."""


class Adds(Protocol[R_co]):
    """A method that adds a job."""

    @overload
    def __call__(self, task: str | JobSpec, payload: Any = None, **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(self, task: TaskFunction[P, object], payload: P, **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(self, task: TakesPayload[P, object], payload: Payload[P], **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(self, task: TakesContext[P, object], payload: Payload[P], **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(
        self, task: TakesContextByName[P, object], payload: Payload[P], **options: Unpack[AddOptions]
    ) -> R_co: ...
    @overload
    def __call__(self, task: Callable[[], object], **options: Unpack[AddOptions]) -> R_co: ...


class AddsBatch(Protocol[R_co]):
    """A method that adds a batch job."""

    @overload
    def __call__(self, task: str | JobSpec, items: Sequence[Any] = (), **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(
        self, task: TaskFunction[list[P], object], items: Sequence[P], **options: Unpack[AddOptions]
    ) -> R_co: ...
    @overload
    def __call__(self, task: TakesPayload[list[P], object], items: Items[P], **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(self, task: TakesContext[list[P], object], items: Items[P], **options: Unpack[AddOptions]) -> R_co: ...
    @overload
    def __call__(
        self, task: TakesContextByName[list[P], object], items: Items[P], **options: Unpack[AddOptions]
    ) -> R_co: ...
