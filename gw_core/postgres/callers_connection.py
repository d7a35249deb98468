"""Recognize the connections that callers pass as `conn`, and use them without changing them."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.errors import InvalidInputError
from gw_core.postgres.database import Connection

BorrowedConnection = psycopg.Connection[Any]
"""A connection of the caller's: any cursor class, row factory and transaction mode."""


def borrowed(conn: object) -> Connection:
    """Return the psycopg connection behind what a caller passed as `conn`; raises `InvalidInputError` if it is none.

    This is the only place that decides what `conn` may be.
    """
    if isinstance(conn, psycopg.Connection):
        return conn
    kind = f"{type(conn).__module__}.{type(conn).__qualname__}"
    raise InvalidInputError(
        f"conn cannot be of type {kind}; pass an open psycopg.Connection (psycopg 3, not async), "
        "whose transaction the job then joins, or leave conn out"
    )


def tuple_cursor(connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
    """Return a cursor that binds on the server and returns tuples, whatever cursors the connection makes itself.

    Our statements need named parameters and binary results; a `ClientCursor` (Django's default) has no binary results,
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
