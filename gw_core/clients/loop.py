"""How `AsyncClient` carries out what its parts ask for: on the event loop, or in threads where that blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import cached_property, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gw_core.clients.threads import ThreadRuntime
from gw_core.clients.verbs import DefaultConn, OnLoop, default_conn
from gw_core.domain.errors import DatabaseUnavailableError, DeadlockError, InvalidInputError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors
from gw_core.domain.rules.session_limits import NO_LIMITS
from gw_core.postgres.connection.async_connection import AsyncConnectionSource, async_callers_connection
from gw_core.postgres.connection.connections import ConnectionPool
from gw_core.postgres.connection.database import Database
from gw_core.postgres.connection.deadlines import in_time
from gw_core.postgres.connection.error_mapping import sentence, translated
from gw_core.postgres.connection.loop_session import LoopSession
from gw_core.postgres.connection.statement_steps import Operation, Unit, await_steps, deadlock_pauses, with_limit
from gw_core.postgres.read.job_results import ResultListener
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.enqueue import AddOperations, inline_loop

if TYPE_CHECKING:
    from gw_core.clients.verbs import Acting, Part, Request
    from gw_core.postgres.road.bulk_actions import ActionResult

T = TypeVar("T")

MAX_BLOCKING: Final = 2
"""Connections for methods that block, beside those of the pool."""

_END: Final = object()


class LoopRuntime(OnLoop):
    """The connections of a client on an event loop, shared by its parts. To be used on one loop at a time.

    `database` is None if it is unknown where a pool of the caller's leads.
    """

    def __init__(
        self,
        database: Database | None,
        source: AsyncConnectionSource,
        *,
        schema: str,
        events: Events,
        interceptors: Interceptors,
        conn: DefaultConn | None = None,
    ) -> None:
        self.database = database
        self._default_conn = conn
        self.schema = schema
        self.events = events
        self.interceptors = interceptors
        self.adds = AddOperations(interceptors, events)
        self._source = source
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that the connections belong to."""

    @cached_property
    def on_threads(self) -> ThreadRuntime:
        """The connections of the methods that block. Raises `InvalidInputError` if it is unknown where they lead."""
        if self.database is None:
            raise InvalidInputError(
                "this method opens connections of its own, and gw cannot know where this pool leads; "
                "name the database too: AsyncClient(conninfo, pool=pool)"
            )
        connections = ConnectionPool(self.database, max_size=MAX_BLOCKING)
        return ThreadRuntime(self.database, connections, events=self.events, interceptors=self.interceptors)

    @cached_property
    def result_listener(self) -> ResultListener | None:
        """Wakes those who wait for the results of jobs; None if it is unknown where its connection leads."""
        return None if self.database is None else ResultListener(self.database)

    def verb(self, function: Callable[..., Request[T]], part: Part[Any]) -> Callable[..., Coroutine[Any, Any, T]]:
        """Return the coroutine function that carries out the requests of this function."""

        @wraps(function)
        async def method(*args: Any, conn: object | None = None, **kwargs: Any) -> T:
            request = function(part, *args, conn=default_conn(self._default_conn, conn), **kwargs)
            return await self.carry_out(request.operation, request.conn)

        method.__wrapped__ = MethodType(function, part)
        return method

    def blocking(self, function: Callable[..., T], part: Part[Any]) -> Callable[..., Coroutine[Any, Any, T]]:
        """Return the coroutine function that calls this function in a thread."""

        @wraps(function)
        async def method(*args: Any, **kwargs: Any) -> T:
            return await asyncio.to_thread(function, part._on(self.on_threads), *args, **kwargs)

        method.__wrapped__ = MethodType(function, part)
        return method

    def iterating(self, function: Callable[..., Iterator[T]], part: Part[Any]) -> Callable[..., AsyncIterator[T]]:
        """Return the function whose iterator takes each of its steps in a thread."""

        @wraps(function)
        async def method(*args: Any, **kwargs: Any) -> AsyncIterator[T]:
            steps = iter(await asyncio.to_thread(function, part._on(self.on_threads), *args, **kwargs))
            # A function that `next` would end: a StopIteration cannot leave a thread's future.
            while (step := await asyncio.to_thread(next, steps, _END)) is not _END:
                yield step  # type: ignore[misc]

        method.__wrapped__ = MethodType(function, part)
        return method

    def in_batches(
        self, function: Callable[..., Acting], part: Part[Any]
    ) -> Callable[..., AsyncIterator[ActionResult]]:
        """Return the function whose iterator yields the result of each batch."""

        @wraps(function)
        async def method(*args: Any, conn: object | None = None, **kwargs: Any) -> AsyncIterator[ActionResult]:
            acting = function(part, *args, conn=default_conn(self._default_conn, conn), **kwargs)
            while (result := await self.carry_out(acting.batches.following(), acting.conn)) is not None:
                yield result

        return method

    async def carry_out(self, operation: Operation[T], conn: object | None = None) -> T:
        """Carry an operation out on the caller's connection, or each unit on one of the client's."""
        conn = default_conn(self._default_conn, conn)

        async def act(step: Call | Unit | Callable[[object | None], Any]) -> Any:
            if callable(step):
                session = None if conn is None else await LoopSession.of(conn, self.schema)
                return await asyncio.to_thread(_run_beside, asyncio.get_running_loop(), step, session)
            try:
                if conn is None:
                    return await in_time(self._run_on_own(step))
                with translated(self.schema):
                    return await async_callers_connection(conn, self.schema).run(step)
            except OSError as error:  # asyncpg passes on those of sockets, and its timeouts without a word
                text = sentence(error) if str(error) else "it has not answered within the timeout of its driver"
                raise DatabaseUnavailableError(f"the database cannot be reached: {text}") from error

        return await await_steps(operation, act)

    async def _run_on_own(self, step: Call | Unit) -> Any:
        self._check_loop()
        is_atomic = isinstance(step, Unit) and step.is_atomic
        limits = NO_LIMITS if self.database is None else self.database.limits
        pauses = deadlock_pauses()
        before = _cancellations()
        while True:
            try:
                with translated(self.schema):
                    async with self._source.connection() if is_atomic else self._source.autocommit() as lent:
                        if _cancellations() > before:  # a pool swallows one that arrives together with a connection
                            raise asyncio.CancelledError
                        return await async_callers_connection(lent, self.schema).run(with_limit(step, limits))
            except DeadlockError:
                if (pause := next(pauses, None)) is None:
                    raise
                await asyncio.sleep(pause)

    def _check_loop(self) -> None:
        """Raise `InvalidInputError` on a second loop: connections that two loops use break, and may lose commits."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        if self._loop is not None:
            if not self._loop.is_closed():
                raise InvalidInputError(
                    "this AsyncClient belongs to another event loop; make one for each loop, or pass conn=…"
                )
            self._source.abandon()
        self._loop = loop

    async def close(self) -> None:
        """Close what was opened for the client. A pool or engine that was passed in stays open."""
        if self._loop is not None:
            self._check_loop()
        await asyncio.to_thread(self._close_blocking)
        await self._source.close()
        self._loop = None

    def _close_blocking(self) -> None:
        if self.__dict__.get("result_listener") is not None:
            self.__dict__["result_listener"].close()
        if "on_threads" in self.__dict__:
            self.on_threads.connections.close()
        if self.database is not None:
            self.database.close()


def _cancellations() -> int:
    """Return how often the current task was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _run_beside(
    loop: asyncio.AbstractEventLoop, step: Callable[[object | None], Any], session: LoopSession | None
) -> Any:
    """Call a function that knows the loop, in a thread with context variables of its own."""
    inline_loop.set(loop)
    return step(session)
