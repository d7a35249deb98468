"""What `context.connection()` gives a task in a thread whose test has an asynchronous connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Self

from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from gw_core.postgres.connection.callers_connection import Rows, is_instance
from gw_core.postgres.connection.database import Connection, Database

if TYPE_CHECKING:
    from gw_core.postgres.connection.loop_session import LoopSession

_MISSING: Final = (
    "has no {name!r} here: the test has an asynchronous connection, on which context.connection() offers execute, "
    "cursor and transaction; let the task use that connection, or a session bound to it"
)


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
