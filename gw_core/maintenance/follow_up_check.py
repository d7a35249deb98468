"""Do what follows the end of jobs that others ended: workers in other languages, SQL, a worker that died.

Jobs that waited for them go on, and their steps are deleted. Keys of unique jobs whose time is over are deleted too.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from gw_core.domain.rules.event_bus import Events
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import MaintenanceService

INTERVAL: Final = timedelta(minutes=1)


class FollowUpCheck(MaintenanceService):
    """Thread `gw-follow-ups`. Each waiting job is checked about once a minute, by one of all workers."""

    def __init__(self, *, connection: SharedConnection, events: Events) -> None:
        super().__init__("gw-follow-ups", events)
        self._connection = connection

    def step(self) -> timedelta:
        """Check all jobs; rest, more or less, so that a fleet spreads out."""
        with self._reporting(), self._connection.connection() as connection:
            store = JobStore(connection, self._connection.database.schema)
            store.end_members(None)
            store.end_steps(None)
            store.expire_unique()
        return INTERVAL * random.uniform(0.5, 1.5)
