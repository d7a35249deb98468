"""Delete jobs that failed permanently, once they were kept for the period of the setting `keep_failed`."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import FailedJobsDeleted
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.schema.cleanup import CleanupTarget, Deletion
from gw_core.runtime.service import MaintenanceService

MAX_INTERVAL: Final = timedelta(minutes=10)
MIN_INTERVAL: Final = timedelta(seconds=1)


class FailedJobExpiry(MaintenanceService):
    """Thread `gw-failed-jobs`. Each batch is a transaction of its own, and skips rows that others have locked."""

    def __init__(self, *, connection: SharedConnection, events: Events, keep: timedelta) -> None:
        super().__init__("gw-failed-jobs", events)
        self._connection = connection
        self._keep = keep

    def step(self) -> timedelta:
        """Delete them; rest, more or less, so that a fleet spreads out."""
        deleted = 0
        with self._reporting():
            deletion = Deletion(self._connection, self._connection.database.schema)
            for count in deletion.delete(CleanupTarget.FAILED_JOBS, older_than=self._keep):
                deleted += count
                if self.is_stopping:
                    break
        if deleted:
            self._events.emit(FailedJobsDeleted(jobs=deleted))
        return max(MIN_INTERVAL, min(MAX_INTERVAL, self._keep)) * random.uniform(0.5, 1.5)
