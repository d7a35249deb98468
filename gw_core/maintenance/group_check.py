"""Let groups go on, and delete steps, whose jobs were ended by others: workers in other languages, SQL, a crash."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from gw_core.domain.rules.event_bus import Events
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import MaintenanceService

INTERVAL: Final = timedelta(minutes=1)


class GroupCheck(MaintenanceService):
    """Thread `gw-groups`. Each group is checked about once a minute, by one of all workers."""

    def __init__(self, *, connection: SharedConnection, events: Events) -> None:
        super().__init__("gw-groups", events)
        self._connection = connection

    def step(self) -> timedelta:
        """Check the groups; rest, more or less, so that a fleet spreads out."""
        with self._reporting(), self._connection.connection() as connection:
            store = JobStore(connection, self._connection.database.schema)
            store.end_members(None)
            store.end_steps(None)
            store.expire_unique()
        return INTERVAL * random.uniform(0.5, 1.5)
