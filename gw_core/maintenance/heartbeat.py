"""Say that this pool lives, as long as it does."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from gw_core.domain.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    GraphileWorkerError,
    PermissionDeniedError,
    TransientDatabaseError,
)
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    BreakingMigrationDetected,
    HeartbeatFailed,
    HeartbeatLate,
    HeartbeatRestored,
    MaintenanceFailed,
)
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road.permissions import with_lacking_rights
from gw_core.postgres.road.worker_store import HeartbeatResult, WorkerStore, with_workers
from gw_core.runtime.service import Service
from gw_core.version import __version__

TRY_AGAIN_AFTER: Final = timedelta(seconds=2)
"""How soon a failed heartbeat is repeated: others count from the last one that was written."""

MIN_GAP: Final = timedelta(seconds=1)
"""Between requested heartbeats: any client that can connect can send the notification that requests one."""

MIN_TEARDOWN_TIME: Final = timedelta(seconds=0.1)
"""What taking the heartbeat away may take in any case."""

OUTAGES: Final = (DatabaseUnavailableError, TransientDatabaseError)


def heartbeat_session(response_timeout: timedelta) -> Mapping[str, str]:
    """Return the session settings of the connection for heartbeats: it waits neither for locks nor for disks.

    A heartbeat that a server crash loses does no harm, because no time before the server's start counts as inactivity.
    """
    return {"statement_timeout": milliseconds(response_timeout / 2), "synchronous_commit": "off"}


class HeartbeatHandlers(msgspec.Struct, frozen=True, kw_only=True):
    """What a heartbeat calls, in its own thread."""

    needs_ping: Callable[[], bool] = lambda: False
    """Returns whether this heartbeat also sends a ping to all listeners."""
    on_ping_sent: Callable[[float], None] = lambda sent_at: None
    """Gets the monotonic time of a ping."""
    on_written: Callable[[timedelta], None] = lambda since: None
    """Called after each heartbeat that was written, with the time since it was sent."""
    on_rejected: Callable[[], None] = lambda: None
    """Called when the database cannot write a heartbeat for a reason that lasts, such as a missing right."""
    on_cancel_request: Callable[[], None] = lambda: None
    """Called when a heartbeat has read that jobs of the pool are to be cancelled."""
    on_claim_rules: Callable[[], None] = lambda: None
    """Called when a heartbeat has read that pauses or limits have changed."""
    on_breaking_migration: Callable[[int], None] = lambda revision: None
    """Called once, when a heartbeat has read that the schema has a breaking revision that is not known here."""


class Heartbeat(Service):
    """Writes a heartbeat immediately and then at an interval; reports when the gap was longer than others tolerate.

    `connection` is its own: a heartbeat must depend on nothing that other statements wait for.
    With `first_after`, none is written before that delay: a short run needs none.

    All state belongs to the thread that calls `step`; the first `write` comes before that thread starts. It
    continues while the pool stops, which may take long.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        connection: SharedConnection,
        events: Events,
        settings: WorkerSettings,
        metadata: Callable[[], Mapping[str, Any]],
        first_after: timedelta = timedelta(0),
        handlers: HeartbeatHandlers | None = None,
    ) -> None:
        super().__init__("gw-heartbeat")
        self._worker_id = worker_id
        self._connection = connection
        self._events = events
        self._every = settings.effective_heartbeat_interval
        self._tolerated = settings.sweep_threshold
        self._metadata = metadata
        self._first_after = first_after
        self._handlers = handlers or HeartbeatHandlers()
        self._began = time.monotonic()
        self.last_written_at: float | None = None
        """When the last heartbeat that was written was sent, by the steady clock; others read it and may be late."""
        self._tried_at = float("-inf")
        self._is_wanted = False
        self._is_other_session = False
        self._late_at: float | None = None
        self._too_late = settings.lease.total_seconds()
        self._has_seen_migration = False
        self._has_rust_workers = False
        self._failures = 0
        self._error: GraphileWorkerError | None = None
        self._unread: str | None = None
        """Why the last heartbeat was written, but read nothing else."""
        self._is_graceful = False

    def step(self) -> timedelta:
        """Write a heartbeat; rest until the next."""
        if self._is_other_session:
            # The connection may lead to a server that is no longer the primary.
            self._is_other_session = False
            self._connection.close()
            return self.write()
        if self._is_wanted:
            too_soon = self._tried_at + MIN_GAP.total_seconds() - time.monotonic()
            return timedelta(seconds=too_soon) if too_soon > 0 else self.write()
        if self.last_written_at is None and (left := self._first_after - self._lived()) > timedelta(0):
            return left
        # The first of a lasting worker was written before its pool began to claim.
        if self.last_written_at is None or self._age() >= self._every:
            return self.write()
        return self._every - self._age()

    def check_soon(self) -> None:
        """Write a heartbeat within a second, which reads what only the database can say; from any thread."""
        self._is_wanted = True
        self.wake()

    def renew_session(self) -> None:
        """Write a heartbeat immediately, over a new connection, because the worker claims over one; from any thread."""
        self._is_other_session = True
        self.wake()

    def held_up_at(self) -> float | None:
        """Return when heartbeats last came too late, by the steady clock: now, if one is overdue; None: never.

        Whatever kept us from writing may have kept others too. From any thread.
        """
        written_at, now = self.last_written_at, time.monotonic()
        return now if written_at is not None and now - written_at > self._too_late else self._late_at

    @property
    def is_delayed(self) -> bool:
        """Whether none was ever written, because the database could not do it at the time."""
        return self.last_written_at is None and isinstance(self._error, OUTAGES)

    def write(self) -> timedelta:
        """Write a heartbeat now; return how long to rest."""
        self._tried_at, self._is_wanted = time.monotonic(), False
        try:
            self._write()
        except GraphileWorkerError as error:
            self._report_failure(error)
            self._error = error
            self._is_wanted = True
            if not isinstance(error, OUTAGES):
                self._handlers.on_rejected()
            return min(self._every, TRY_AGAIN_AFTER)
        return self._every

    def end(self, *, is_graceful: bool, time_left: Callable[[], timedelta]) -> None:
        """Send no more heartbeats, and after a graceful stop delete the row, as long as there is time left for it."""
        self._is_graceful = is_graceful
        self.request_stop()
        self.join_until(time_left, at_least=MIN_TEARDOWN_TIME)

    def teardown(self) -> None:
        """Take the heartbeat away; a database that cannot be reached keeps it, and a sweep will find it."""
        if not self._is_graceful or self.last_written_at is None:
            return
        try:
            with_workers(
                self._connection,
                lambda store: store.delete_heartbeat(self._worker_id, has_rust_workers=self._has_rust_workers),
            )
        except GraphileWorkerError as error:
            self._report_failure(error)

    def _write(self) -> None:
        ping, sent_at = self._handlers.needs_ping(), time.monotonic()
        written = with_workers(self._connection, lambda store: self._write_to(store, ping=ping))
        if ping:
            self._handlers.on_ping_sent(sent_at)
        if written.has_cancel_requests:
            self._handlers.on_cancel_request()
        if written.has_new_claim_rules:
            self._handlers.on_claim_rules()
        if written.breaking_revision is not None and not self._has_seen_migration:
            self._has_seen_migration = True
            self._events.emit(BreakingMigrationDetected(worker_id=self._worker_id, revision=written.breaking_revision))
            self._handlers.on_breaking_migration(written.breaking_revision)
        self._has_rust_workers = written.has_rust_workers
        self._report_lateness(written.inactive_for)
        if self._age_seconds() > self._too_late:
            self._late_at = time.monotonic()
        self.last_written_at = sent_at
        self._handlers.on_written(timedelta(seconds=time.monotonic() - sent_at))
        if self._failures:
            self._events.emit(HeartbeatRestored(worker_id=self._worker_id, attempts=self._failures))
            self._failures = 0

    def _write_to(self, store: WorkerStore, *, ping: bool) -> HeartbeatResult:
        """Write a heartbeat. Report once why it read nothing else, and again for another reason."""
        try:
            written = store.heartbeat(
                self._worker_id,
                alive_for=self._lived(),
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                metadata=self._metadata(),
                ping=ping,
            )
        except PermissionDeniedError as error:
            raise with_lacking_rights(error, store) from error.__cause__
        if written.unread is not None and str(written.unread) != self._unread:
            reason = with_lacking_rights(written.unread, store)
            unread = DatabaseError(f"heartbeats are written, but cannot read pauses and cancel requests: {reason}")
            self._events.emit(MaintenanceFailed(service=self.name, error=unread))
        self._unread = None if written.unread is None else str(written.unread)
        return written

    def _report_lateness(self, inactive_for: timedelta | None) -> None:
        if self.last_written_at is None:
            return
        if inactive_for is None:
            # The row was deleted: a sweep presumed this worker dead, and recovered its jobs.
            self._events.emit(
                HeartbeatLate(
                    worker_id=self._worker_id, heartbeat_age=timedelta(seconds=self._age_seconds()), presumed_dead=True
                )
            )
        elif inactive_for > self._tolerated:
            self._events.emit(HeartbeatLate(worker_id=self._worker_id, heartbeat_age=inactive_for, presumed_dead=False))

    def _report_failure(self, error: GraphileWorkerError) -> None:
        if not self._failures:
            self._events.emit(HeartbeatFailed(worker_id=self._worker_id, error=error))
        self._failures += 1

    def _lived(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    def _age(self) -> timedelta:
        return timedelta(seconds=self._age_seconds())

    def _age_seconds(self) -> float:
        return 0.0 if self.last_written_at is None else time.monotonic() - self.last_written_at
