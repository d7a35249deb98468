"""Claim, run and settle inside the transaction that a caller has open on a psycopg connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from gw_core.domain.errors import InvalidInputError
from gw_core.postgres.callers_connection import (
    begin_callers_transaction,
    callers_connection,
    is_django,
    of,
    tuple_cursor,
    type_name,
)
from gw_core.postgres.claims import CLAIM_PLAN
from gw_core.postgres.database import Connection, Database
from gw_core.postgres.error_mapping import translated

_NAME: Final = "gw_task"
_PROBE: Final = "gw_probe"
_PLAN: Final = {name: CLAIM_PLAN[name] for name in CLAIM_PLAN if name.startswith(("enable_", "plan_", "jit"))}
_SET: Final = (
    "select pg_catalog.set_config(plan.name, plan.value, true)"
    " from unnest(%s::text[], %s::text[]) as plan (name, value)"
)


def psycopg_connection(conn: object, schema: str) -> Connection:
    """Return the psycopg connection beneath what a caller passes as `conn`; unwritten changes of a session are flushed.

    Raises `InvalidInputError` for connections of other drivers.
    """
    if of(conn, "sqlalchemy.orm", "Session", "scoped_session"):
        conn.flush()
    driver = callers_connection(conn, schema).driver
    if not isinstance(driver, psycopg.Connection):
        raise InvalidInputError(f"jobs cannot run on a connection of {type_name(driver)}; use one of psycopg 3")
    return driver


class LentConnection:
    """Lends the caller's connection to tasks that ask their context for one."""

    def __init__(self, connection: Connection, schema: str) -> None:
        parameters: dict[str, Any] = {**connection.info.get_parameters(), "password": connection.info.password or None}
        self.database = Database(make_conninfo("", **parameters), schema=schema)
        self._connection = connection

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend the connection, which returns rows as tuples meanwhile, as one of a worker does."""
        before = self._connection.row_factory
        self._connection.row_factory = tuple_row
        try:
            yield self._connection
        finally:
            self._connection.row_factory = before


@contextmanager
def claim_plan(connection: Connection) -> Iterator[None]:
    """Plan the block's claim as a worker's session does, so that jobs run in the same order, and restore the settings.

    In autocommit mode the block is a transaction.
    """
    if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
        with translated(), connection.transaction():
            _set(connection, _PLAN)
            yield
        return
    with translated(), tuple_cursor(connection) as cursor:
        begin_callers_transaction(connection)
        settings = "select name, setting from pg_catalog.pg_settings where name = any(%s)"
        before = dict(cursor.execute(settings, (list(_PLAN),)).fetchall())
    _set(connection, _PLAN)
    yield
    _set(connection, before)


def _set(connection: Connection, settings: dict[str, str]) -> None:
    with translated(), tuple_cursor(connection) as cursor:
        cursor.execute(_SET, (list(settings), list(settings.values())))


class Savepoint:
    """A savepoint around code of the user's, which may release it with a commit, or roll it back.

    `connection.transaction()` forbids commits, also those that end only a savepoint of SQLAlchemy's.
    """

    def __init__(self, connection: Connection, conn: object) -> None:
        self._connection = connection
        self._wrapper: Any = conn if is_django(conn) else None
        self._needed_rollback = bool(getattr(self._wrapper, "needs_rollback", False))
        self._is_open = connection.info.transaction_status is not TransactionStatus.IDLE
        if self._is_open:
            self._execute(f"savepoint {_NAME}")

    def end(self) -> None:
        """Release the savepoint; roll back to it if an SQL error has aborted the transaction.

        Raises `InvalidInputError` if the savepoint of an aborted transaction is lost.
        """
        status = self._connection.info.transaction_status
        if status is TransactionStatus.INERROR:
            self._roll_back()
        elif status is TransactionStatus.INTRANS and self._is_open:
            self._release()

    def _roll_back(self) -> None:
        if not self._is_open:
            self._connection.rollback()
            return
        try:
            self._execute(f"rollback to savepoint {_NAME}; release savepoint {_NAME}")
        except psycopg.errors.InvalidSavepointSpecification as error:
            raise InvalidInputError(
                "a task ended the transaction that it ran in, and then an SQL error aborted the next one; "
                "give the task a session or a transaction of its own"
            ) from error
        if self._wrapper is not None:  # an atomic block of the task's may have asked for the rollback
            self._wrapper.needs_rollback = self._needed_rollback

    def _release(self) -> None:
        # A commit may have released it already. Then the release fails, and must abort nothing but the probe.
        self._execute(f"savepoint {_PROBE}")
        try:
            self._execute(f"release savepoint {_NAME}")
        except psycopg.errors.InvalidSavepointSpecification:
            self._execute(f"rollback to savepoint {_PROBE}; release savepoint {_PROBE}")

    def _execute(self, statements: str) -> None:
        psycopg.ClientCursor(self._connection).execute(statements.encode())
