"""Renew the locks of long jobs, and release locks that are four hours old."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta

from gw_core.domain.job.claim import Locked, QueueLock
from gw_core.domain.job.job import Job
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import LocksReset
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.permissions import with_lacking_rights
from gw_core.runtime.service import MaintenanceService

SOON = timedelta(minutes=1)
"""The first sweep for expired locks comes at random within this time, so that a fleet does not sweep together."""


class ExpiredLocks(MaintenanceService):
    """Releases locks older than four hours, every eight to ten minutes, as Graphile Worker (Node.js) does."""

    def __init__(
        self, *, worker_id: str, connection: SharedConnection, events: Events, between: tuple[timedelta, timedelta]
    ) -> None:
        super().__init__("gw-stale-locks", events)
        self._worker_id = worker_id
        self._connection = connection
        self._between = between
        self._is_first = True

    def step(self) -> timedelta:
        """Release expired locks; rest a random time between the two intervals."""
        if self._is_first:
            self._is_first = False
            return min(SOON, self._between[1]) * random.random()
        with self._reporting():
            with self._connection.connection() as connection:
                jobs, queues = JobStore(connection, self._connection.database.schema).reset_stale_locks()
            self._events.emit(LocksReset(worker_id=self._worker_id, jobs=jobs, queues=queues))
        soonest, latest = self._between
        return soonest + (latest - soonest) * random.random()


class LockRenewal(MaintenanceService):
    """Renews the locks of the jobs a worker has claimed, so that one that runs for hours is not taken for abandoned.

    That includes jobs whose outcome waits to be written: they are ours until it is.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        connection: SharedConnection,
        events: Events,
        locked: Callable[[], Locked],
        every: timedelta,
    ) -> None:
        super().__init__("gw-renew-locks", events)
        self._worker_id = worker_id
        self._connection = connection
        self._locked = locked
        self._every = every
        self._seen: list[Job] = []
        self._has_renewed = False

    def step(self) -> timedelta:
        """Renew the locks of jobs that were locked an interval ago already: all others are fresh."""
        locked = self._locked()
        now = {id(job) for job in locked.jobs}
        old = [job for job in self._seen if id(job) in now]
        self._seen = list(locked.jobs)
        if old or self._has_renewed:
            self._renew(old, locked.queues)
        return self._every

    def _renew(self, jobs: Sequence[Job], queues: Sequence[QueueLock]) -> None:
        with self._reporting(), self._connection.connection() as connection:
            store = JobStore(connection, self._connection.database.schema)
            _, unnoted = store.renew_locks(jobs, worker_id=self._worker_id, queues=queues)
            self._has_renewed = bool(jobs)  # the first renewal without jobs deletes the recorded start times
            if unnoted is not None:
                raise with_lacking_rights(unnoted, store)
