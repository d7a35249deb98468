"""Run read-only queries in one round trip, with statement and lock timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.rules.session_limits import milliseconds
from gw_core.postgres.connection.database import Connection, in_one_trip
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.error_mapping import translate
from gw_core.postgres.connection.row_security import rows_hidden, uses_of, values_of_uses
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.add_calls import Call

if TYPE_CHECKING:
    from gw_core.postgres.connection.connections import ConnectionSource

Rows = list[tuple[Any, ...]]

LOCK_TIMEOUT: Final = timedelta(seconds=1)


def read(
    connections: ConnectionSource,
    schema: str,
    calls: Sequence[Call],
    *,
    timeout: timedelta,
    lock_timeout: timedelta | None = None,
    is_planned_once: bool = False,
) -> list[Rows]:
    """Run statements that only read, and return the rows of each. If one fails, all fail.

    `is_planned_once` uses one plan for all values, because planning often takes longer than execution.
    """
    own = connections.database.limits
    timeout = own.cap_statement_timeout(timeout)
    lock_timeout = own.cap_lock_timeout(lock_timeout or LOCK_TIMEOUT)
    with connections.connection() as connection:
        return read_on(connection, schema, calls, timeout, lock_timeout, is_planned_once=is_planned_once)


def read_on(
    connection: Connection,
    schema: str,
    calls: Sequence[Call],
    timeout: timedelta,
    lock_timeout: timedelta | None = None,
    *,
    is_planned_once: bool = False,
) -> list[Rows]:
    """As `read`, on one connection. Raises `PermissionDeniedError` if row security hides rows from a statement."""
    values = {
        "statement_timeout": milliseconds(timeout),
        "lock_timeout": milliseconds(lock_timeout or LOCK_TIMEOUT),
        "plans": "force_generic_plan" if is_planned_once else "force_custom_plan",
        **values_of_uses((use for call in calls for use in uses_of(call.statement, **call.names)), schema),
    }
    try:
        # A pipeline is one transaction without `begin` and `commit`: its settings end with it, a pooler keeps it on
        # one server connection, and the server never waits inside an open transaction. It ends each statement itself.
        with ending_within(timeout * len(calls) + ANSWER_GRACE), in_one_trip(connection):
            session = connection.execute(query("session_limits", schema), values)
            cursors = [
                connection.cursor(binary=True, row_factory=tuple_row).execute(
                    query(call.statement, schema, **call.names), call.values
                )
                for call in calls
            ]
        row = session.fetchone()
        if row is not None and row[1]:
            raise rows_hidden(row[0], row[1], schema)
        return [cursor.fetchall() for cursor in cursors]
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise translate(error, schema=schema) from error
