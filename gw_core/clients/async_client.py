"""The client for event loops: add and remove jobs, in a pool of its own or in the caller's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from gw_core.clients.async_jobs import AsyncJobs
from gw_core.domain.job.group import JobGroup, OnFailure, WaitingGroup
from gw_core.domain.job.job import AddOptions, Job, JobOptions, JobSpec, batch_items, job_spec
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors, Plugin, Skip
from gw_core.postgres.connection.async_connection import (
    AsyncConnectionSource,
    GivenPool,
    OwnPool,
    async_callers_connection,
)
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database, find_conninfo
from gw_core.postgres.connection.deadlines import in_time
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.statement_steps import Operation, Unit, await_steps, fetched
from gw_core.postgres.read.history import job_end
from gw_core.postgres.read.job_results import ResultListener, awaiting
from gw_core.postgres.road.add_calls import Call, RemovedJob
from gw_core.postgres.road.enqueue import AddOperations, cancelling_groups, removing, waiting_groups

if TYPE_CHECKING:
    from gw_core.clients.async_rules import AsyncLimits, AsyncPauses
    from gw_core.execution.context import JobContext

P = TypeVar("P")
T = TypeVar("T")


class AsyncClient:
    """One queue, for a program on an event loop. It adds jobs and asks for them; workers run them.

    `source` is a connection string, a psycopg `AsyncConnectionPool`, an `asyncpg.Pool` or a SQLAlchemy `AsyncEngine`.
    Without one, `DATABASE_URL` and libpq's variables name the database. A connection string opens a pool of up to
    `max_pool_size` connections on first use; `password` is called for each new one.

    Plugins and event listeners run on the loop, so they must not block.

    Raises `NoConnectionError` when nothing names a database and `InvalidInputError` for any other source. All methods
    raise `DatabaseUnavailableError`, `SchemaMissingError` and the other errors of `Client`. Use one client per loop.
    """

    def __init__(
        self,
        source: Any = None,
        *,
        schema: str = DEFAULT_SCHEMA,
        prepared_statements: bool = True,
        max_pool_size: int = 10,
        events: Events | None = None,
        plugins: Sequence[Plugin] = (),
        application_name: str = "gw",
        password: Callable[[], str] | None = None,
    ) -> None:
        self.events = events or Events()
        self.schema = schema
        for plugin in plugins:
            plugin.attach(self.events)
        self._connections: AsyncConnectionSource
        self._result_listener: ResultListener | None = None
        if source is None or isinstance(source, str):
            database = Database(
                find_conninfo(source),
                schema=schema,
                application_name=application_name,
                prepared_statements=prepared_statements,
                password=password,
            )
            self._connections = OwnPool(database, max_size=max_pool_size)
            self._result_listener = ResultListener(database)
        else:
            self._connections = GivenPool(source)
        self._adds = AddOperations(Interceptors(plugins), self.events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client's own pool. A pool or engine that was passed in stays open."""
        if self._result_listener is not None:
            await asyncio.to_thread(self._result_listener.close)
        await self._connections.close()

    @cached_property
    def jobs(self) -> AsyncJobs:
        """Read and change jobs by their ids."""
        return AsyncJobs(self._carry_out, self.schema)

    @cached_property
    def pauses(self) -> AsyncPauses:
        """Pause and resume tasks, named queues, flags or everything: `pause`, `resume`, `list`."""
        from gw_core.clients.async_rules import AsyncPauses

        return AsyncPauses(self._carry_out, self.schema)

    @cached_property
    def limits(self) -> AsyncLimits:
        """Limits of tasks across all gw workers: `set`, `remove`, `list`."""
        from gw_core.clients.async_rules import AsyncLimits

        return AsyncLimits(self._carry_out, self.schema)

    # -- add -------------------------------------------------------------------------------------------------------

    @overload
    async def add(self, task: str | JobSpec, payload: Any = None, **options: Unpack[AddOptions]) -> Job | Skip: ...
    @overload
    async def add(
        self, task: Callable[[P, JobContext], object], payload: P, **options: Unpack[AddOptions]
    ) -> Job | Skip: ...
    @overload
    async def add(self, task: Callable[[P], object], payload: P, **options: Unpack[AddOptions]) -> Job | Skip: ...
    @overload
    async def add(self, task: Callable[[], object], **options: Unpack[AddOptions]) -> Job | Skip: ...
    async def add(
        self,
        task: str | JobSpec | Callable[..., object],
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Job | Skip:
        """Add a job and return it, or why a plugin skipped it. The arguments are those of `Client.add`.

        `conn` is your own connection: a psycopg `AsyncConnection` or `AsyncCursor`, a SQLAlchemy `AsyncSession` or
        `AsyncConnection`, or an asyncpg connection. The job belongs to its transaction and exists once that commits.
        asyncpg commits immediately outside `conn.transaction()`. Raises `InvalidJobError` and `InvalidInputError`
        before anything is sent, and `JobRejectedError` if a plugin rejects the job.
        """
        return await self._carry_out(self._adds.add(job_spec(task, payload, **options)), conn)

    async def add_json(self, spec: JobSpec, payload: str, *, conn: object | None = None) -> Job | Skip:
        """Add a job whose payload is already JSON text, which is stored unchanged."""
        return await self._carry_out(self._adds.add(spec, payload), conn)

    async def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> list[int]:
        """Add jobs in as few statements as possible, all or none, and return their ids in no promised order."""
        return await self._carry_out(self._adds.add_many(specs), conn)

    async def group(
        self,
        specs: Iterable[JobSpec],
        *,
        then: JobSpec,
        on_failure: OnFailure | str = OnFailure.HOLD,
        conn: object | None = None,
    ) -> JobGroup:
        """Add jobs, and one that is added when all of them have ended; see `Client.group`."""
        return await self._carry_out(self._adds.add_group(specs, then, on_failure), conn)

    async def waiting_groups(
        self, job_id: int | None = None, *, job_key: str | None = None, limit: int = 1_000
    ) -> list[WaitingGroup]:
        """Return the groups whose last job waits; see `Client.waiting_groups`."""
        return await self._carry_out(waiting_groups(job_id, job_key, limit))

    async def cancel_groups(self, *ids: int, conn: object | None = None) -> tuple[int, ...]:
        """Drop the waiting jobs of these groups, and return the ids of the groups that waited."""
        return await self._carry_out(cancelling_groups(ids), conn)

    async def add_batch(
        self, task: str, items: Sequence[Any], *, conn: object | None = None, **options: Unpack[JobOptions]
    ) -> Job | Skip:
        """Add one job whose payload is the list of `items`; see `Client.add_batch`."""
        return await self.add(task, batch_items(items), conn=conn, **options)

    # -- remove --------------------------------------------------------------------------------------------------

    async def remove(self, job_key: str, *, conn: object | None = None) -> RemovedJob | None:
        """Remove the job with this key; one that runs is only kept from running again. None: no such job."""
        return await self._carry_out(removing(job_key, self.schema), conn)

    # -- results ---------------------------------------------------------------------------------------------------

    async def result(self, job_id: int, *, timeout: timedelta | float | None = None) -> Any:
        """Wait until a job has ended, and return what its task returned; see `Client.result`.

        A client with a pool of its own listens, on one more connection. One with a pool of yours asks, at first 50 ms
        and later 2 s apart.
        """
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        with ExitStack() as stack:

            async def act(pause: float | None) -> Any:
                if pause is None:
                    [row] = await self._carry_out(fetched(Call("job_end", {"job_id": job_id, "schema": self.schema})))
                    return job_end(row)
                if not pause and self._result_listener is not None:
                    stack.enter_context(self._result_listener.waiting(job_id, lambda: _call_in(loop, ended.set)))
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), pause)
                return ended.clear()

            return await await_steps(awaiting(job_id, timeout), act)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _carry_out(self, operation: Operation[T], conn: object | None = None) -> T:
        """Carry an operation out on the caller's connection, or each unit on one of the client's."""

        async def act(step: Call | Unit | float | Callable[[object | None], Any]) -> Any:
            if callable(step):
                return await asyncio.to_thread(step, None)
            if isinstance(step, float):
                return await asyncio.sleep(step)
            with translated(self.schema):
                if conn is not None:
                    return await async_callers_connection(conn, self.schema).run(step)
                return await in_time(self._run_on_own(step))

        return await await_steps(operation, act)

    async def _run_on_own(self, step: Call | Unit) -> Any:
        is_atomic, source = isinstance(step, Unit) and step.is_atomic, self._connections
        async with source.connection() if is_atomic else source.autocommit() as lent:
            return await async_callers_connection(lent, self.schema).run(step)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call the function in the loop, from another thread; a loop that is closed waits for nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
