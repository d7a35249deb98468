"""The connection that claims: it also listens, and knows what a lost answer may have locked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.settings import PoolerMode
from gw_core.postgres.connection.database import RESPONSE_TIMEOUT, Database, QueueConnection
from gw_core.postgres.connection.error_mapping import needs_connection
from gw_core.postgres.connection.notifications import Subscription, worker_channels
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import JobStore
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.listener import NotificationHealth
from gw_core.worker.outage import Outage
from gw_core.worker.own_locks import OwnLocks
from gw_core.worker.wakeup import Wakeup


class ClaimConnection:
    """Belongs to the thread that claims, which rests in `wakeup`; other threads read `outage.tries`.

    Without `notifications` it does not listen; behind a pooler in transaction mode it cannot.
    `on_new_session` requests a heartbeat over a new connection: until it is written, the `lease` allows no claim.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        database: Database,
        own_locks: OwnLocks,
        notifications: NotificationHealth | None,
        wakeup: Wakeup,
        events: Events,
        lease: Lease,
        on_new_session: Callable[[], None],
    ) -> None:
        self.own_locks = own_locks
        """Knows whether a claim is under way, and what a lost one may have locked."""
        self.outage = Outage("claim jobs", worker_id=worker_id, events=events)
        self._worker_id = worker_id
        self._database = database
        self._notifications = notifications
        self._wakeup = wakeup
        self._lease = lease
        self._on_new_session = on_new_session
        self._store: JobStore | None = None
        self._listener: Subscription | None = None

    # -- connecting --------------------------------------------------------------------------------------------------

    def store(self) -> JobStore:
        """Return the jobs in the database, over a new connection if there is none."""
        if self._store is None:
            connection = self._database.connect("claim", CLAIM_PLAN, response_timeout=RESPONSE_TIMEOUT)
            if self._notifications is not None and connection.pooling is not PoolerMode.TRANSACTION:
                self._listen(connection, self._notifications)
            self._store = JobStore(connection, self._database.schema)
            if not self._lease.has_no_heartbeats:
                self._lease.begin_session(steady_time())
                self._on_new_session()
        return self._store

    @property
    def may_claim(self) -> bool:
        """Whether a heartbeat was written since the connection was opened, or none can be."""
        return self._lease.allows_claims

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        if self._listener is not None:
            self._wakeup.unwatch(self._listener)
            self._listener = None
            if self._notifications is not None:
                self._notifications.end()
        if self._store is not None:
            self._store.connection.close()
            self._store = None

    # -- listening ---------------------------------------------------------------------------------------------------

    def receive(self) -> None:
        """Handle the notifications that have arrived."""
        if self._listener is not None:
            self._listener.receive()

    def replace_if_unresponsive(self) -> None:
        """Close the connection when a ping is overdue, after reading what has already arrived."""
        if self.ping_overdue_in() > 0:
            return
        self.receive()
        if self._notifications is not None and self._notifications.is_unresponsive():
            self.close()

    def ping_overdue_in(self) -> float:
        """Return the seconds until a pending ping is overdue, zero or less when it is."""
        if self._listener is None or self._notifications is None:
            return float("inf")
        overdue_in = self._notifications.ping_overdue_in()
        return float("inf") if overdue_in is None else overdue_in

    def _listen(self, connection: QueueConnection, notifications: NotificationHealth) -> None:
        try:
            channels = worker_channels(self._worker_id)
            self._listener = Subscription(connection, notifications.on_notification, channels)
        except GraphileWorkerError:
            connection.close()
            raise
        self._wakeup.watch(self._listener)
        notifications.begin()

    # -- failures ----------------------------------------------------------------------------------------------------

    def fail(self, error: GraphileWorkerError) -> timedelta:
        """Report an error, close a broken connection, and return how long to wait."""
        delay = self.outage.fail(error, self._store)
        if needs_connection(error):
            self.close()
        return delay

    def check_own_locks_at_the_end(self) -> None:
        """Return what a lost claim locked, on a second connection if the first is lost too; then a sweep has to."""
        for _ in range(2):
            if not self.own_locks.is_in_doubt:
                return
            try:
                self.own_locks.check(self.store())
            except GraphileWorkerError:
                self.close()
