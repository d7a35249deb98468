"""Make the partitions of history for the next days, and drop those whose rows are expired."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import GraphileWorkerError, LockTimeoutError
from gw_core.domain.job.history import Keep
from gw_core.domain.rules.event_bus import Events
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.schema.history_partitions import MAX_DROPS, HistoryPartitions
from gw_core.runtime.service import MaintenanceService

INTERVAL: Final = timedelta(minutes=30)
RETRY_INTERVAL: Final = timedelta(seconds=20)
"""The delay before the next try when another session uses the table, for example a long query."""


class HistoryExpiry(MaintenanceService):
    """Thread `gw-history`. A worker that keeps nothing only checks for expired rows, every half hour."""

    def __init__(
        self, *, connection: SharedConnection, events: Events, keeps: Callable[[], Mapping[str, Keep]]
    ) -> None:
        super().__init__("gw-history", events)
        self._connection = connection
        self._keeps = keeps
        self._is_first = True

    def prepare(self) -> None:
        """Make partitions before the first claim, so that few rows have to move; `step` repeats what fails."""
        if periods := self._periods():
            with suppress(GraphileWorkerError), self._connection.connection() as connection:
                HistoryPartitions(connection, self._connection.database.schema).make(periods)

    def step(self) -> timedelta:
        """Make and drop partitions; rest half an hour, more or less, so that a fleet spreads out."""
        if self._is_first and not self._keeps():
            self._is_first = False
            return INTERVAL * random.random()
        rest = RETRY_INTERVAL * random.uniform(0.5, 1.5)
        with self._reporting(), suppress(LockTimeoutError):
            with self._connection.connection() as connection:
                partitions = HistoryPartitions(connection, self._connection.database.schema)
                try:
                    partitions.make(self._periods())
                finally:  # what cannot be made must not keep rows longer than was promised
                    emptied = partitions.expire()
            rest = timedelta(seconds=1) if len(emptied) == MAX_DROPS else INTERVAL * random.uniform(0.5, 1.5)
        return rest

    def _periods(self) -> set[timedelta]:
        return {each.period for each in self._keeps().values()}
