"""Whether our role may do what a worker does, asked once at the start: rights do not come by waiting."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from gw_core.domain.errors import DatabaseError, LockTimeoutError, PermissionDeniedError, ReadOnlyError
from gw_core.domain.rules.roles import RoleKind
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.postgres.connection.database import Connection, in_one_trip
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import lacking_right, owner_runs
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
