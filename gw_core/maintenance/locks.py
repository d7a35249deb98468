"""Keep the locks of long jobs fresh, and free those that nobody has renewed for four hours."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.events import Events, LocksReset, MaintenanceFailed
from gw_core.domain.job import Job
from gw_core.postgres.connections import OneConnection
from gw_core.postgres.store import JobStore
from gw_core.service import Service

SOON = timedelta(minutes=1)
"""The first sweep for stale locks comes at random within this span, so that a fleet does not sweep at once."""


class StaleLocks(Service):
    """Frees jobs and queues whose lock is older than four hours, every eight to ten minutes, as the ancestor does."""

    def __init__(
        self, *, pool: str, connection: OneConnection, events: Events, between: tuple[timedelta, timedelta]
    ) -> None:
        super().__init__("gw-stale-locks")
        self._pool = pool
        self._connection = connection
        self._events = events
        self._between = between
        self._is_first = True
        self._has_complained = False

    def turn(self) -> timedelta:
        """Free what is stale; rest at random between the two spans."""
        if self._is_first:
            self._is_first = False
            return min(SOON, self._between[1]) * random.random()
        try:
            with self._connection.connection() as connection:
                jobs, queues = JobStore(connection, self._connection.database.schema).reset_stale_locks()
            self._has_complained = False
            self._events.emit(LocksReset(pool=self._pool, jobs=jobs, queues=queues))
        except GraphileWorkerError as error:
            if not self._has_complained:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._has_complained = True
        soonest, latest = self._between
        return soonest + (latest - soonest) * random.random()


class LockRenewal(Service):
    """Renews the locks of the jobs a pool holds, so that one that runs for hours is not taken for abandoned."""

    def __init__(
        self,
        *,
        pool: str,
        connection: OneConnection,
        events: Events,
        held_jobs: Callable[[], Sequence[Job]],
        every: timedelta,
    ) -> None:
        super().__init__("gw-renew-locks")
        self._pool = pool
        self._connection = connection
        self._events = events
        self._held_jobs = held_jobs
        self._every = every
        self._seen: list[Job] = []
        self._has_complained = False

    def turn(self) -> timedelta:
        """Renew the locks of jobs that were held a round ago already: all others are fresh."""
        held = {id(job): job for job in self._held_jobs()}
        old = [job for job in self._seen if id(job) in held]
        self._seen = list(held.values())
        if old:
            self._renew(old)
        return self._every

    def _renew(self, jobs: Sequence[Job]) -> None:
        try:
            with self._connection.connection() as connection:
                JobStore(connection, self._connection.database.schema).renew_locks(
                    [job.id for job in jobs],
                    pool=self._pool,
                    queue_ids={job.queue_id for job in jobs if job.queue_id is not None},
                )
            self._has_complained = False
        except GraphileWorkerError as error:
            if not self._has_complained:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._has_complained = True
