"""Whether our role may do what a worker does, asked at the start and after an error: rights do not come by waiting."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import psycopg

from gw_core.domain.counted import some
from gw_core.domain.errors import (
    DatabaseError,
    GraphileWorkerError,
    LockTimeoutError,
    PermissionDeniedError,
    ReadOnlyError,
)
from gw_core.domain.rules.roles import RoleKind, rights_of
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.postgres.connection.database import Connection, in_one_trip
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import lacking_right, owner_runs, rows
from gw_core.postgres.connection.statement_runner import Store
from gw_core.postgres.connection.statements import query

LOCK_TIMEOUT: Final = timedelta(seconds=2)
"""How long a start waits for a locked table until it reports it."""


def require_rights(connection: Connection, schema: str, role: str, *, writes: bool = False) -> None:
    """Raise `PermissionDeniedError` when our role lacks a right that every worker needs.

    Raises `LockTimeoutError` when another session keeps a table locked, and with `writes` also `ReadOnlyError` when
    the server takes no writes now, as a standby does.
    """
    try:
        with translated(schema), in_one_trip(connection):
            connection.execute("select set_config('lock_timeout', %s, true)", (milliseconds(LOCK_TIMEOUT),))
            connection.execute(query("check_permissions", schema))
    except PermissionDeniedError as error:
        raise lacking_right(error, owner_runs(role, RoleKind.WORKER, schema)) from error
    except DatabaseError as error:
        # Anything else may be right again by the time of the first claim, which reports it if not.
        if isinstance(error, LockTimeoutError) or (writes and isinstance(error, ReadOnlyError)):
            raise


def with_lacking_rights(error: GraphileWorkerError, store: Store | None) -> GraphileWorkerError:
    """Return the error with all rights that our role lacks as a worker, and the remedy; any other error as it is."""
    if store is None or not isinstance(error, PermissionDeniedError) or not isinstance(error.__cause__, psycopg.Error):
        return error
    needed = [f"{right} {name}" for name, right in rights_of(RoleKind.WORKER)]
    try:
        values = {"schema": store.schema, "rights": needed}
        found = rows(store.connection, query("doctor_permissions", store.schema), values)
    except psycopg.Error:
        return error
    if not found:
        return error
    role, lacking = found[0][0], some([right.replace(" ", " on ") for _, right in found])
    remedy = owner_runs(role, RoleKind.WORKER, store.schema)
    return PermissionDeniedError(f"the database role {role!r} lacks {lacking}; run as {remedy}")
