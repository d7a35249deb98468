"""Steps of a running job: what `context.step` does."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Interrupted
from gw_core.domain.job.step import KeptStep, check_step_name, not_a_cursor, step_text, used_twice
from gw_core.execution.functions import result_reader

if TYPE_CHECKING:
    from gw_core.postgres.road.step_store import StepStore

T = TypeVar("T")


class MemorySteps:
    """Keeps steps in a mapping of the caller's, for a job that is in no database; `gw_core.testing.perform` uses it.

    A step named `interrupts_at` finds a stopping worker.
    """

    def __init__(self, values: MutableMapping[str, Any], interrupts_at: str | None = None) -> None:
        self._values = values
        self.interrupts_at = interrupts_at

    def read(self, job: Job) -> dict[str, KeptStep]:
        """Return the given values: each is the result or the cursor of its step, as the task asks for it."""
        return {name: KeptStep(step_text(name, value), finished=True) for name, value in self._values.items()}

    def save(self, job: Job, worker_id: str, name: str, step: KeptStep, gives_up: Callable[[], bool]) -> None:
        """Put the value into the mapping."""
        self._values[name] = msgspec.json.decode(step.value)

    def save_with(self, conn: object, job: Job, worker_id: str, name: str, step: KeptStep) -> None:
        """As `save`."""
        self._values[name] = msgspec.json.decode(step.value)

    async def save_on_loop(self, conn: object, job: Job, worker_id: str, name: str, step: KeptStep) -> None:
        """As `save`."""
        self._values[name] = msgspec.json.decode(step.value)


class JobSteps:
    """The steps of one run of a job. Safe from any thread; `_lock` guards `_kept` and `_used`."""

    def __init__(
        self,
        job: Job,
        worker_id: str,
        store: StepStore | MemorySteps,
        *,
        checkpoint: Callable[[], None],
        gives_up: Callable[[], bool],
    ) -> None:
        self._job = job
        self._worker_id = worker_id
        self._store = store
        self.checkpoint = checkpoint
        """Raises `Interrupted` if the run must end."""
        self._gives_up = gives_up
        self._lock = threading.Lock()
        self._kept: dict[str, KeptStep] | None = None
        self._used: set[str] = set()

    def run(self, name: str, function: Callable[..., T], args: Sequence[Any], conn: object | None) -> T:
        """Return what the step has kept, or call its function and keep what that returns."""
        kept = self.begin(name)
        if kept is None or not kept.finished:
            try:
                kept = KeptStep(step_text(name, function(*args)), finished=True)
                self.save(name, kept, conn)
            except BaseException:
                self._leave(name)
                raise
        found: T = _decoded(name, kept, function)
        return found

    async def run_on_loop(
        self, name: str, function: Callable[..., Awaitable[T]], args: Sequence[Any], conn: object | None
    ) -> T:
        """As `run`, for a coroutine function; nothing here blocks the event loop."""
        kept = await self.begin_on_loop(name)
        if kept is None or not kept.finished:
            try:
                kept = KeptStep(step_text(name, await function(*args)), finished=True)
                await self.save_on_loop(name, kept, conn)
            except BaseException:
                self._leave(name)
                raise
        found: T = _decoded(name, kept, function)
        return found

    def begin(self, name: str) -> KeptStep | None:
        """Take a name for this run, and return what earlier runs have kept under it; raises `Interrupted`."""
        check_step_name(name)
        self._check_stop(name)
        with self._lock:
            if self._kept is None:
                self._kept = self._store.read(self._job)
            if name in self._used:
                raise used_twice(name)
            self._used.add(name)
            return self._kept.get(name)

    async def begin_on_loop(self, name: str) -> KeptStep | None:
        """As `begin`; only the first step of a run reads, and does that in a thread."""
        from asyncio import to_thread  # loaded for those who use it

        return self.begin(name) if self._kept is not None else await to_thread(self.begin, name)

    def save(self, name: str, step: KeptStep, conn: object | None) -> None:
        """Keep a step, in the caller's transaction if there is a `conn`."""
        if conn is None:
            self._store.save(self._job, self._worker_id, name, step, self._gives_up)
        else:
            self._store.save_with(conn, self._job, self._worker_id, name, step)

    async def save_on_loop(self, name: str, step: KeptStep, conn: object | None) -> None:
        """As `save`, without blocking the event loop."""
        from asyncio import to_thread

        if conn is None:
            await to_thread(self.save, name, step, None)
        else:
            await self._store.save_on_loop(conn, self._job, self._worker_id, name, step)

    @property
    def is_given(self) -> bool:
        """Whether a test gave the values: it does not mark which are cursors."""
        return isinstance(self._store, MemorySteps)

    def _check_stop(self, name: str) -> None:
        if isinstance(self._store, MemorySteps) and self._store.interrupts_at == name:
            raise Interrupted
        self.checkpoint()

    def _leave(self, name: str) -> None:
        """Let the run use a name again, whose step has failed."""
        with self._lock:
            self._used.discard(name)


class Step:
    """A step that keeps a cursor, for `with` or `async with`."""

    def __init__(self, steps: JobSteps, name: str) -> None:
        self._steps = steps
        self._name = name

    def __enter__(self) -> StepCursor:
        return StepCursor(self._steps, self._name, self._steps.begin(self._name))

    def __exit__(self, *_: object) -> None:
        """Leave the cursor as it is."""

    async def __aenter__(self) -> AsyncStepCursor:
        return AsyncStepCursor(self._steps, self._name, await self._steps.begin_on_loop(self._name))

    async def __aexit__(self, *_: object) -> None:
        """Leave the cursor as it is."""


class _Cursor:
    """How far a step came."""

    def __init__(self, steps: JobSteps, name: str, kept: KeptStep | None) -> None:
        if kept is not None and kept.finished and not steps.is_given:
            raise not_a_cursor(name)
        self._steps = steps
        self._name = name
        self._text = None if kept is None else kept.value

    @property
    def cursor(self) -> Any:
        """What was saved last, by this run or an earlier one, as plain Python values; None at the start."""
        return None if self._text is None else msgspec.json.decode(self._text)

    def _next(self, cursor: object) -> KeptStep:
        return KeptStep(step_text(self._name, cursor), finished=False)


class StepCursor(_Cursor):
    """The cursor of a step: `with context.step("rows") as step`."""

    def save(self, cursor: object, *, conn: object | None = None) -> None:
        """Keep how far the step came, a JSON value. When the worker stops, this ends the run.

        `conn` is your own connection, as in `Client.add`: the cursor belongs to its transaction, and the run goes on.
        """
        step = self._next(cursor)
        self._steps.save(self._name, step, conn)
        self._text = step.value
        if conn is None:
            self._steps.checkpoint()


class AsyncStepCursor(_Cursor):
    """The cursor of a step in a coroutine: `async with context.step("rows") as step`."""

    async def save(self, cursor: object, *, conn: object | None = None) -> None:
        """As `StepCursor.save`; `conn` is what `AsyncClient.add` takes."""
        step = self._next(cursor)
        await self._steps.save_on_loop(self._name, step, conn)
        self._text = step.value
        if conn is None:
            self._steps.checkpoint()


def _decoded(name: str, kept: KeptStep, function: Callable[..., Any]) -> Any:
    """Return the value of a step as its function is annotated to return it, in the first run as in later ones."""
    reader = result_reader(function)
    try:
        return reader.decode(kept.value)
    except Exception as error:  # noqa: BLE001 - whatever a model's validators raise
        try:
            return reader.rescue(kept.value, error)
        except Exception:  # noqa: BLE001 - as above
            raise InvalidInputError(
                f"the kept value of step {name!r} does not fit what its function is annotated to return: {error}; "
                "give the changed step another name"
            ) from error
