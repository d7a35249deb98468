"""Do what follows the end of jobs that others ended: workers in other languages, SQL, a worker that died.

Jobs that waited for them go on, and their steps are deleted. Keys of unique jobs whose time is over are deleted too.
Jobs fail that nothing has started by their `expires_at`. Rows that row security hides are reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.job.expiry import expired
from gw_core.domain.job.group import is_member
from gw_core.domain.job.history import Keep
from gw_core.domain.job.job import Job
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobCompleted, JobErrored, JobFailed, JobsSettled
from gw_core.domain.rules.roles import RoleKind
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.connection.row_security import uses_of_kind
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import MaintenanceService

NAME: Final = "gw-follow-ups"
INTERVAL: Final = timedelta(minutes=1)
MIN_INTERVAL: Final = timedelta(seconds=5)


class FollowUpCheck(MaintenanceService):
    """Thread `gw-follow-ups`. Each waiting job is checked about once a minute, by one of all workers."""

    def __init__(
        self, *, worker_id: str, connection: SharedConnection, events: Events, keeps: Callable[[], Mapping[str, Keep]]
    ) -> None:
        super().__init__(NAME, events)
        self._worker_id = worker_id
        self._connection = connection
        self._keeps = keeps

    def step(self) -> timedelta:
        """Check all jobs; rest, more or less, so that a fleet spreads out, or until the next job may expire."""
        rest = INTERVAL
        ended: list[Job] = []
        with self._reporting(), self._connection.connection() as connection:
            store = JobStore(connection, self._connection.database.schema)
            # To an idle worker, a queue whose rows are hidden looks empty.
            store.require_visible_rows(uses_of_kind(RoleKind.WORKER))
            store.end_members(None, self._keeps())
            store.end_steps(None)
            store.expire_unique()
            ended, rest = self._expire_jobs(store)
        self._report_expired(ended)
        return rest * random.uniform(0.5, 1.5)

    def _report_expired(self, jobs: Sequence[Job]) -> None:
        """Emit the events of jobs that failed because they did not start in time."""
        worker_id, failures = self._worker_id, [expired(job) for job in jobs]
        for each in failures:
            named: Any = {"worker_id": worker_id, "thread": NAME, "job": each.job, "error": each.error}
            self._events.emit(JobErrored(**named, seconds=0.0))
            self._events.emit(JobFailed(**named))
        if failures:
            self._events.emit(JobsSettled(worker_id=worker_id, outcomes=failures, lost=()))
        for each in failures:
            self._events.emit(JobCompleted(worker_id=worker_id, job=each.job, error=each.error))

    def _expire_jobs(self, store: JobStore) -> tuple[list[Job], timedelta]:
        """Fail the jobs that did not start in time, and return them and how long to rest; most queues have none."""
        ended: list[Job] = []
        seconds = store.next_expiry()
        if seconds is not None and seconds <= 0:
            while store.forget_expiries() and not self.is_stopping:
                pass
            while (jobs := store.expire_jobs(self._keeps())) and not self.is_stopping:
                if members := [job.id for job in jobs if is_member(job)]:
                    store.end_members(members, self._keeps())
                ended += jobs
            seconds = store.next_expiry()
        return ended, INTERVAL if seconds is None else max(MIN_INTERVAL, min(INTERVAL, timedelta(seconds=seconds)))
