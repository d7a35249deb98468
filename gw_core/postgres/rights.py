"""Whether our role may do what a worker does, asked once at the start: rights do not come by waiting."""

from __future__ import annotations

from gw_core.domain.errors import DatabaseError, PermissionDeniedError, ReadOnlyError
from gw_core.postgres.database import Connection
from gw_core.postgres.statements import query
from gw_core.postgres.translation import translated


def require_rights(connection: Connection, schema: str, *, writes: bool = False) -> None:
    """Raise `PermissionDeniedError` when the role lacks a right that every worker needs.

    With `writes` raise `ReadOnlyError` as well when the server takes no writes now, as a standby does.
    """
    try:
        with translated(schema):
            connection.execute(query("exercise_rights", schema))
    except DatabaseError as error:
        # Anything else may be right again by the time of the first claim, which says so if it is not.
        if isinstance(error, PermissionDeniedError) or (writes and isinstance(error, ReadOnlyError)):
            raise
