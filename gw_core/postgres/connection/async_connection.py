"""Run statements on the connection that an asynchronous caller has, or on one of a pool."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import tuple_row

from gw_core.domain.errors import InvalidInputError
from gw_core.postgres.connection.callers_connection import Rows, check_dialect, is_django, is_instance, type_name
from gw_core.postgres.connection.connections import conninfo_of
from gw_core.postgres.connection.database import Database
from gw_core.postgres.connection.row_security import raise_if_hidden
from gw_core.postgres.connection.statement_steps import Unit, await_steps
from gw_core.postgres.road.add_calls import Call

if TYPE_CHECKING:
    import psycopg_pool

T = TypeVar("T")

ACCEPTED: Final = (
    "an open psycopg AsyncConnection or AsyncCursor, a SQLAlchemy AsyncSession or AsyncConnection, "
    "or an asyncpg connection"
)

ACCEPTED_POOLS: Final = "a psycopg AsyncConnectionPool, an asyncpg Pool or a SQLAlchemy AsyncEngine"


class AsyncCallersConnection:
    """What adding and removing jobs needs of a connection."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    async def fetch(self, call: Call) -> Rows:
        """Run a statement in the connection's transaction and return its rows; raises the driver's errors.

        Raises `PermissionDeniedError` if row security hides rows that the statement reads or changes.
        """
        if question := call.visibility(self._schema):
            raise_if_hidden(await self._fetch(question), self._schema)
        return await self._fetch(call)

    def _fetch(self, call: Call) -> Awaitable[Rows]:
        """Run a statement."""
        raise NotImplementedError

    def run(self, step: Call | Unit) -> Awaitable[Any]:
        """Run one statement, or those of a unit; the answer is its rows, or the result of the unit."""
        return self.fetch(step) if isinstance(step, Call) else self._run_unit(step)

    async def _run_unit(self, unit: Unit) -> Any:
        if not unit.is_atomic:
            return await await_steps(unit.steps(), self._fetch_any)
        async with self.atomic():
            return await await_steps(unit.steps(), self._fetch_any)

    async def _fetch_any(self, step: Call | Iterable[Call]) -> Rows:
        if isinstance(step, Call):
            return await self.fetch(step)
        return [row for call in step for row in await self.fetch(call)]

    def atomic(self) -> AbstractAsyncContextManager[Any]:
        """Make a block all or nothing: a savepoint in a transaction, a transaction of its own in autocommit mode."""
        raise NotImplementedError

    async def execute(self, statement: str, values: Any = None) -> Rows:
        """Run a statement with values for `%s` or `%(name)s` as psycopg does, and return its rows."""
        raise NotImplementedError

    async def driver(self) -> Any:
        """Return the driver's own connection."""
        return self._connection

    async def is_in_transaction(self) -> bool:
        """Return whether the next statement belongs to a transaction of the caller's."""
        raise NotImplementedError


def async_callers_connection(conn: object, schema: str) -> AsyncCallersConnection:
    """Return what runs statements on `conn`, in its transaction and without changing its settings.

    This is the only place that decides what `conn` may be. Raises `InvalidInputError` for anything else.
    """
    if is_instance(conn, "asyncpg", "Connection") or is_instance(conn, "asyncpg.pool", "PoolConnectionProxy"):
        return AsyncpgConnection(conn, schema)
    if isinstance(conn, psycopg.AsyncConnection):
        return AsyncPsycopgConnection(conn, schema)
    if isinstance(conn, psycopg.AsyncCursor):
        return AsyncPsycopgConnection(conn.connection, schema)
    if is_instance(conn, "sqlalchemy.ext.asyncio", "AsyncSession", "async_scoped_session", "AsyncConnection"):
        return AsyncSqlAlchemyConnection(conn, schema)
    raise _rejected(conn)


def _rejected(conn: object) -> InvalidInputError:
    kind = type_name(conn)
    if (
        is_instance(conn, "asyncpg", "Pool")
        or is_instance(conn, "sqlalchemy.ext.asyncio", "AsyncEngine")
        or isinstance(conn, str)
    ):
        return InvalidInputError(
            f"conn cannot be of type {kind}, which has no transaction to join; pass {ACCEPTED}, "
            "or give it to AsyncClient itself"
        )
    is_synchronous = isinstance(conn, psycopg.Connection | psycopg.Cursor) or is_django(conn)
    if (
        is_synchronous
        or is_instance(conn, "sqlalchemy.orm", "Session")
        or is_instance(conn, "sqlalchemy.engine", "Connection")
    ):
        return InvalidInputError(f"conn is synchronous ({kind}); pass it to a Client, or pass {ACCEPTED}")
    return InvalidInputError(f"conn cannot be of type {kind}; pass {ACCEPTED}, or leave conn out")


class AsyncPsycopgConnection(AsyncCallersConnection):
    """A psycopg `AsyncConnection` of any cursor class, row factory and transaction mode."""

    async def _fetch(self, call: Call) -> Rows:
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            cursor.format = psycopg.pq.Format.BINARY
            await cursor.execute(*call.named(self._schema))
            # In a pipeline the result has not arrived, and there is no description yet.
            return await cursor.fetchall() if cursor.description or self._connection.pgconn.pipeline_status else []

    async def execute(self, statement: str, values: Any = None) -> Rows:
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description is not None else []

    async def is_in_transaction(self) -> bool:
        is_idle = self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        return not (self._connection.autocommit and is_idle)

    @asynccontextmanager
    async def atomic(self) -> AsyncIterator[None]:
        connection = self._connection
        # As the first use of an idle connection, `transaction()` would commit what belongs to the caller.
        if not connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            await psycopg.AsyncCursor(connection).execute("select")
        async with connection.transaction():
            yield


class AsyncpgConnection(AsyncCallersConnection):
    """An asyncpg connection; outside `conn.transaction()` it commits each statement."""

    def _fetch(self, call: Call) -> Awaitable[Rows]:
        """Run a statement and return its rows, which are sequences as tuples are."""
        text, values = call.numbered(self._schema)
        records: Awaitable[Rows] = self._connection.fetch(text, *values)
        return records

    async def execute(self, statement: str, values: Any = None) -> Rows:
        rows: Rows = await self._connection.fetch(_with_literals(statement, values))
        return rows

    async def is_in_transaction(self) -> bool:
        is_open: bool = self._connection.is_in_transaction()
        return is_open

    def atomic(self) -> AbstractAsyncContextManager[Any]:
        transaction: AbstractAsyncContextManager[Any] = self._connection.transaction()
        return transaction


class AsyncSqlAlchemyConnection(AsyncCallersConnection):
    """A SQLAlchemy `AsyncSession` or `AsyncConnection` on psycopg or asyncpg."""

    async def _fetch(self, call: Call) -> Rows:
        connection = await self._begun()
        is_asyncpg = connection.dialect.driver == "asyncpg"
        text, values = call.numbered(self._schema) if is_asyncpg else call.named(self._schema)
        result = await connection.exec_driver_sql(text, values)
        return [tuple(row) for row in result] if result.returns_rows else []

    async def execute(self, statement: str, values: Any = None) -> Rows:
        connection = await self._begun()
        text = _with_literals(statement, values)
        # SQLAlchemy passes an empty set of values to psycopg, which then reads `%` as the start of a placeholder.
        text = text if connection.dialect.driver == "asyncpg" else text.replace("%", "%%")
        result = await connection.exec_driver_sql(text)
        return list(result) if result.returns_rows else []

    async def driver(self) -> Any:
        raw = await (await self._begun()).get_raw_connection()
        return raw.driver_connection

    async def is_in_transaction(self) -> bool:
        raw = await (await self._begun()).get_raw_connection()
        return not raw.dbapi_connection.autocommit

    @asynccontextmanager
    async def atomic(self) -> AsyncIterator[None]:
        connection = await self._begun()
        # In autocommit mode SQLAlchemy sends no `begin`, so that its savepoint would stand outside any transaction.
        raw = await connection.get_raw_connection()
        if raw.dbapi_connection.autocommit:
            async with async_callers_connection(raw.driver_connection, self._schema).atomic():
                yield
        else:
            async with connection.begin_nested():
                yield

    async def _begun(self) -> Any:
        # The driver's connection beneath would be wrong: SQLAlchemy begins asyncpg's transaction at its own first
        # statement, so that a statement sent past it would be committed alone.
        is_connection = is_instance(self._connection, "sqlalchemy.ext.asyncio", "AsyncConnection")
        connection = self._connection if is_connection else await self._connection.connection()
        check_dialect(connection, drivers=("psycopg", "asyncpg"))
        return connection


_PLACEHOLDER: Final = re.compile(r"%(?:%|\((?P<name>[^)]+)\)[stb]|[stb])")


def _with_literals(statement: str, values: Any) -> str:
    """Return the statement with its values written as literals, for drivers that know no `%s`."""
    if values is None:
        return statement
    rest = iter(() if isinstance(values, Mapping) else values)

    def written(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        return sql.Literal(values[found["name"]] if found["name"] else next(rest)).as_string(None)

    return _PLACEHOLDER.sub(written, statement)


class AsyncConnectionSource(Protocol):
    """Where an `AsyncClient` gets connections when the caller passes none."""

    def connection(self) -> AbstractAsyncContextManager[Any]:
        """Provide a connection for statements that are committed together."""

    def autocommit(self) -> AbstractAsyncContextManager[Any]:
        """Provide a connection that commits each statement."""

    def abandon(self) -> None:
        """Forget the connections of a loop that is closed."""

    async def close(self) -> None:
        """Close what was opened for the client; what the caller opened stays open."""


def conninfo_behind(pool: object) -> str | None:
    """Return the connection string for connections beside those of a caller's pool; None if it is unknown."""
    if is_instance(pool, "psycopg_pool", "AsyncConnectionPool"):
        return None if callable(pool.conninfo) or callable(pool.kwargs) else conninfo_of(pool)
    if is_instance(pool, "sqlalchemy.ext.asyncio", "AsyncEngine"):
        url = pool.url
        # The folder of a socket stands in the query; there are several values for several hosts.
        query = {name: value for name, value in url.query.items() if isinstance(value, str)}
        host, port = url.host or query.get("host"), url.port or query.get("port")
        parts = {"host": host, "port": port, "dbname": url.database, "user": url.username}
        return make_conninfo(**{**parts, "password": url.password})
    return None


class GivenPool:
    """A pool or engine of the caller's."""

    def __init__(self, source: object) -> None:
        if is_instance(source, "psycopg_pool", "AsyncConnectionPool"):
            self.connection = source.connection
            self.autocommit = lambda: _in_autocommit(source)
        elif is_instance(source, "asyncpg", "Pool"):
            self.connection = self.autocommit = source.acquire
        elif is_instance(source, "sqlalchemy.ext.asyncio", "AsyncEngine"):
            self.connection = source.begin
            self.autocommit = source.execution_options(isolation_level="AUTOCOMMIT").connect
        else:
            raise InvalidInputError(f"pool cannot be of type {type_name(source)}; pass {ACCEPTED_POOLS}")

    def abandon(self) -> None:
        """Leave it to the caller to open the pool again."""

    async def close(self) -> None:
        """Leave the pool open."""


@asynccontextmanager
async def _in_autocommit(pool: psycopg_pool.AsyncConnectionPool[Any]) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with pool.connection() as connection:
        before = connection.autocommit
        await connection.set_autocommit(True)
        try:
            yield connection
        finally:
            if not connection.closed:
                await connection.set_autocommit(before)


class OwnPool:
    """A pool of autocommit connections, opened when first asked for one. To be used on one event loop."""

    def __init__(self, database: Database, *, max_size: int) -> None:
        self._database = database
        self._max_size = max_size
        self._lock = asyncio.Lock()  # guards _pool: two tasks must not both open it
        self._pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]] | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Provide a connection of the pool for the block."""
        async with self._lock:
            if self._pool is None:
                self._pool = await self._opened()
            pool = self._pool
        async with pool.connection() as connection:
            yield connection

    autocommit = connection

    def abandon(self) -> None:
        """Forget the pool of a loop that is closed; the next call opens another."""
        self._lock, self._pool = asyncio.Lock(), None

    async def close(self) -> None:
        """Close the connections and leave the embedded server, if one was started."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        await asyncio.to_thread(self._database.close)

    async def _opened(self) -> psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]]:
        import psycopg_pool

        # The first connection is made here: the pool's own errors say only that time ran out. It is made in a thread,
        # for it may start an embedded server.
        (await asyncio.to_thread(self._database.connect, "async")).close()
        pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]] = psycopg_pool.AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=self._max_size,
            max_idle=60.0,
            configure=self._configure,
            check=psycopg_pool.AsyncConnectionPool.check_connection,
            open=False,
            name="gw-async",
        )
        await pool.open()
        return pool

    async def _conninfo(self) -> str:
        # In a thread, for each connection: a password that changes may have to be fetched.
        return await asyncio.to_thread(self._database.libpq_conninfo, "async")

    async def _configure(self, connection: psycopg.AsyncConnection[Any]) -> None:
        setup = self._database.session_setup(connection.info.backend_pid)
        counts = [(await connection.execute(statement, values, prepare=False)).rowcount for statement, values in setup]
        self._database.configure(connection, is_direct=all(counts))
