"""Let groups go on whose last members were ended by others: workers in other languages, SQL, or a worker that died."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.events import Events, MaintenanceFailed
from gw_core.postgres.connections import SharedConnection
from gw_core.postgres.job_store import JobStore
from gw_core.service import Service

INTERVAL: Final = timedelta(minutes=1)


class GroupCheck(Service):
    """Thread `gw-groups`. Each group is checked about once a minute, by one of all workers."""

    def __init__(self, *, connection: SharedConnection, events: Events) -> None:
        super().__init__("gw-groups")
        self._connection = connection
        self._events = events
        self._has_complained = False

    def step(self) -> timedelta:
        """Check the groups; rest, more or less, so that a fleet spreads out."""
        try:
            with self._connection.connection() as connection:
                JobStore(connection, self._connection.database.schema).end_members(None)
            self._has_complained = False
        except GraphileWorkerError as error:
            if not self._has_complained:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._has_complained = True
        return INTERVAL * random.uniform(0.5, 1.5)
