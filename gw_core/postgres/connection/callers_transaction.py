"""Claim, run and settle inside the transaction that a caller has open on a psycopg connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from gw_core.domain.errors import InvalidInputError
from gw_core.postgres.connection.callers_connection import (
    callers_connection,
    is_django,
    is_instance,
    tuple_cursor,
    type_name,
)
from gw_core.postgres.connection.database import Connection, Database
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.road.claims import CLAIM_PLAN

_NAME: Final = "gw_task"
_PROBE: Final = "gw_probe"
PLAN: Final = {name: CLAIM_PLAN[name] for name in CLAIM_PLAN if name.startswith(("enable_", "plan_", "jit"))}
"""Settings of a transaction in which a claim is planned as in a worker's session."""
_SETTINGS: Final = "select name, pg_catalog.current_setting(name) from pg_catalog.unnest(%s::text[]) as name"


def psycopg_connection(conn: object, schema: str) -> Connection:
    """Return the psycopg connection beneath what a caller passes as `conn`; unwritten changes of a session are flushed.

    Raises `InvalidInputError` for connections of other drivers.
    """
    if is_instance(conn, "sqlalchemy.orm", "Session", "scoped_session"):
        conn.flush()
    driver = callers_connection(conn, schema).driver
    if not isinstance(driver, psycopg.Connection):
        raise InvalidInputError(f"jobs cannot run on a connection of {type_name(driver)}; use one of psycopg 3")
    return driver


class SingleConnection:
    """Provides the caller's connection to tasks that ask their context for one."""

    def __init__(self, connection: Connection, schema: str) -> None:
        parameters: dict[str, Any] = {**connection.info.get_parameters(), "password": connection.info.password or None}
        self.database = Database(make_conninfo("", **parameters), schema=schema)
        self._connection = connection

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide the connection for a block, in which it returns rows as tuples like a worker's."""
        before = self._connection.row_factory
        self._connection.row_factory = tuple_row
        try:
            yield self._connection
        finally:
            self._connection.row_factory = before


class ClaimPlan:
    """Plans claims as a worker's session does, so that jobs run in the same order, and prepares them.

    The caller's connection may prepare nothing, as Django's. The server would then parse and plan every claim again.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        with translated(), tuple_cursor(connection) as cursor:
            before = dict(cursor.execute(_SETTINGS, (list(PLAN),)).fetchall())
        self._set = _set_local(PLAN)
        self._restore = _set_local(before)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Use the plan for the claim in the block. In autocommit mode the block is a transaction."""
        connection = self._connection
        threshold = connection.prepare_threshold
        is_idle = connection.info.transaction_status is TransactionStatus.IDLE
        connection.prepare_threshold = 5 if threshold is None else threshold
        try:
            with translated(), connection.transaction() if connection.autocommit and is_idle else nullcontext():
                run_simply(connection, self._set)
                yield
                run_simply(connection, self._restore)
        finally:
            connection.prepare_threshold = threshold


def _set_local(settings: dict[str, str]) -> str:
    return "; ".join(f"set local {name} = '{value}'" for name, value in settings.items())


def run_simply(connection: Connection, statements: str) -> None:
    """Run statements of gw's own in one round trip."""
    psycopg.ClientCursor(connection).execute(statements.encode())


@contextmanager
def kept_open(conn: object) -> Iterator[None]:
    """Keep a connection of Django's open in the block, also when it is older than `CONN_MAX_AGE`.

    Tasks close such connections before and after each run, but the outcome of the run is not stored yet.
    """
    wrapper: Any = conn if is_django(conn) else None
    before = getattr(wrapper, "close_at", None)
    if before is None:
        yield
        return
    wrapper.close_at = None
    try:
        yield
    finally:
        wrapper.close_at = before


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
            run_simply(self._connection, f"savepoint {_NAME}")

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
            run_simply(self._connection, f"rollback to savepoint {_NAME}; release savepoint {_NAME}")
        except psycopg.errors.InvalidSavepointSpecification as error:
            raise InvalidInputError(
                "a task ended the transaction that it ran in, and then an SQL error aborted the next one; "
                "give the task a session or a transaction of its own"
            ) from error
        if self._wrapper is not None:  # an atomic block of the task's may have asked for the rollback
            self._wrapper.needs_rollback = self._needed_rollback

    def _release(self) -> None:
        # A commit may have released it already. Then the release fails, and must abort nothing but the probe.
        try:
            run_simply(self._connection, f"savepoint {_PROBE}; release savepoint {_NAME}")
        except psycopg.errors.InvalidSavepointSpecification:
            run_simply(self._connection, f"rollback to savepoint {_PROBE}; release savepoint {_PROBE}")
