"""Test code on an event loop: its jobs, and its tasks, on the loop and in the transaction of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar, Unpack

from gw_core import Job, Plugin, TaskRegistry
from gw_core.errors import InvalidInputError
from gw_core.runner.synchronous import DEFAULT_SCHEMA, async_session_of, program_loop, task_name, waiting_jobs_on_loop
from gw_core.testing.assertions import ANY, Conditions, WantedTask, check_enqueued, check_not_enqueued, wanted
from gw_core.testing.running import DrainResult, Place, Time, drained, performed
from gw_core.types import Duration

T = TypeVar("T")


class AsyncQueue:
    """The functions of `gw_core.testing` for a test on an event loop, as coroutine functions.

    `conn` is the connection of the test: a SQLAlchemy `AsyncSession` or `AsyncConnection`, an asyncpg connection, or a
    psycopg `AsyncConnection`. Async tasks run on the loop of the test, others in a thread. `now` is a `Clock`, or the
    time; without it, the database's time counts. Without `conn`, only `perform` works.

    Example: docs/guide/testing.md
    """

    def __init__(
        self,
        conn: object | None = None,
        *,
        tasks: TaskRegistry | None = None,
        schema: str = DEFAULT_SCHEMA,
        plugins: Sequence[Plugin] = (),
        now: Time = None,
    ) -> None:
        self._conn = conn
        self._tasks = tasks
        self._schema = schema
        self._plugins = plugins
        self._now = now

    async def perform(self, task: Callable[..., object] | str, payload: Any = None, **options: Any) -> Any:
        """Run a task as a worker does, and return what it returns; the options are those of `perform`."""
        place = await self._place()
        return await _in_thread(place, partial(performed, place, task, payload, self._tasks, **options))

    async def drain(
        self,
        *,
        task: Callable[..., object] | str | None = None,
        with_scheduled: bool = False,
        raises: bool = True,
        limit: int = 1_000,
    ) -> DrainResult:
        """Run the waiting jobs in the transaction of the test until none is due; the options are those of `drain`."""
        if self._tasks is None:
            raise InvalidInputError("drain needs the tasks that it runs; make the AsyncQueue with tasks=registry")
        options: dict[str, Any] = {"with_scheduled": with_scheduled, "raises": raises, "limit": limit}
        self._checked_conn()
        place = await self._place()
        return await _in_thread(place, partial(drained, place, self._tasks, task=task, **options))

    async def enqueued(self, task: WantedTask | None = None) -> list[Job]:
        """Return the waiting jobs that the transaction of the test sees, in the order in which workers take them."""
        name = None if task is None else task_name(task)
        return await waiting_jobs_on_loop(self._checked_conn(), task=name, schema=self._schema)

    async def assert_enqueued(
        self,
        task: WantedTask,
        payload: Any = ANY,
        *,
        count: int | None = None,
        within: Duration = timedelta(seconds=1),
        **conditions: Unpack[Conditions],
    ) -> list[Job]:
        """Assert that a job like this is waiting; see `assert_enqueued`."""
        __tracebackhide__ = True
        return check_enqueued(await self.enqueued(), wanted(task, payload, within, self._timed(conditions)), count)

    async def refute_enqueued(
        self,
        task: WantedTask,
        payload: Any = ANY,
        *,
        within: Duration = timedelta(seconds=1),
        **conditions: Unpack[Conditions],
    ) -> None:
        """Assert that no job like this is waiting; see `refute_enqueued`."""
        __tracebackhide__ = True
        check_not_enqueued(await self.enqueued(), wanted(task, payload, within, self._timed(conditions)))

    def _checked_conn(self) -> object:
        if self._conn is None:
            raise InvalidInputError("the AsyncQueue has no connection; make it with that of the test, AsyncQueue(conn)")
        return self._conn

    async def _place(self) -> Place:
        session = await async_session_of(self._conn, self._schema)
        loop = program_loop(asyncio.get_running_loop())
        return Place(session, schema=self._schema, plugins=self._plugins, now=self._now, loop=loop)

    def _timed(self, conditions: Conditions) -> Conditions:
        return conditions if self._now is None else {"now": self._now, **conditions}


async def _in_thread(place: Place, run: Callable[[], T]) -> T:
    """Call a function in a thread. When cancelled, end it early, and wait until it no longer uses the connection.

    The call ends after the task that runs, unless that is async, which is cancelled too.
    """
    running = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        place.cancel()
        while not running.done():  # the wait can be cancelled as well
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # asyncio reports an exception that is not read
        raise
