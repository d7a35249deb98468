"""Receive notifications about new jobs, migrations and cancel requests, and detect when none arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import DatabaseUnavailableError, GraphileWorkerError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import PoolListening, PoolListenLost, PoolListenRestored, PoolNotified
from gw_core.postgres.connection import notifications
from gw_core.postgres.connection.database import RESPONSE_TIMEOUT, Database, QueueConnection
from gw_core.postgres.connection.notifications import Notification, Subscription, announced_jobs, own_channel
from gw_core.runtime.service import Service
from gw_core.worker.outage import reconnect_delay
from gw_core.worker.settler import NO_DELAY
from gw_core.worker.wakeup import Wakeup

PING_TIMEOUT: Final = 5.0
"""Seconds until the ping of a heartbeat should have reached the listening thread."""

NOT_RECEIVING: Final = DatabaseUnavailableError(
    "the LISTEN connection is open, but receives no notifications; is there a pooler in transaction mode? "
    "The worker polls until one arrives"
)


class NotificationHealth:
    """Handles notifications, and detects when none arrive.

    After an interval without notifications, the next heartbeat sends a ping over another connection, to the channel
    that all pools listen to. A pool that does not receive it within seconds is unresponsive: its connection is open,
    but something between it and the server drops notifications. The server wakes all listeners for each one, so a
    hundred idle workers that each sent their own were woken three hundred times a second; one shared ping is enough.
    `needs_ping` and `expect_ping` are called by the heartbeat's thread, all else by the one that listens.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        events: Events,
        on_jobs: Callable[[int], None],
        on_migration: Callable[[], None],
        on_cancel_request: Callable[[], None],
        on_claim_rules: Callable[[], None],
    ) -> None:
        self.worker_id = worker_id
        self._events = events
        self._on_jobs = on_jobs
        self._on_migration = on_migration
        self._on_cancel_request = on_cancel_request
        self._on_claim_rules = on_claim_rules
        self._channel = own_channel(worker_id)
        self._sent_at = float("-inf")
        self._received_at = float("-inf")
        self._asked_at = float("-inf")
        self._since: float | None = None
        self._is_unresponsive = False
        self._is_lost = False
        self._has_listened = False

    def begin(self) -> None:
        """Record that the connection listens from now on."""
        self._since = time.monotonic()
        self._events.emit(PoolListening(worker_id=self.worker_id))
        self._on_claim_rules()  # they may have changed before
        if self._has_listened:
            self._on_migration()  # one may have been announced while the connection did not listen
        self._has_listened = True
        if not self._is_unresponsive:  # otherwise only a received ping proves it
            self.report_restored()

    def catch_up(self) -> None:
        """Check for everything that was added while the connection did not listen."""
        self._on_jobs(0)

    def end(self) -> None:
        """Record that the connection no longer listens."""
        self._since = None

    @property
    def is_listening(self) -> bool:
        """True while notifications should arrive: a connection listens, and no ping is missing."""
        return self._since is not None and not self._is_lost

    def needs_ping(self) -> bool:
        """Return whether nothing was received since the last call; called once before each heartbeat."""
        asked_at, self._asked_at = self._asked_at, time.monotonic()
        return self._received_at <= asked_at

    def expect_ping(self, sent_at: float) -> None:
        """Record that a ping was sent, no earlier than at this time of the monotonic clock; from any thread."""
        if not self._is_waiting:  # otherwise each heartbeat would postpone the timeout of the ping before it
            self._sent_at = sent_at

    def ping_overdue_in(self) -> float | None:
        """Return the seconds until a pending ping is overdue, negative when it is; None if none is pending."""
        return self._sent_at + PING_TIMEOUT - time.monotonic() if self._is_waiting else None

    @property
    def _is_waiting(self) -> bool:
        since = self._since
        return since is not None and self._sent_at >= since and self._received_at < self._sent_at

    def is_unresponsive(self) -> bool:
        """Return whether a ping is overdue; true only once until one is received again."""
        left = self.ping_overdue_in()
        if left is None or left > 0:
            return False
        self._is_unresponsive = True
        self.report_lost(NOT_RECEIVING)
        return True

    def report_lost(self, error: Exception) -> None:
        """Report why nothing is received, once until something is."""
        if not self._is_lost:
            self._is_lost = True
            self._events.emit(PoolListenLost(worker_id=self.worker_id, error=error))

    def report_restored(self) -> None:
        """Report that notifications arrive again, if they did not."""
        if self._is_lost:
            self._is_lost = False
            self._events.emit(PoolListenRestored(worker_id=self.worker_id))

    def on_notification(self, notification: Notification) -> None:
        """Handle one notification."""
        self._received_at = time.monotonic()
        match notification.channel:
            case notifications.JOBS:
                self._on_jobs_announced(announced_jobs(notification.payload))
            case notifications.MIGRATIONS:
                # Any role can send it, and it may be about another schema: verify it in the database.
                self._on_migration()
            case notifications.CLAIM_RULES:
                self._on_claim_rules()
            case self._channel if notification.payload == "cancel":
                self._on_cancel_request()
        self._is_unresponsive = False
        self.report_restored()

    def _on_jobs_announced(self, count: int) -> None:
        if count > 0:
            self._on_jobs(count)
            if self._events.wants(PoolNotified):
                self._events.emit(PoolNotified(worker_id=self.worker_id, count=count))


class ListenThread(Service):
    """Thread `gw-listen`: listens on a connection of its own, which goes around the pooler that all others use.

    Owns the connection and handles its errors: while it is lost, the claimer continues by polling.
    """

    def __init__(self, database: Database, notifications: NotificationHealth) -> None:
        super().__init__("gw-listen")
        self._database = database
        self._notifications = notifications
        self._connection: QueueConnection | None = None
        self._listener: Subscription | None = None
        self._tries = 0
        self._wakeup = Wakeup()

    def wake(self) -> None:
        """Cut the rest or the listening short; from any thread."""
        super().wake()
        self._wakeup.wake()

    def step(self) -> timedelta:
        """Listen for a while; rest only when the connection cannot be made."""
        self._wakeup.clear()
        try:
            self._listen()
        except GraphileWorkerError as error:
            return self._try_later(error)
        return NO_DELAY

    def teardown(self) -> None:
        """Hang up."""
        self._disconnect()
        self._wakeup.close()

    def _listen(self) -> None:
        listener = self._listener or self._begin()
        self._tries = 0
        if not self.is_stopping and self._wakeup.rest(self._notifications.ping_overdue_in()):
            listener.receive()
        if self._notifications.is_unresponsive():
            self._disconnect()

    def _begin(self) -> Subscription:
        self._connection = self._database.connect("listen", response_timeout=RESPONSE_TIMEOUT, listens=True)
        channels = notifications.worker_channels(self._notifications.worker_id)
        self._listener = Subscription(self._connection, self._notifications.on_notification, channels)
        self._wakeup.watch(self._listener)
        self._notifications.begin()
        self._notifications.catch_up()
        return self._listener

    def _try_later(self, error: GraphileWorkerError) -> timedelta:
        delay = reconnect_delay(self._tries)
        self._notifications.report_lost(error)
        self._tries += 1
        self._disconnect()
        return delay

    def _disconnect(self) -> None:
        self._notifications.end()
        if self._listener is not None:
            self._wakeup.unwatch(self._listener)
            self._listener = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
