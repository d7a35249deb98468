"""Notice when row security hides rows from our role: PostgreSQL reports no error, and a full table would look empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.errors import PermissionDeniedError
from gw_core.domain.rules.roles import LEDGERS, RoleKind, rights_of
from gw_core.domain.safe_text import shell_command
from gw_core.postgres.connection.error_mapping import sentence
from gw_core.postgres.connection.statements import marked_query, query

Uses = tuple[str, ...]
"""What a statement does with the rows of tables: `r TABLE` reads them, `w TABLE` updates and `d TABLE` deletes them."""

_TABLE: Final = re.compile(
    r"(?:\b(update|delete\s+from|insert\s+into|lock\s+table|on)\s+)?"
    r":GRAPHILE_WORKER_SCHEMA\.(?:(_private_\w+|migrations)\b(?!\()|(\w+)\()"
)
_COMMANDS: Final = {"update": "w", "delete": "d"}
_OF_FUNCTIONS: Final = {
    "complete_jobs": ("r _private_jobs", "d _private_jobs"),
    "permanently_fail_jobs": ("r _private_jobs", "w _private_jobs"),
    "reschedule_jobs": ("r _private_jobs", "w _private_jobs"),
    "remove_job": ("r _private_jobs", "w _private_jobs", "d _private_jobs"),
    "_private_gw_end_members": (
        *("r _private_jobs", "r _private_gw_waiting", "d _private_gw_waiting", "r _private_gw_edges"),
    ),
    "_private_gw_add_waiting": ("r _private_jobs", "w _private_jobs"),
}
"""What functions do with the rights of their caller. Those that add jobs need no check: PostgreSQL rejects the row."""

LEDGER_USES: Final = tuple(f"r {table}" for table in LEDGERS)
JOB_USES: Final = ("r _private_jobs", "w _private_jobs", "d _private_jobs")


def uses_of_kind(kind: RoleKind) -> Uses:
    """Return what roles of a kind do with the rows of tables."""
    commands = {"select": "r", "update": "w", "delete": "d"}
    return tuple(f"{commands[each]} {table}" for table, each in rights_of(kind) if each in commands)


@lru_cache(maxsize=512)
def uses_of(name: str, **names: str) -> Uses:
    """Return what the statement `sql/queries/NAME.sql` does with the rows of tables, by its text."""
    found: dict[str, None] = {}
    for verb, table, function in _TABLE.findall(marked_query(name, **names)):
        if function:
            found |= dict.fromkeys(_OF_FUNCTIONS.get(function, ()))
        elif not verb.startswith(("insert", "lock", "on")):
            command = _COMMANDS.get(verb.partition(" ")[0])
            found |= dict.fromkeys((f"r {table}", *([f"{command} {table}"] if command else ())))
    return tuple(found)


def values_of_uses(uses: Iterable[str], schema: str) -> dict[str, Any]:
    """Return the values of `hidden_rows.sql`."""
    return {"uses": list(dict.fromkeys(uses)), "schema": schema}


def raise_if_hidden(found: Sequence[Sequence[Any]], schema: str, kind: RoleKind | None = None) -> None:
    """Raise `PermissionDeniedError` for the rows of `hidden_rows.sql`, if there are any; `kind` is that of our role."""
    if found:
        raise rows_hidden(found[0][0], [use for _, use in found], schema, kind)


def rows_hidden(role: str, uses: Sequence[str], schema: str, kind: RoleKind | None = None) -> PermissionDeniedError:
    """Return the error for a role from which row security hides rows, with the remedy."""
    tables = ", ".join(dict.fromkeys(use[2:] for use in uses))
    reads = any(use.startswith("r") for use in uses)
    wanted = kind or (RoleKind.VIEWER if reads else RoleKind.OPERATOR)
    return PermissionDeniedError(
        f"row security hides rows of {tables} in schema {schema!r} from role {role!r}: no policy lets it "
        f"{'read' if reads else 'change'} them; run as {owner_runs(role, wanted, schema)}"
    )


def lacking_right(error: PermissionDeniedError, remedy: str) -> PermissionDeniedError:
    """Return the error of a role that lacks a privilege, with the remedy: who runs what."""
    cause = error.__cause__
    return PermissionDeniedError(
        f"the database role lacks a right: {sentence(cause if cause is not None else error)}; run as {remedy}"
    )


def owner_runs(role: str, kind: RoleKind | None, schema: str) -> str:
    """Return who gives a role the rights of its kind, and by which command."""
    return f"the queue's owner: {grant_command(role, kind, schema)}"


def grant_command(role: str, kind: RoleKind | None, schema: str) -> str:
    """Return the command that gives a role the rights of its kind."""
    where = () if schema == "graphile_worker" else (f"--schema={schema}",)
    word = str(kind) if kind is not None else "KIND"
    return shell_command(("gw", "grant", *where, word, role)) or f"gw grant {word} ROLE"


def visible_rows(
    connection: psycopg.Connection[Any], schema: str, name: str, values: Mapping[str, Any] | None = None, **names: str
) -> list[tuple[Any, ...]]:
    """Run a statement, if no row is hidden from it, and return its rows."""
    if uses := uses_of(name, **names):
        raise_if_hidden(rows(connection, query("hidden_rows", schema), values_of_uses(uses, schema)), schema)
    return rows(connection, query(name, schema, **names), values or {})


def rows(connection: psycopg.Connection[Any], statement: Any, values: Any) -> list[tuple[Any, ...]]:
    """Run a statement that is never prepared, and return its rows as tuples; none for one that has no result.

    Times and numbers in binary are the same under all of the session's settings: psycopg reads no time in the style
    'German', and `extra_float_digits` rounds numbers.
    """
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        # A generic plan would read the whole table where a plan for these values uses an index.
        cursor.execute(statement, values, prepare=False)
        # In a pipeline the result has not arrived, and there is no description yet.
        return cursor.fetchall() if cursor.description or connection.pgconn.pipeline_status else []
