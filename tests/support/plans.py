"""The plans that the server makes for the statements under `sql/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import sql

from gw_core.postgres.connection.statements import numbered_query as numbered_query, query

SCHEMA: Final = "graphile_worker"
READER: Final = {"statement_timeout": "5s", "lock_timeout": "1s", "schema": SCHEMA, "uses": []}

Parts = Mapping[str, str]
"""The text of a statement that is filled in, by name."""


def kept_plan(
    connection: psycopg.Connection[Any],
    name: str,
    values: Mapping[str, Any] | None = None,
    *,
    parts: Parts | None = None,
    is_read: bool = False,
    options: str = "costs off",
) -> str:
    """Return the plan of a prepared statement, with null for every other value; of a reader, the generic one."""
    text, names = numbered_query(name, SCHEMA, **(parts or {}))
    given = sql.SQL(", ").join((values or {}).get(each, sql.NULL) for each in names)
    explain = sql.SQL("explain ({}) execute looked").format(sql.SQL(options))
    with connection.transaction(force_rollback=True):
        if is_read:
            limit_reads(connection, "force_generic_plan")
        connection.execute(b"prepare looked as " + text)
        try:
            rows = connection.execute(explain + sql.SQL("({})").format(given) if names else explain).fetchall()
        finally:
            connection.execute("deallocate looked")
    return "\n".join(row[0] for row in rows)


def plan_for(
    connection: psycopg.Connection[Any],
    name: str,
    values: Mapping[str, Any],
    *,
    parts: Parts | None = None,
    is_read: bool = False,
) -> str:
    """Return the plan of a statement for these values."""
    statement = b"explain (costs off) " + query(name, SCHEMA, **(parts or {})).encode()
    with connection.transaction(force_rollback=True):
        if is_read:
            limit_reads(connection, "force_custom_plan")
        return "\n".join(row[0] for row in connection.execute(statement, values).fetchall())


def limit_reads(connection: psycopg.Connection[Any], plans: str) -> None:
    """Set the limits of a session that reads, until the transaction ends."""
    connection.execute(query("session_limits", SCHEMA).encode(), {**READER, "plans": plans})
