"""An asynchronous connection of a caller's, for code in a thread: each statement runs on the caller's loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final, Self, TypeVar

from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from gw_core.domain.errors import GraphileWorkerError, InvalidInputError
from gw_core.postgres.connection.async_connection import (
    AsyncCallersConnection,
    AsyncSqlAlchemyConnection,
    async_callers_connection,
)
from gw_core.postgres.connection.callers_connection import Rows, is_instance
from gw_core.postgres.connection.callers_transaction import PLAN
from gw_core.postgres.connection.database import Connection, Database
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.statement_steps import Operation, await_steps
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.enqueue import AddOperations, Enqueuer
from gw_core.runtime.running_loop import running_loop

T = TypeVar("T")

_NAME: Final = "gw_task"
_PROBE: Final = "gw_probe"
_ARRAY: Final = re.compile(r"\$(\d+)::(\w+(?: precision)?\[\])")
_ABORTED: Final = "25P02"
_NO_SAVEPOINT: Final = "3B001"


_MISSING: Final = (
    "has no {name!r} here: the test has an asynchronous connection, on which context.connection() offers execute, "
    "cursor and transaction; let the task use that connection, or a session bound to it"
)


class LoopSession:
    """Runs statements on an asynchronous connection, in its transaction. Threads use it, one at a time."""

    def __init__(self, conn: Any, connection: AsyncCallersConnection, schema: str) -> None:
        self._conn = conn
        self._connection = connection
        self.schema = schema
        self.loop = asyncio.get_running_loop()
        self.store_connection: Connection = self  # type: ignore[assignment] # it runs statements itself
        self.connections = LoopConnections(self)

    def adder(self, adds: AddOperations) -> Enqueuer:
        """Return what adds jobs on the connection."""
        return LoopEnqueuer(self.connections, self.schema, adds, self)

    @classmethod
    async def of(cls, conn: Any, schema: str) -> LoopSession:
        """Return the session of what `AsyncClient.add` takes as `conn`; unwritten changes of a session are flushed."""
        connection = async_callers_connection(conn, schema)
        if _is_session(conn):
            await conn.flush()
            # Not the session itself: one in which a flush has failed runs no statement.
            connection = AsyncSqlAlchemyConnection(await conn.connection(), schema)
        return cls(conn, connection, schema)

    # -- on the loop -----------------------------------------------------------------------------------------------

    async def fetch(self, call: Call) -> Rows:
        """Run a statement, and return its rows as tuples."""
        with translated(self.schema):
            return [tuple(row) for row in await self._connection.fetch(call)]

    async def carry_out(self, operation: Operation[T]) -> T:
        """Carry an operation out on the connection."""

        async def act(step: Any) -> Any:
            if callable(step):
                return await asyncio.to_thread(step, self)
            with translated(self.schema):
                return await self._connection.run(step)

        return await await_steps(operation, act)

    async def driver(self) -> Any:
        """Return the driver's own connection."""
        return await self._connection.driver()

    async def _query(self, statement: str, values: Any) -> Rows:
        return [tuple(row) for row in await self._connection.execute(statement, values)]

    async def _execute(self, statement: str) -> Rows:
        with translated(self.schema):
            return [tuple(row) for row in await self._connection.execute(statement)]

    # -- in threads ------------------------------------------------------------------------------------------------

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine on the loop, and return its result."""
        if running_loop() is not None:
            work.close()
            raise InvalidInputError(
                "the methods of a context block the event loop of the test; "
                "call them with asyncio.to_thread, or use an AsyncClient with conn=…"
            )
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def rows(self, name: str, values: Mapping[str, Any], variables: Mapping[str, str]) -> Rows:
        """Run a statement of sql/queries, and return its rows."""
        return self.wait_for(self.fetch(_TextArrays(name, values, {"JSON": "text", **variables})))

    def query(self, statement: str, values: Any = None) -> Rows:
        """Run a statement of a task, and return its rows; raises the driver's errors."""
        return self.wait_for(self._query(statement, values))

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Make a block all or nothing."""
        block = self._connection.atomic()
        self.wait_for(_awaited(block.__aenter__()))
        try:
            yield
        except BaseException as error:
            self.wait_for(_awaited(block.__aexit__(type(error), error, error.__traceback__)))
            raise
        self.wait_for(_awaited(block.__aexit__(None, None, None)))

    def run(self, operation: Operation[T]) -> T:
        """Carry an operation out, and return its result."""
        return self.wait_for(self.carry_out(operation))

    def flush(self) -> None:
        """Write the changes that a task left in the caller's session."""
        if _is_session(self._conn):
            self.wait_for(self._conn.flush())

    @contextmanager
    def claim_plan(self) -> Iterator[None]:
        """Plan the claim in the block as a worker's session does, if the connection is in a transaction."""
        if not self.wait_for(self._is_in_transaction()):
            yield
            return
        [before] = self._execute_now("select " + ", ".join(f"current_setting('{name}')" for name in PLAN))
        self._set(dict(PLAN))
        yield
        self._set(dict(zip(PLAN, before, strict=True)))

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what a task has written if an SQL error aborted the transaction, should there be one.

        A commit of the task may have released the savepoint.
        """
        is_open = self.wait_for(self._is_in_transaction())
        if is_open:
            self._execute_now(f"savepoint {_NAME}")
        yield
        if is_open:
            self.wait_for(self._end_savepoint())

    def _set(self, settings: Mapping[str, str]) -> None:
        changes = (f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        self._execute_now("select " + ", ".join(changes))

    def _execute_now(self, statement: str) -> Rows:
        return self.wait_for(self._execute(statement))

    async def _is_in_transaction(self) -> bool:
        return await self._connection.is_in_transaction()

    async def _end_savepoint(self) -> None:
        try:
            await self._execute(f"savepoint {_PROBE}")
        except GraphileWorkerError as error:
            if _code_of(error) != _ABORTED:
                raise
            await self._roll_back()
            return
        try:
            await self._execute(f"release savepoint {_NAME}")
        except GraphileWorkerError as error:
            if _code_of(error) != _NO_SAVEPOINT:
                raise
            await self._execute(f"rollback to savepoint {_PROBE}")
            await self._execute(f"release savepoint {_PROBE}")

    async def _roll_back(self) -> None:
        try:
            await self._execute(f"rollback to savepoint {_NAME}")
        except GraphileWorkerError as error:
            if _code_of(error) != _NO_SAVEPOINT:
                raise
            raise InvalidInputError(
                "a task ended the transaction that it ran in, and then an SQL error aborted the next one; "
                "give the task a session or a transaction of its own"
            ) from error
        await self._execute(f"release savepoint {_NAME}")


class LoopEnqueuer(Enqueuer, frozen=True):
    """Adds jobs for the context of a task, on a connection of an event loop or on the one that the task passes."""

    session: LoopSession

    def _carry_out(self, operation: Operation[T], conn: object | None) -> T:
        return self.session.run(operation) if conn is None else super()._carry_out(operation, conn)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _is_session(conn: object) -> bool:
    return is_instance(conn, "sqlalchemy.ext.asyncio", "AsyncSession", "async_scoped_session")


class _TextArrays(Call, frozen=True):
    """A statement whose arrays may be texts; asyncpg takes a text for a parameter of this type only."""

    def numbered(self, schema: str) -> tuple[str, tuple[Any, ...]]:
        """Return text and values for drivers that write values as `$1`."""
        text, values = super().numbered(schema)

        def cast(found: re.Match[str]) -> str:
            return f"${found[1]}::text::{found[2]}" if isinstance(values[int(found[1]) - 1], str) else found[0]

        return _ARRAY.sub(cast, text), values


def _code_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of the driver's error beneath one of gw's."""
    found: BaseException | None = error
    while found is not None:
        if (code := getattr(found, "sqlstate", None)) is not None:
            return str(code)
        found = getattr(found, "orig", None) or found.__cause__
    return None


# -- what `context.connection()` gives a task in a thread -------------------------------------------------------------


class LoopConnections:
    """Provides the test's connection to tasks that ask their context for one."""

    def __init__(self, session: LoopSession) -> None:
        self._session = session

    @cached_property
    def database(self) -> Database:
        """Where the connection leads."""
        return Database(_conninfo(self._session.wait_for(self._session.driver())), schema=self._session.schema)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide the connection for a block."""
        yield LoopConnection(self._session)  # type: ignore[misc] # as far as tasks and gw's own statements need


class LoopConnection:
    """Runs statements as a psycopg connection does, on the loop of the test and in its transaction."""

    def __init__(self, session: LoopSession) -> None:
        self._session = session
        self.rows = session.rows
        self.info = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)
        """The test's transaction is open, so no statement is repeated."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the connection {_MISSING.format(name=name)}")

    def execute(self, query: str, params: Any = None) -> LoopCursor:
        """Run a statement, and return a cursor with its rows."""
        return self.cursor().execute(query, params)

    def cursor(self) -> LoopCursor:
        """Return a cursor."""
        return LoopCursor(self._session)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the block all or nothing: a savepoint in the test's transaction."""
        with self._session.atomic():
            yield


class LoopCursor:
    """The rows of one statement after the other, as tuples."""

    def __init__(self, session: LoopSession) -> None:
        self._session = session
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self.description: Rows | None = None
        """None until a statement has run."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the cursor {_MISSING.format(name=name)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def execute(self, query: str, params: Any = None) -> Self:
        """Run a statement."""
        self.description = self._session.query(query, params)
        self._rows = iter(self.description)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last one."""
        return next(self._rows, None)

    def fetchall(self) -> Rows:
        """Return the rows that are left."""
        return list(self._rows)

    def close(self) -> None:
        """Forget the rows."""
        self._rows = iter(())


def _conninfo(driver: Any) -> str:
    """Return how to reach the database of a driver's connection."""
    if is_instance(driver, "asyncpg", "Connection") or is_instance(driver, "asyncpg.pool", "PoolConnectionProxy"):
        given, address = driver._params, driver._addr
        host, port = (address.rsplit("/", 1)[0], address.rsplit(".", 1)[-1]) if isinstance(address, str) else address
        parameters = {"user": given.user, "dbname": given.database, "password": given.password}
        return make_conninfo(host=host, port=port, **parameters)
    return make_conninfo("", **{**driver.info.get_parameters(), "password": driver.info.password or None})
