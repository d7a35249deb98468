"""Reach the database at the start, and make its schema ready."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from gw_core.domain.errors import DatabaseUnavailableError, LockTimeoutError, PermissionDeniedError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import PoolerDetected
from gw_core.domain.rules.roles import RoleKind
from gw_core.domain.rules.settings import PoolerMode, WorkerSettings
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.row_security import rows_hidden, uses_of_kind
from gw_core.postgres.road.permissions import require_rights
from gw_core.postgres.schema.schema_state import SchemaState, check
from gw_core.runner.connections import RunnerConnections
from gw_core.runtime.thread_calls import started
from gw_core.worker.outage import reconnect_delay

ABORT_SECONDS: Final = 1.0
"""How long the end of a run waits until statements of its start are cancelled and undone."""

ENDED: Final = "the run ended while it connected"


class SchemaPreparation:
    """Checks the schema, and with `migrate` installs or upgrades it; reports what a user should know."""

    def __init__(
        self,
        connections: RunnerConnections,
        settings: WorkerSettings,
        events: Events,
        log: logging.Logger,
        *,
        migrate: bool,
        log_startup: bool,
    ) -> None:
        self._connections = connections
        self._schema = connections.database.schema
        self._settings = settings
        self._events = events
        self._log = log
        self._migrate = migrate
        self._log_startup = log_startup
        self._end: Future[Any] | None = None

    def reach(self, *, once: bool, waits: bool, end: Future[Any] | None) -> None:
        """Prepare the schema; with `waits`, retry until the database can be reached.

        Raises `DatabaseUnavailableError` soon after the `end` of the run.
        """
        self._end = end
        tries = 0
        while True:
            try:
                self._prepare_in_time(once=once)
                break
            except DatabaseUnavailableError as error:
                if end is None or not waits or end.done():
                    raise
                delay = reconnect_delay(tries)
                if not tries:
                    self._log.warning("Cannot start yet: %s; retrying, first in %.2f s", error, delay.total_seconds())
                tries += 1
                if futures.wait([end], delay.total_seconds()).done:
                    raise
        if tries:
            self._log.info("Database available after %s attempts; starting", tries + 1)

    def _prepare_in_time(self, *, once: bool) -> None:
        """Prepare the schema; the end of the run does not wait for a connection that is made in a dead network."""
        if self._end is None or self._connections.database.is_embedded:
            self._prepare(once=once)
            return
        preparing = started("gw-prepare", lambda: self._prepare(once=once))
        futures.wait([preparing, self._end], return_when=futures.FIRST_COMPLETED)
        if futures.wait([preparing], ABORT_SECONDS).not_done:
            raise DatabaseUnavailableError(ENDED)
        preparing.result()

    @contextmanager
    def _connected(self, shared: SharedConnection) -> Iterator[Connection]:
        """Provide the connection, unless the run has ended while it was made."""
        with shared.connection() as connection:
            if self._end is not None and self._end.done():
                connection.close()  # the runner has closed the others
                raise DatabaseUnavailableError(ENDED)
            yield connection

    def _prepare(self, *, once: bool) -> None:
        with self._connected(self._connections.maintenance) as connection:
            # Asked once for all statements of a worker: rows do not become visible by waiting.
            worker = RoleKind.WORKER
            state = check(connection, self._schema, uses=uses_of_kind(worker), kind=worker)
        if state.hidden:
            raise rows_hidden(state.role, state.hidden, self._schema, worker)
        for warning in self._bring_up_to_date(state):
            self._log.warning("%s", warning)
        with self._connected(self._connections.maintenance) as connection:
            try:
                # `run` waits for a standby to be promoted; `run_once` does not.
                require_rights(connection, self._schema, state.role, writes=once)
            except LockTimeoutError:
                self._log.warning(
                    "Another session keeps a table of the queue locked; no job is claimed until it is released "
                    "(gw doctor shows which session that is)"
                )
        self._report_pooler()

    def _bring_up_to_date(self, state: SchemaState) -> Sequence[str]:
        """Migrate the schema if it needs it; return warnings."""
        if self._migrate and (state.problem() is not None or state.has_replaced_functions):
            try:
                return self._migrated()
            except PermissionDeniedError:
                if state.problem() is not None:
                    raise
        state.raise_unless_usable()
        return state.warnings() if self._log_startup else ()

    def _migrated(self) -> Sequence[str]:
        from gw_core.postgres.schema.migrations import migrate  # late: most starts need none

        try:
            with self._connected(self._connections.migration) as connection:
                return migrate(connection, self._schema).warnings
        finally:
            self._connections.migration.close()

    def _report_pooler(self) -> None:
        mode, settings = self._connections.database.pooling, self._settings
        if mode is not PoolerMode.NONE and self._log_startup:
            listens = mode is PoolerMode.SESSION or self._connections.listen_database is not None
            self._events.emit(
                PoolerDetected(mode=mode, listens=settings.listen and listens, poll_interval=settings.poll_interval)
            )
