"""The client for event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from gw_core.clients.loop import LoopRuntime
from gw_core.clients.queue_client import QueueClient
from gw_core.clients.verbs import OnLoop
from gw_core.domain.durations import Duration
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors, Plugin
from gw_core.domain.rules.session_limits import NO_LIMITS, SessionLimits
from gw_core.postgres.connection.async_connection import AsyncConnectionSource, GivenPool, OwnPool, conninfo_behind
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database, find_conninfo
from gw_core.postgres.connection.statement_steps import await_steps, fetched
from gw_core.postgres.read.history import job_end
from gw_core.postgres.read.job_results import awaiting
from gw_core.postgres.road.add_calls import Call

if TYPE_CHECKING:
    from gw_core.clients.sharding import AsyncShardedClient, ShardKey

T = TypeVar("T")


class AsyncClient(QueueClient[OnLoop]):
    """One queue, for a program on an event loop: the members of `Client`, as coroutine functions.

    Use one client for each loop: on a second one it raises `InvalidInputError`, except with `conn`.

    `conninfo` and most options are those of `Client`. With `pool`, which is a psycopg `AsyncConnectionPool`, an
    `asyncpg.Pool` or a SQLAlchemy `AsyncEngine`, its connections are used. Methods that take no `conn` run in a thread,
    on at most two connections of their own, which lead where the pool leads; with an `asyncpg.Pool` they need
    `conninfo` too. `conn` is called for each call without `conn=`, and returns the connection that it uses.

    Plugins and event listeners run on the loop, so they must not block.

    Raises `NoConnectionError` when nothing names a database and `InvalidInputError` for any other pool. All methods
    raise `DatabaseUnavailableError`, `SchemaMissingError` and the other errors of `Client`.

    Example: docs/guide/adding-jobs.md
    """

    _is_on_loop = True

    def __init__(
        self,
        conninfo: str | None = None,
        *,
        schema: str = DEFAULT_SCHEMA,
        prepared_statements: bool = True,
        max_pool_size: int = 10,
        events: Events | None = None,
        plugins: Sequence[Plugin] = (),
        pg_bin: Path | None = None,
        application_name: str = "gw",
        session_limits: SessionLimits = NO_LIMITS,
        password: Callable[[], str] | None = None,
        pool: Any = None,
        conn: Callable[[], object] | None = None,
    ) -> None:
        events = events or Events()
        interceptors = Interceptors.attached(plugins, events)
        known = find_conninfo(conninfo) if conninfo is not None or pool is None else conninfo_behind(pool)
        database = None
        if known is not None:
            database = Database(
                known,
                schema=schema,
                application_name=application_name,
                prepared_statements=prepared_statements,
                pg_bin=pg_bin,
                limits=session_limits,
                password=password,
            )
        source: AsyncConnectionSource
        source = GivenPool(pool) if pool is not None or database is None else OwnPool(database, max_size=max_pool_size)
        super().__init__(
            LoopRuntime(database, source, schema=schema, events=events, interceptors=interceptors, conn=conn)
        )

    @classmethod
    def sharded(cls, connections: Mapping[str, str], *, by: ShardKey, **options: Any) -> AsyncShardedClient[Self]:
        """Return a client for queues on several databases, by name; `options` are those of each `AsyncClient`.

        `by` returns the key of a job, such as its tenant: jobs with equal keys go to the same database.
        """
        from gw_core.clients.sharding import AsyncShardedClient

        return AsyncShardedClient({name: cls(each, **options) for name, each in connections.items()}, by=by)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client's own connections. A pool or engine that was passed in stays open."""
        await self._runtime.close()

    @overload
    async def result(
        self, job_id: int, task: Callable[..., Coroutine[Any, Any, T]], *, timeout: Duration | None = None
    ) -> T: ...
    @overload
    async def result(self, job_id: int, task: Callable[..., T], *, timeout: Duration | None = None) -> T: ...
    @overload
    async def result(self, job_id: int, task: None = None, *, timeout: Duration | None = None) -> Any: ...
    async def result(
        self, job_id: int, task: Callable[..., object] | None = None, *, timeout: Duration | None = None
    ) -> Any:
        """Wait until a job has ended, and return what its task returned; see `Client.result`.

        One more connection listens. If it is unknown where a pool of yours leads, the client asks, at first 50 ms and
        later 2 s apart.
        """
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        runtime: LoopRuntime = self._runtime
        with ExitStack() as stack:

            async def act(pause: float | None) -> Any:
                if pause is None:
                    [row] = await runtime.carry_out(
                        fetched(Call("job_end", {"job_id": job_id, "schema": self._schema}))
                    )
                    return job_end(row)
                if not pause and runtime.result_listener is not None:
                    stack.enter_context(runtime.result_listener.waiting(job_id, lambda: _call_in(loop, ended.set)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):  # before Python 3.12, `wait_for` can swallow a cancellation
                        await ended.wait()
                return ended.clear()

            return await await_steps(awaiting(job_id, timeout, task), act)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call the function in the loop, from another thread; a loop that is closed waits for nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
