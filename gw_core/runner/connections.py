"""The connections of a runner: those of tasks, and one for each kind of work that must not wait for another."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from gw_core.maintenance.heartbeat import heartbeat_session
from gw_core.postgres.connection.connections import (
    CallersPool,
    ConnectionPool,
    SharedConnection,
    conninfo_of,
    password_of,
)
from gw_core.postgres.connection.database import Database, expand_conninfo, find_conninfo

if TYPE_CHECKING:
    from gw_core.postgres.connection.connections import AnyPool

CLOSE_TIMEOUT: Final = timedelta(seconds=0.05)

MAINTENANCE_RESPONSE_TIMEOUT: Final = timedelta(seconds=60)
"""The limit for the response to a maintenance statement."""

MAINTENANCE: Final = {"lock_timeout": "10s"}
"""Session settings of the maintenance connection. Scheduler, sweeper and lock renewal share it, so none of them may
wait long for a table that another session keeps locked."""


class RunnerConnections:
    """Opens each connection at its first use. The claimer and the settler open theirs from `database`."""

    def __init__(
        self,
        conninfo: str | None,
        *,
        schema: str,
        prepared_statements: bool,
        max_pool_size: int,
        heartbeat_timeout: timedelta,
        listen_conninfo: str | None,
        pg_bin: Path | None,
        password: Callable[[], str] | None,
        pool: AnyPool | None,
    ) -> None:
        self.database = Database(
            find_conninfo(conninfo) if pool is None else conninfo_of(pool),
            schema=schema,
            prepared_statements=prepared_statements,
            pg_bin=pg_bin,
            notice_pooler=True,
            password=password or password_of(pool),
        )
        self.listen_database = (
            None
            if listen_conninfo is None
            else Database(expand_conninfo(listen_conninfo), schema=schema, notice_pooler=True, password=password)
        )
        self.tasks = (
            ConnectionPool(self.database, max_size=max_pool_size, role="task")
            if pool is None
            else CallersPool(self.database, pool)
        )
        self.maintenance = SharedConnection(
            self.database, role="maintenance", settings=MAINTENANCE, response_timeout=MAINTENANCE_RESPONSE_TIMEOUT
        )
        # Without a response timeout: a migration step can take long.
        self.migration = SharedConnection(self.database, role="migrate")
        # So that heartbeats never wait for other statements.
        self.heartbeat = SharedConnection(
            self.database,
            role="heartbeat",
            settings=heartbeat_session(heartbeat_timeout),
            response_timeout=heartbeat_timeout,
        )

    def close(self) -> None:
        """Close all that are not in use; a service that waits for a statement keeps its own until the process exits."""
        self.tasks.close(timeout=CLOSE_TIMEOUT)
        for connection in (self.maintenance, self.migration, self.heartbeat):
            connection.close(timeout=CLOSE_TIMEOUT)
        self.database.close()
        if self.listen_database is not None:
            self.listen_database.close()

    def abort(self, until: Event, *, cancel_for: timedelta) -> None:
        """Abort what waits for the database until this event happens.

        The server would finish the current migration step before it notices the disconnect, so the step is cancelled.
        """
        deadline = time.monotonic() + cancel_for.total_seconds()
        while not until.wait(CLOSE_TIMEOUT.total_seconds()):
            self.maintenance.abort()
            self.heartbeat.abort()
            if not self.migration.cancel() or time.monotonic() > deadline:
                self.migration.abort()
