"""Write what this worker ran in each minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.outcome import Outcome, Returned
from gw_core.domain.reports.counters import OutcomeCounters
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobsSettled, MaintenanceFailed
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.road.worker_store import WorkerStore
from gw_core.runtime.service import Service

FIRST_REST: Final = timedelta(seconds=2)
"""The time before the server's clock is read, so that a short run does not read it."""

RETRY_INTERVAL: Final = timedelta(seconds=20)
REPORTED_FAILURE: Final = 2
"""Which failure in a row is reported: a short outage is reported by those who claim and settle."""

MINUTE: Final = 60
MAX_UNSENT: Final = 60
"""Minutes that wait while the database is away; older ones are dropped."""

MEASURED_WAITS: Final = 4
"""This many waits of one batch are measured: a mean needs no more."""


class StatisticsWriter(Service):
    """Thread `gw-statistics`. Counts what was settled, and writes one row for each task when a minute has ended.

    Minutes are those of the server's clock. A minute in which nothing ended causes no statement.
    `_lock` guards `_counters`, which the thread that settles fills; the rest belongs to the thread of the service.
    """

    stops_after_jobs = True

    def __init__(self, *, worker_id: str, connection: SharedConnection, events: Events, keep: timedelta) -> None:
        super().__init__("gw-statistics")
        self._worker_id = worker_id
        self._connection = connection
        self._events = events
        self._keep = keep
        self._lock = threading.Lock()
        self._counters = OutcomeCounters()
        self._unsent: deque[list[dict[str, Any]]] = deque(maxlen=MAX_UNSENT)
        self._is_first = True
        self._clock_offset: float | None = None
        """What to add to `time.monotonic` for the server's time."""
        self._minute: int | None = None
        """The minute that is being counted, in seconds since 1970."""
        self._failures = 0
        """How many tries failed since the last success."""
        self._stop_counting = events.on(JobsSettled, self._count)

    def _count(self, event: JobsSettled) -> None:
        # Several workers of a process may share their events.
        outcomes = event.outcomes if event.worker_id == self._worker_id else ()
        if not outcomes or type(outcomes[0]) is Returned:
            return
        with self._lock:
            self._counters.settled(outcomes, ())
            measured = outcomes[:: len(outcomes) // MEASURED_WAITS + 1]
            self._counters.started(_wait(each) for each in measured if each.job._locked_at is not None)

    def step(self) -> timedelta:
        """Write the minute that has ended; rest until the end of the next."""
        if self._is_first:
            self._is_first = False
            return FIRST_REST
        if self._seconds_left() <= 0:
            self._close_minute()
        try:
            if self._unsent or self._clock_offset is None:
                self._send()
            self._failures = 0
        except GraphileWorkerError as error:
            self._failures += 1
            if self._failures == REPORTED_FAILURE:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            return RETRY_INTERVAL
        return timedelta(seconds=max(0.0, self._seconds_left()))

    def teardown(self) -> None:
        """Write what was counted since the last minute; without the database it is lost."""
        self._stop_counting()
        self._close_minute()
        if self._unsent:
            try:
                self._send()
            except GraphileWorkerError:
                return

    def _seconds_left(self) -> float:
        """Return how long the minute that is being counted still lasts."""
        if self._minute is None or self._clock_offset is None:
            return float(MINUTE)
        return self._minute + MINUTE - time.monotonic() - self._clock_offset

    def _close_minute(self) -> None:
        """Take what was counted as the rows of the current minute, and begin the next."""
        with self._lock:
            counted, self._counters = self._counters, OutcomeCounters()
        if rows := list(_rows(counted, self._minute)):
            self._unsent.append(rows)
        if self._minute is not None and self._clock_offset is not None:
            # Never the same minute twice: a second row of a minute would be ignored.
            self._minute = max(self._minute + MINUTE, _minute_of(time.monotonic() + self._clock_offset))

    def _send(self) -> None:
        rows = [row for minute in self._unsent for row in minute]
        with self._connection.connection() as connection:
            store = WorkerStore(connection, self._connection.database.schema)
            now = store.record_statistics(self._worker_id, rows, keep=self._keep)
        self._unsent.clear()
        self._clock_offset = now - time.monotonic()
        if self._minute is None:
            self._minute = _minute_of(now)


def _wait(outcome: Outcome) -> tuple[str, float]:
    """Return the task of a job, and the seconds from when it was due until it was claimed, by the server's clock."""
    job = outcome.job
    return job.task, (job._locked_at or 0.0) - max(job._run_at, job._created_at)


def _minute_of(epoch: float) -> int:
    return int(epoch // MINUTE) * MINUTE


def _rows(counted: OutcomeCounters, minute: int | None) -> Iterator[dict[str, Any]]:
    for task, each in counted.tasks.items():
        if each.completed or each.failed:
            yield {
                "minute": minute,
                "task": task,
                "completed": each.completed,
                "failed": each.failed,
                "permanently_failed": each.permanently_failed,
                "run_seconds": each.duration.total,
                "durations": each.duration.counts,
                "waited": sum(each.start_delay.counts),
                "wait_seconds": each.start_delay.total,
            }
