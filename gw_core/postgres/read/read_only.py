"""Run read-only queries in one round trip, with statement and lock timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.rules.session_limits import milliseconds
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.database import answered_within, in_one_trip
from gw_core.postgres.connection.error_mapping import rows_hidden, translate
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.add_calls import Call

Rows = list[tuple[Any, ...]]

LOCK_TIMEOUT: Final = timedelta(seconds=1)

CATALOG_STATEMENTS: Final = frozenset({"snapshot_place", "snapshot_counters"})
"""Statements that read only the catalog, so row security hides nothing from them."""


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
    with connections.connection() as connection:
        own = connections.database.limits
        values = {
            "statement_timeout": milliseconds(own.cap_statement_timeout(timeout)),
            "lock_timeout": milliseconds(own.cap_lock_timeout(lock_timeout or LOCK_TIMEOUT)),
            "plans": "force_generic_plan" if is_planned_once else "force_custom_plan",
        }
        try:
            # A pipeline is one transaction without `begin` and `commit`: its settings end with it, a pooler keeps it on
            # one server connection, and the server never waits inside an open transaction.
            with answered_within(connection, timeout * (len(calls) + 1)), in_one_trip(connection):
                session = connection.execute(query("session_limits", schema), {**values, "schema": schema})
                cursors = [
                    connection.cursor(binary=True, row_factory=tuple_row).execute(
                        query(call.statement, schema, **call.names), call.values
                    )
                    for call in calls
                ]
            row = session.fetchone()
            if (
                row is not None
                and row[0] is not None
                and not CATALOG_STATEMENTS.issuperset(call.statement for call in calls)
            ):
                raise rows_hidden(row[0], schema)
            return [cursor.fetchall() for cursor in cursors]
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise translate(error, schema=schema) from error
