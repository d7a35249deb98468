"""The names for shell completion; with few imports, because it runs on each Tab key."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from gw_core.domain.errors import TransientDatabaseError
from gw_core.domain.rules.session_limits import SessionLimits
from gw_core.embedded.address import EMBEDDED_PREFIX
from gw_core.postgres.connection.database import Connection, Database, find_conninfo
from gw_core.postgres.read.read_only import read_on
from gw_core.postgres.road.add_calls import Call

MAX_NAMES: Final = 200
NO_LIMITS: Final = SessionLimits()
SEARCH_TIMEOUT: Final = timedelta(seconds=2)


class NameKind(StrEnum):
    """What a shell can complete."""

    TASKS = "tasks"
    QUEUES = "queues"
    KEYS = "keys"
    CRON = "cron"
    WORKERS = "workers"
    SCHEMAS = "schemas"
    """Those that have a queue."""


COLUMNS: Final = {
    NameKind.TASKS: ("_private_tasks", "identifier"),
    NameKind.QUEUES: ("_private_job_queues", "queue_name"),
    NameKind.KEYS: ("_private_jobs", "key"),
    NameKind.CRON: ("_private_known_crontabs", "identifier"),
}


def known_names(
    conninfo: str | None, schema: str, kind: NameKind, *, prefix: str = "", limit: int = MAX_NAMES
) -> list[str]:
    """Return the first names of a kind that begin with `prefix`, over a connection found as by `Client`.

    An embedded server is asked when it runs, and not started.
    """
    found = find_conninfo(conninfo)
    if found.startswith(EMBEDDED_PREFIX):
        running = _of_running_server(found)
        if running is None:
            return []
        found = running
    with Database(found, schema=schema).connect() as connection:
        return find_names(connection, schema, kind, prefix=prefix, limit=limit)


def _of_running_server(embedded: str) -> str | None:
    """Return the address of a running embedded server; a completion must not start one."""
    from gw_core.embedded.address import PORT, conninfo_for, folder_of
    from gw_core.embedded.data_folder import DataFolder

    home = DataFolder(folder_of(embedded))
    return conninfo_for(home.socket_folder) if (home.data / f".s.PGSQL.{PORT}").exists() else None


def _call(kind: NameKind, values: dict[str, Any]) -> Call:
    if kind == NameKind.SCHEMAS:
        return Call("name_completion_schemas", values)
    if kind == NameKind.WORKERS:
        return Call("list_worker_locks", values)
    table, column = COLUMNS[kind]
    return Call("name_completion", values, {"TABLE": table, "NAME": column})


def find_names(
    connection: Connection,
    schema: str,
    kind: NameKind,
    *,
    prefix: str = "",
    limit: int = MAX_NAMES,
    limits: SessionLimits = NO_LIMITS,
) -> list[str]:
    """Return the first names of a kind that begin with `prefix`; nothing when that takes long.

    `limits` are those of the connection, which the search does not exceed.
    """
    call = _call(kind, {"prefix": prefix, "limit": limit, "resilient_flags": []})
    try:
        timeouts = limits.cap_statement_timeout(SEARCH_TIMEOUT), limits.cap_lock_timeout(SEARCH_TIMEOUT)
        [found] = read_on(connection, schema, [call], *timeouts)
    except TransientDatabaseError:
        return []
    return [row[0] for row in found if row[0] is not None and row[0].startswith(prefix)][:limit]
