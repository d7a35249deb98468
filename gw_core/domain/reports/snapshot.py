"""One snapshot of a queue: everything a console draws at each refresh, and the throughput between two."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from gw_core.domain.cron.cron_item import KnownCronItem
from gw_core.domain.reports.query_results import Count, Quality
from gw_core.domain.rules.pause import PAUSE_LOCK
from gw_core.domain.rules.sweep_rules import WorkerInfo, known_by

_USUAL_WINDOW: Final = timedelta(seconds=3)
"""Busy sessions of PostgreSQL report statistics once a second, so a shorter window would flicker."""


# -- where -----------------------------------------------------------------------------------------------------------


class ServerInfo(msgspec.Struct, frozen=True):
    """Which server answered, and as what; `host` is None for a local socket."""

    version: str
    database: str
    user: str
    host: str | None
    port: int | None
    started_at: datetime
    in_recovery: bool
    """It follows another server and takes no writes."""
    read_only: bool
    """This session may not write."""
    may_change_jobs: bool = True
    """The role has the privileges to change and delete jobs."""


class SchemaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed in the schema."""

    name: str
    revision: int | None
    """The newest revision of the shared line; None when our role may not read it."""
    rows_hidden: bool
    """Row level security hides the tables' rows from this role."""
    has_heartbeats: bool


# -- what ------------------------------------------------------------------------------------------------------------


class TableCounters(msgspec.Struct, frozen=True):
    """How many rows of jobs were ever inserted, updated and deleted, as the server's statistics know it.

    They lag by a second, by ten where a session became idle, and restart after a crash or a reset.
    """

    inserted: int
    updated: int
    deleted: int
    live_rows: int
    dead_rows: int
    last_vacuum_at: datetime | None = None


class PrioritySummary(msgspec.Struct, frozen=True):
    """The jobs of one priority: how many are ready up to a bound, which came due first, and when the next will be."""

    priority: int
    ready: Count
    oldest_id: int | None
    oldest_task: str | None
    oldest_due_at: datetime | None
    next_due_at: datetime | None


class LockedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A named queue that a worker holds, or that is paused."""

    name: str
    locked_by: str | None
    locked_at: datetime

    @property
    def is_paused(self) -> bool:
        """True if a pause has locked it, and not a worker."""
        return (self.locked_by or "").startswith(PAUSE_LOCK)


class QueueSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The queue at `at` of the database's clock.

    A number that could not be had cheaply is None; a part that failed is named with its reason in `errors`: `counters`,
    `priorities`, `queues`, `queue starts`, `workers`, `rust workers`, and of the background `revision`, `sizes`,
    `locks`, `failed`, `crontabs` or `cron pauses`.
    """

    at: datetime
    took: timedelta
    """How long the answer took, the way to the database included."""
    server_time: timedelta | None = None
    """How long the server worked at it, by its own measurement; None where it could not measure."""
    server: ServerInfo
    schema: SchemaInfo
    counters: TableCounters | None = None
    total: Count | None = None
    """All jobs; an estimate."""
    unclaimed: Count | None = None
    """Jobs that are ready, scheduled or between attempts; an estimate."""
    running: Count | None = None
    locks_age: timedelta | None = None
    """How long ago it was counted what workers hold: `running`, and the jobs of `workers`."""
    failed: Count | None = None
    table_bytes: int | None = None
    """The table of jobs with its indexes."""
    priorities: Sequence[PrioritySummary] = ()
    has_all_priorities: bool = True
    """Whether no further priority has waiting jobs."""
    workers: Sequence[WorkerInfo] = ()
    """Latest heartbeat first, then holders of locks without a heartbeat."""
    workers_are_all: bool = True
    """Whether all heartbeats and the locks were read, so that no worker with either is missing."""
    locked_queues: Sequence[LockedQueue] = ()
    locked_queues_are_all: bool = True
    crontabs: Sequence[KnownCronItem] = ()
    blocked: int = 0
    """Sessions of this database that wait for a lock, as far as our role may see them."""
    errors: Sequence[tuple[str, str]] = msgspec.field(default=())
    denied: str | None = None
    """The reason, if a part failed because the role lacks a right or row security hides its rows."""

    def known_by(self, task: str) -> tuple[str, ...] | None:
        """Return the ids of the live workers that report a task; None if it is unknown whether one knows it.

        It is unknown without a live worker. If no worker reports the task, it is also unknown when one of them was not
        read or does not report its tasks.
        """
        known = known_by(task, self.live_workers)
        return known if known or self.workers_are_all else None

    @property
    def live_workers(self) -> Sequence[WorkerInfo]:
        """The workers that are not presumed dead."""
        return [each for each in self.workers if not each.is_stale]

    @property
    def ready(self) -> Count:
        """How many jobs are ready, up to the scan limits."""
        priorities = [head.ready for head in self.priorities]
        is_exact = self.has_all_priorities and all(each.quality is Quality.EXACT for each in priorities)
        return Count(sum(each.value for each in priorities), Quality.EXACT if is_exact else Quality.AT_LEAST)

    @property
    def knows_waiting(self) -> bool:
        """True if the waiting jobs were read, and no rows are hidden: none is known then from none being there."""
        return not self.schema.rows_hidden and "priorities" not in dict(self.errors)

    @property
    def oldest(self) -> PrioritySummary | None:
        """The head whose first job has been due for longest; None when nothing is ready."""
        due = [head for head in self.priorities if head.oldest_due_at is not None]
        return min(due, key=lambda head: head.oldest_due_at or self.at, default=None)

    @property
    def backlog_age(self) -> timedelta | None:
        """How long the oldest ready job has been due; None when nothing is ready."""
        oldest = self.oldest
        return (
            None if oldest is None or oldest.oldest_due_at is None else max(timedelta(), self.at - oldest.oldest_due_at)
        )

    @property
    def next_due_at(self) -> datetime | None:
        """When the next job will become ready."""
        return min((head.next_due_at for head in self.priorities if head.next_due_at is not None), default=None)


# -- how fast --------------------------------------------------------------------------------------------------------


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs per second were added, done and otherwise changed, over a period that ended at `at`.

    `done` counts every row that went: completed and removed ones. `changed` counts claims, failures and whatever else
    writes to a job that stays; a job that runs through smoothly counts once in each.
    """

    at: datetime
    period: timedelta
    added: float
    done: float
    changed: float


class ThroughputMeter:
    """Turns the counters of snapshots into rates. Counters that were reset start a new window and cause no spike."""

    def __init__(self, window: timedelta = _USUAL_WINDOW) -> None:
        self._window = window
        self._seen: deque[tuple[QueueSnapshot, TableCounters]] = deque()

    def read(self, snapshot: QueueSnapshot) -> Throughput | None:
        """Return the rates since about one window ago; None for the first snapshot and while nothing is comparable."""
        if snapshot.counters is None:
            return None
        if self._seen and not _follows(snapshot, snapshot.counters, *self._seen[-1]):
            self._seen.clear()
        self._seen.append((snapshot, snapshot.counters))
        while len(self._seen) > 2 and snapshot.at - self._seen[1][0].at >= self._window:
            self._seen.popleft()
        return None if len(self._seen) == 1 else _flow(*self._seen[0], *self._seen[-1])


def _follows(later: QueueSnapshot, now: TableCounters, earlier: QueueSnapshot, before: TableCounters) -> bool:
    """Return whether two readings are of the same counters, and in this order."""
    return (
        later.at > earlier.at
        and later.server.started_at == earlier.server.started_at
        and later.schema.name == earlier.schema.name
        and now.inserted >= before.inserted
        and now.updated >= before.updated
        and now.deleted >= before.deleted
    )


def _flow(earlier: QueueSnapshot, before: TableCounters, later: QueueSnapshot, now: TableCounters) -> Throughput:
    period = later.at - earlier.at
    seconds = period.total_seconds()
    return Throughput(
        at=later.at,
        period=period,
        added=(now.inserted - before.inserted) / seconds,
        done=(now.deleted - before.deleted) / seconds,
        changed=(now.updated - before.updated) / seconds,
    )
