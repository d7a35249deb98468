"""Run statements on the connection that a caller passes as `conn`, whatever library it comes from.

Only psycopg is imported. A connection of another library is recognized by the classes of that library, which its owner
has imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeGuard

import psycopg
from psycopg.generators import send
from psycopg.rows import tuple_row

from gw_core.domain.errors import InvalidInputError
from gw_core.postgres.connection.database import Connection, sent_together
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import raise_if_hidden
from gw_core.postgres.road.add_calls import Call

Rows = list[tuple[Any, ...]]

ACCEPTED: Final = (
    "an open psycopg connection or cursor, a SQLAlchemy Session or Connection, "
    "one of Django's connections or its alias, or a psycopg2 connection"
)


class CallersConnection:
    """What adding and removing jobs needs of a connection."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    @property
    def driver(self) -> object:
        """The driver's own connection."""
        return self._connection

    def fetch(self, call: Call) -> Rows:
        """Run a statement in the connection's transaction and return its rows as tuples; raises gw's errors.

        Raises `PermissionDeniedError` if row security hides rows that the statement reads or changes.
        """
        if question := call.visibility(self._schema):
            raise_if_hidden(self._fetch(question), self._schema)
        return self._fetch(call)

    def _fetch(self, call: Call) -> Rows:
        """Run a statement."""
        raise NotImplementedError

    def fetch_all(self, calls: Iterable[Call]) -> Rows:
        """Run one statement after the other, and return the rows of all."""
        return [row for call in calls for row in self.fetch(call)]

    def run(self, step: Call | Iterable[Call]) -> Rows:
        """Run one statement or several, and return the rows."""
        return self.fetch(step) if isinstance(step, Call) else self.fetch_all(step)

    def atomic(self) -> AbstractContextManager[None]:
        """Make a block all or nothing: a savepoint in a transaction, a transaction of its own in autocommit mode."""
        raise NotImplementedError


def callers_connection(conn: object, schema: str) -> CallersConnection:
    """Return what runs statements on `conn`, in its transaction and without changing its settings.

    This is the only place that decides what `conn` may be. Raises `InvalidInputError` for anything else.
    """
    if isinstance(conn, psycopg.Cursor | psycopg.Connection):
        return PsycopgConnection(conn if isinstance(conn, psycopg.Connection) else conn.connection, schema)
    if is_instance(conn, "sqlalchemy.orm", "Session", "scoped_session"):
        with translated(schema):  # it may connect now
            return SqlAlchemyConnection(conn.connection(), schema)
    if is_instance(conn, "sqlalchemy.engine", "Connection"):
        return SqlAlchemyConnection(conn, schema)
    if is_instance(conn, "sqlalchemy.pool", "PoolProxiedConnection"):
        return callers_connection(conn.driver_connection, schema)
    if is_django(conn):
        return DjangoConnection(conn, schema)
    if isinstance(conn, str) and (wrapper := _django_connection(conn)) is not None:
        return DjangoConnection(wrapper, schema)
    if is_instance(conn, "psycopg2.extensions", "connection"):
        return Psycopg2Connection(conn, schema)
    if is_instance(conn, "psycopg2.extensions", "cursor"):
        return Psycopg2Connection(conn.connection, schema)
    raise _rejected(conn)


def is_instance(value: object, module: str, *classes: str) -> TypeGuard[Any]:
    """Return whether `value` is of one of the classes, without importing their module."""
    loaded = sys.modules.get(module)
    kinds = [getattr(loaded, name, None) for name in classes]
    return isinstance(value, tuple(kind for kind in kinds if isinstance(kind, type)))


def is_django(conn: object) -> bool:
    """Return whether `conn` is one of Django's connections, or the proxy `django.db.connection`."""
    return "django.db" in sys.modules and hasattr(conn, "settings_dict") and hasattr(conn, "vendor")


def _django_connection(alias: str) -> Any:
    """Return Django's connection with this alias; None if there is none."""
    conf, db = sys.modules.get("django.conf"), sys.modules.get("django.db")
    if conf is None or db is None or not conf.settings.configured or alias not in db.connections.settings:
        return None
    return db.connections[alias]


def type_name(value: object) -> str:
    """Return the type of a value as its user would import it."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _rejected(conn: object) -> InvalidInputError:
    if _is_async(conn):
        return InvalidInputError(
            f"conn is asynchronous ({type_name(conn)}); pass it to an AsyncClient, or in a test to AsyncQueue"
        )
    if isinstance(conn, str) or hasattr(conn, "connect") or hasattr(conn, "getconn"):
        return InvalidInputError(
            f"conn cannot be of type {type_name(conn)}, which has no transaction to join; pass {ACCEPTED}"
        )
    return InvalidInputError(f"conn cannot be of type {type_name(conn)}; pass {ACCEPTED}, or leave conn out")


def _is_async(conn: object) -> bool:
    return (
        isinstance(conn, psycopg.AsyncConnection | psycopg.AsyncCursor)
        or is_instance(
            conn, "sqlalchemy.ext.asyncio", "AsyncSession", "AsyncConnection", "async_scoped_session", "AsyncEngine"
        )
        or is_instance(conn, "asyncpg", "Connection", "Pool")
        or is_instance(conn, "asyncpg.pool", "PoolConnectionProxy")
    )


# -- psycopg ---------------------------------------------------------------------------------------------------------


class PsycopgConnection(CallersConnection):
    """A psycopg connection of any cursor class, row factory and transaction mode."""

    def _fetch(self, call: Call) -> Rows:
        with translated(self._schema), tuple_cursor(self._connection) as cursor:
            # The plan of a statement with variables fits its values.
            cursor.execute(*call.named(self._schema), prepare=False if call.names else None)
            # In a pipeline the result has not arrived, and there is no description yet.
            return cursor.fetchall() if cursor.description or self._connection.pgconn.pipeline_status else []

    @contextmanager
    def atomic(self) -> Iterator[None]:
        with translated(self._schema):
            begin_callers_transaction(self._connection)
            with self._connection.transaction():
                yield


class OwnConnection(PsycopgConnection):
    """A psycopg connection that gw opened."""

    def fetch_all(self, calls: Iterable[Call]) -> Rows:
        """Send one statement after the other, and return the rows of all once they have run.

        The server works on a statement while `calls` makes the next. A failure skips the statements after it.
        """
        with translated(self._schema), sent_together(self._connection):
            cursors = [self._sent(call) for call in calls]
        return [row for cursor in cursors for row in cursor.fetchall()]

    def _sent(self, call: Call) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = tuple_cursor(self._connection).execute(*call.named(self._schema))
        # The driver has sent what the socket's buffer holds, and would send the rest with the next statement.
        self._connection.wait(send(self._connection.pgconn))
        return cursor


def tuple_cursor(connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
    """Return a cursor that binds on the server and returns tuples, whatever cursors the connection makes itself.

    The statements need named parameters and binary results; a `ClientCursor` (Django's default) has no binary results,
    and a `RawCursor` takes no names.
    """
    cursor = psycopg.Cursor(connection, row_factory=tuple_row)
    cursor.format = psycopg.pq.Format.BINARY
    return cursor


def begin_callers_transaction(connection: Connection) -> None:
    """Open the transaction that the caller's next statement would open; do nothing in autocommit mode or inside one.

    Without this, `connection.transaction()` as the first use of an idle connection would commit at its end, and the
    caller's rollback would come too late.
    """
    if not connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        psycopg.Cursor(connection).execute("select")


# -- psycopg2 --------------------------------------------------------------------------------------------------------


class Psycopg2Connection(CallersConnection):
    """A connection of psycopg2."""

    def _fetch(self, call: Call) -> Rows:
        # The class is named, for the connection may make cursors that return dictionaries.
        plain = sys.modules["psycopg2.extensions"].cursor
        with translated(self._schema), self._connection.cursor(cursor_factory=plain) as cursor:
            cursor.execute(*call.named(self._schema))
            return list(cursor.fetchall())

    def atomic(self) -> AbstractContextManager[None]:
        is_idle = self._connection.info.transaction_status == 0
        return _bracketed(self._run, opens_transaction=self._connection.autocommit and is_idle)

    def _run(self, statement: str) -> None:
        with translated(self._schema), self._connection.cursor() as cursor:
            cursor.execute(statement)


@contextmanager
def _bracketed(run: Callable[[str], object], *, opens_transaction: bool) -> Iterator[None]:
    """Put a block between statements that make it all or nothing."""
    begin, end, undo = ("begin", "commit", "rollback") if opens_transaction else _SAVEPOINT
    run(begin)
    try:
        yield
    except BaseException:
        run(undo)
        raise
    run(end)


_SAVEPOINT: Final = ("savepoint gw_bulk", "release savepoint gw_bulk", "rollback to savepoint gw_bulk")


# -- SQLAlchemy ------------------------------------------------------------------------------------------------------


class SqlAlchemyConnection(CallersConnection):
    """A SQLAlchemy `Connection` on psycopg or psycopg2."""

    def __init__(self, connection: Any, schema: str) -> None:
        check_dialect(connection, drivers=("psycopg", "psycopg2"))
        super().__init__(connection, schema)

    @property
    def driver(self) -> object:
        return self._connection.connection.driver_connection

    def _fetch(self, call: Call) -> Rows:
        with translated(self._schema):
            return [tuple(row) for row in self._connection.exec_driver_sql(*call.named(self._schema))]

    def atomic(self) -> AbstractContextManager[None]:
        driver: Any = self.driver
        # In this mode SQLAlchemy sends no `begin`, so that its savepoint would stand outside any transaction.
        if driver.autocommit:
            return callers_connection(driver, self._schema).atomic()
        savepoint: AbstractContextManager[None] = self._connection.begin_nested()
        return savepoint


def check_dialect(connection: Any, *, drivers: tuple[str, ...]) -> None:
    """Raise `InvalidInputError` unless a SQLAlchemy connection leads to PostgreSQL by one of these drivers."""
    dialect = connection.dialect
    if dialect.name != "postgresql" or dialect.driver not in drivers:
        raise InvalidInputError(
            f"conn is a SQLAlchemy connection of {dialect.name}+{dialect.driver}; "
            f"the queue needs postgresql with {' or '.join(drivers)}"
        )


# -- Django ----------------------------------------------------------------------------------------------------------


class DjangoConnection(CallersConnection):
    """Django's connection of one alias: opened when needed, part of `atomic()` and its savepoints."""

    def __init__(self, wrapper: Any, schema: str) -> None:
        if wrapper.vendor != "postgresql":
            raise InvalidInputError(
                f"conn is Django's connection {wrapper.alias!r} to {wrapper.vendor}; the queue needs postgresql"
            )
        super().__init__(wrapper, schema)

    @property
    def driver(self) -> object:
        """The driver's own connection, opened if it is not."""
        self._connection.ensure_connection()
        return self._connection.connection

    def _fetch(self, call: Call) -> Rows:
        with translated(self._schema), self._connection.cursor() as cursor:
            cursor.execute(*call.named(self._schema))
            return list(cursor.fetchall())

    def atomic(self) -> AbstractContextManager[None]:
        from django.db import transaction  # imported by its owner already

        atomic: AbstractContextManager[None] = transaction.atomic(using=self._connection.alias)
        return atomic
