"""The names a shell completes; with few imports, for somebody waits at a Tab key."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from psycopg.rows import tuple_row

from gw_core.domain.errors import TransientDatabaseError
from gw_core.postgres.database import Connection, Database, find_conninfo
from gw_core.postgres.statements import query
from gw_core.postgres.translation import translated

MOST_NAMES: Final = 200
LONGEST_SEARCH: Final = "2s"


class NameKind(StrEnum):
    """What a shell can complete."""

    TASKS = "tasks"
    QUEUES = "queues"
    KEYS = "keys"
    WORKERS = "workers"


def known_names(
    conninfo: str | None, schema: str, kind: NameKind, *, prefix: str = "", limit: int = MOST_NAMES
) -> list[str]:
    """Return the first names of a kind that begin with `prefix`, over a connection found as by `Client`."""
    database = Database(find_conninfo(conninfo), schema=schema)
    with database.connect() as connection:
        return find_names(connection, schema, kind, prefix=prefix, limit=limit)


def find_names(
    connection: Connection, schema: str, kind: NameKind, *, prefix: str = "", limit: int = MOST_NAMES
) -> list[str]:
    """Return the first names of a kind that begin with `prefix`; nothing when that takes long."""
    try:
        # One trip there and back.
        with translated(schema), connection.pipeline(), connection.transaction():
            connection.execute("select set_config('statement_timeout', %s, true)", (LONGEST_SEARCH,))
            with connection.cursor(row_factory=tuple_row) as cursor:
                cursor.execute(query(f"suggest_{kind}", schema), {"prefix": prefix, "limit": limit})
                return [row[0] for row in cursor.fetchall()]
    except TransientDatabaseError:
        return []
