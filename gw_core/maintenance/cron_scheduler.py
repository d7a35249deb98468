"""Add the jobs of recurring tasks when their minute comes, once over all workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import structs

from gw_core.domain.cron import schedule_events as e
from gw_core.domain.cron.cron_item import CronItem, Window, by_minute, missed, reject_duplicates
from gw_core.domain.cron.schedule import MINUTE, ceil_minute, floor_minute
from gw_core.domain.errors import (
    AuthenticationError,
    DatabaseUnavailableError,
    GraphileWorkerError,
    PermissionDeniedError,
    SchemaMissingError,
    TransientDatabaseError,
)
from gw_core.domain.job.job import JobSpec
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Skip
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.road.cron_store import CronStore
from gw_core.runtime.service import Service

CATCH_UP_LIMIT: Final = timedelta(hours=24)
"""How far back minutes that passed while the scheduler ran are still scheduled, whether or not `fill` is set."""

MAX_REST: Final = timedelta(seconds=30)
"""A clock that was set is noticed, and a changing set of items read again, at least this often."""

MIN_DELAY: Final = timedelta(milliseconds=200)
MAX_DELAY: Final = timedelta(seconds=10)

_NEVER: Final = datetime.min.replace(tzinfo=UTC)

# The minute has begun when the timer fires, also on clocks that round.
_JUST_AFTER: Final = timedelta(milliseconds=1)

# These mean that nothing can be scheduled now. Any other error concerns one run, and must not delay the rest.
_OUTAGES: Final = (
    DatabaseUnavailableError,
    TransientDatabaseError,
    AuthenticationError,
    PermissionDeniedError,
    SchemaMissingError,
)

ItemSource = Iterable[CronItem] | Callable[[], Iterable[CronItem]]
"""The items, or a function that is asked for them again and again; it may answer differently each time."""


_Backfills = dict[str, e.CronBackfilled]
"""What was backfilled of each item so far."""


class _Entry(msgspec.Struct, frozen=True):
    """An item, and the minutes in which its schedule counts: from `since` on, before `until`."""

    item: CronItem
    since: datetime
    until: datetime = datetime.max.replace(tzinfo=UTC)


class Scheduler(Service):
    """Follows the clock and schedules what is due; all state belongs to the thread that calls `step`.

    A minute is done when its jobs, or the knowledge that another worker added them, are in the database. Until then it
    stays ahead of `_next`: an outage, a sleeping machine or a late timer delays a minute but does not lose it.
    The clock is this machine's, as in Graphile Worker (Node.js).
    `admit` is called for every job before it is added, and may change it, return `Skip`, or reject it.
    """

    def __init__(
        self,
        connections: ConnectionSource,
        items: ItemSource,
        *,
        events: Events | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        admit: Callable[[JobSpec], JobSpec | Skip] | None = None,
    ) -> None:
        super().__init__("gw-cron")
        self._connections = connections
        self._source = items if callable(items) else _unchanging(reject_duplicates(items))
        self._source_error = ""
        self._events = events or Events()
        self._clock = clock
        self._admit = admit
        self._entries: dict[str, _Entry] = {}
        self._former: list[_Entry] = []
        """What was in force in minutes that are not done yet: an outage must not lose them."""
        self._registered: set[str] = set()
        self._start: datetime | None = None
        self._announced = False
        self._started = False
        self._next = _NEVER
        self._skipped_from: datetime | None = None
        self._armed = False
        self._failures = 0
        self._has_complained = False

    # -- the service -----------------------------------------------------------------------------------------------

    def step(self) -> timedelta:
        """Schedule every minute that has come, and return how long the next one is away."""
        now = self._clock()
        start = self._begin(now)
        self._read_items(now)
        self._report_timer(now)
        try:
            self._announce(start)
            self._register(start if not self._started else now)
            self._announce_started(start)
            self._schedule_until(floor_minute(now))
        except GraphileWorkerError as error:
            return self._back_off(error)
        self._recover()
        return self._rest_until_next()

    def catch_up(self) -> int:
        """Register the items and backfill runs missed within `fill`; return how many jobs were added.

        What `gw run --once --cron` does. Raises the database's errors, and the source's.
        """
        now = self._clock()
        start = self._begin(now)
        self._adopt(reject_duplicates(self._source()), now)
        return self._register(start)

    def wake(self) -> None:
        """Cut the rest short and read a changing set of items again."""
        self._armed = False  # a thread that is woken before the minute was not misled by the clock
        super().wake()

    # -- the items -------------------------------------------------------------------------------------------------

    def _begin(self, now: datetime) -> datetime:
        """Return when the first round began; minutes from then on belong to the clock, those before to `fill`."""
        if self._start is None:
            self._start, self._next = now, ceil_minute(now)
        return self._start

    def _read_items(self, now: datetime) -> None:
        try:
            self._adopt(reject_duplicates(self._source()), now)
            self._source_error = ""
        except Exception as error:  # noqa: BLE001 - user code; the items in force stay in force
            problem = repr(error)
            if problem != self._source_error:
                self._events.emit(e.CronItemsRejected(error=error))
            self._source_error = problem

    def _adopt(self, items: Iterable[CronItem], now: datetime) -> None:
        """Make these the items in force; one that is new, or has a new schedule, counts from this minute on."""
        former, minute = self._entries, floor_minute(now)
        self._entries = {}
        for item in items:
            before = former.get(item.identifier)
            is_same = before is not None and before.item.schedule == item.schedule
            self._entries[item.identifier] = _Entry(item, before.since if before and is_same else minute)
            if is_same:
                del former[item.identifier]
        if self._next < minute:
            self._former += [structs.replace(each, until=minute) for each in former.values()]
        self._registered &= self._entries.keys()

    def _announce(self, start: datetime) -> None:
        if not self._announced:
            self._announced = True
            items = tuple(entry.item for entry in self._entries.values())
            self._events.emit(e.CronStarting(start=start, items=items))

    def _announce_started(self, start: datetime) -> None:
        if not self._started:
            self._started = True
            self._events.emit(e.CronStarted(start=start))

    # -- scheduling ------------------------------------------------------------------------------------------------

    def _register(self, start: datetime) -> int:
        """Register new items, and backfill the missed runs of those that were known before; count the jobs."""
        unknown = [entry for key, entry in self._entries.items() if key not in self._registered]
        if not unknown:
            return 0
        with self._store() as store:
            known = store.register([entry.item.identifier for entry in unknown], known_since=start)
        windows = [
            missed(entry.item, known[entry.item.identifier], start=start, before=max(self._next, entry.since))
            for entry in unknown
            if entry.item.fill and entry.item.identifier in known
        ]
        added = self._make_up(windows)
        self._registered.update(entry.item.identifier for entry in unknown)
        return added

    def _make_up(self, windows: Iterable[Window]) -> int:
        added = 0
        with self._reporting_backfills() as backfills:
            for timestamp, items in by_minute(windows):
                if self.is_stopping:
                    break
                self._events.emit(e.CronBackfill(timestamp=timestamp, items=items))
                jobs = self._schedule_and_report(timestamp, items, backfills)
                added += sum(job_id is not None for job_id in jobs.values())
        return added

    def _schedule_until(self, this_minute: datetime) -> None:
        if self._next > this_minute:
            return
        oldest = this_minute - CATCH_UP_LIMIT
        if self._next < oldest and self._skipped_from is None:
            self._skipped_from = self._next
        with self._reporting_backfills() as backfills:
            for timestamp, items in by_minute(self._pending(this_minute)):
                if self.is_stopping:
                    return
                # What came due during an outage was not scheduled on time, even if its minute has not quite passed.
                backfilled = timestamp < this_minute or self._has_complained
                self._events.emit(e.CronSchedule(timestamp=timestamp, items=items, backfilled=backfilled))
                self._schedule_and_report(timestamp, items, backfills if backfilled else None)
                self._next = timestamp + MINUTE
        self._next = this_minute + MINUTE
        self._former.clear()
        # Reported only now: during an outage each try would skip some more.
        if self._skipped_from is not None:
            self._events.emit(e.CronRunsSkipped(first=self._skipped_from, last=oldest - MINUTE))
            self._skipped_from = None

    def _pending(self, this_minute: datetime) -> list[Window]:
        """Return for each entry the minutes from `_next` to this one, without those that lie too far back."""
        return [
            Window(
                entry.item,
                max(self._next, entry.since, this_minute - max(CATCH_UP_LIMIT, entry.item.fill)),
                min(entry.until, this_minute + MINUTE),
            )
            for entry in (*self._former, *self._entries.values())
        ]

    def _schedule_and_report(
        self, timestamp: datetime, items: Sequence[CronItem], backfills: _Backfills | None
    ) -> Mapping[str, int | None]:
        """Add the jobs of a minute; `backfills` collects them, and is None for a minute that is on time."""
        backfilled = backfills is not None
        jobs = self._schedule(timestamp, items, backfilled=backfilled)
        self._events.emit(e.CronScheduled(timestamp=timestamp, items=items, jobs=jobs, backfilled=backfilled))
        if backfills is not None:
            for identifier in (each for each, job_id in jobs.items() if job_id is not None):
                before = backfills.get(identifier)
                runs, first = (0, timestamp) if before is None else (before.runs, before.first)
                backfills[identifier] = e.CronBackfilled(
                    identifier=identifier, runs=runs + 1, first=first, last=timestamp
                )
        return jobs

    @contextmanager
    def _reporting_backfills(self) -> Iterator[_Backfills]:
        """Report each item with backfilled runs once, also when an outage ends the block early."""
        backfills: _Backfills = {}
        try:
            yield backfills
        finally:
            for each in backfills.values():
                self._events.emit(each)

    def _schedule(
        self, timestamp: datetime, items: Iterable[CronItem], *, backfilled: bool
    ) -> Mapping[str, int | None]:
        runs = {item: self._spec(item, timestamp, backfilled=backfilled) for item in items}
        with self._store() as store:
            try:
                return store.schedule(timestamp, {item.identifier: spec for item, spec in runs.items()})
            except _OUTAGES:
                raise
            except GraphileWorkerError:
                return self._schedule_singly(store, timestamp, runs)

    def _schedule_singly(
        self, store: CronStore, timestamp: datetime, runs: Mapping[CronItem, JobSpec | None]
    ) -> Mapping[str, int | None]:
        """One run was rejected, and the others of its minute with it: find it, and add the rest."""
        jobs: dict[str, int | None] = {}
        for item, spec in runs.items():
            try:
                jobs.update(store.schedule(timestamp, {item.identifier: spec}))
            except _OUTAGES:
                raise
            except GraphileWorkerError as refusal:
                self._events.emit(e.CronItemFailed(timestamp=timestamp, item=item, error=refusal))
        return jobs

    def _spec(self, item: CronItem, timestamp: datetime, *, backfilled: bool) -> JobSpec | None:
        spec = item.job_spec(timestamp, backfilled=backfilled)
        if self._admit is None:
            return spec
        try:
            admitted = self._admit(spec)
            return None if isinstance(admitted, Skip) else admitted
        except Exception as error:  # noqa: BLE001 - user code; its error counts for this run only
            self._events.emit(e.CronItemFailed(timestamp=timestamp, item=item, error=error))
            return None

    @contextmanager
    def _store(self) -> Iterator[CronStore]:
        with self._connections.connection() as connection:
            yield CronStore(connection, self._connections.database.schema)

    # -- the clock -------------------------------------------------------------------------------------------------

    def _report_timer(self, now: datetime) -> None:
        if floor_minute(now) > self._next and not self._failures:
            self._events.emit(e.CronOverdueTimer(current=now, expected=self._next))
        elif self._armed and now < self._next:
            self._events.emit(e.CronPrematureTimer(current=now, expected=self._next))
        self._armed = False

    def _rest_until_next(self) -> timedelta:
        left = self._next + _JUST_AFTER - self._clock()
        self._armed = timedelta() < left <= MAX_REST
        return max(timedelta(), min(left, MAX_REST))

    # -- errors ----------------------------------------------------------------------------------------------------

    def _back_off(self, error: Exception) -> timedelta:
        self._failures += 1
        grown = MIN_DELAY * 1.5 ** min(self._failures - 1, 20)
        delay = min(grown, MAX_DELAY) * random.uniform(0.5, 1.5)
        # Two workers whose crontabs differ in order may deadlock; one try later all is well, and not worth a warning.
        if not self._has_complained and not (self._failures == 1 and isinstance(error, TransientDatabaseError)):
            self._has_complained = True
            self._events.emit(e.CronFailed(error=error, delay=delay))
        return delay

    def _recover(self) -> None:
        if self._has_complained:
            self._events.emit(e.CronRestored(attempts=self._failures))
        self._failures, self._has_complained = 0, False


def _unchanging(items: tuple[CronItem, ...]) -> Callable[[], Iterable[CronItem]]:
    return lambda: items
