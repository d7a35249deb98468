"""How a worker goes through an outage of the database: how long it waits, and what it reports."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import GraphileWorkerError, TransientDatabaseError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import PoolConnectionLost, PoolConnectionRestored
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.permissions import with_lacking_rights

MAX_RECONNECT_DELAY: Final = 1.5
"""Seconds between two tries to reach the database: a restored one is noticed within this time."""


def reconnect_delay(tries: int) -> timedelta:
    """Return how long to wait before the next try to reach the database, with jitter so that a fleet spreads out."""
    seconds = min(MAX_RECONNECT_DELAY, 0.05 * 2 ** min(tries, 10))
    return timedelta(seconds=seconds * random.uniform(0.5, 1.0))


class Outage:
    """Counts how often one `operation` has failed in a row. One thread uses it; others read `tries`."""

    def __init__(self, operation: str, *, worker_id: str, events: Events) -> None:
        self.tries = 0
        self._operation = operation
        self._worker_id = worker_id
        self._events = events
        self._reported: set[type] = set()

    def fail(self, error: GraphileWorkerError, store: JobStore | None) -> timedelta:
        """Report the first error, and others of another kind that last; return how long to wait."""
        delay = reconnect_delay(self.tries)
        if not self._reported or not (type(error) in self._reported or isinstance(error, TransientDatabaseError)):
            self._reported.add(type(error))
            self._events.emit(
                PoolConnectionLost(
                    worker_id=self._worker_id,
                    operation=self._operation,
                    error=with_lacking_rights(error, store),
                    delay=delay,
                    attempts=self.tries,
                )
            )
        self.tries += 1
        return delay

    def end(self) -> None:
        """Report the first success after failures."""
        if self.tries:
            tries, self.tries = self.tries, 0
            self._reported.clear()
            self._events.emit(
                PoolConnectionRestored(worker_id=self._worker_id, operation=self._operation, attempts=tries)
            )
