"""Recurring tasks as rows: their state in the database beside their definition in the crontab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Final

from gw_core import CronItem
from gw_core.crontab import Schedule
from gw_core.front_ends import scheduled_until
from gw_core.operations import KnownCronItem, Pause

MAX_MISSED: Final = 1_000


class CronStatus(StrEnum):
    """How a recurring task goes, in one word."""

    ON_TIME = "on time"
    PAUSED = "paused"
    MISSED = "missed"
    """A run that was due has not been added."""
    NEW = "new"
    """It is in the crontab, but not in the database: no worker runs this crontab yet."""
    FOREIGN = "not in file"
    """The database knows it, and the crontab given has it not."""
    UNKNOWN = "known"
    """The database knows it, and no crontab was given to judge by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontabs:
    """Recurring tasks: what the database knows of them, and those of the crontab file, if one was given."""

    known: Sequence[KnownCronItem] = ()
    items: Sequence[CronItem] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A recurring task; what needs the crontab is None without its item."""

    identifier: str
    course: CronStatus
    item: CronItem | None = None
    known_since: datetime | None = None
    last_run: datetime | None = None
    next_run: datetime | None = None
    missed: int | None = None
    missed_is_bound: bool = False
    pause: Pause | None = None

    @property
    def task(self) -> str:
        """The task of its jobs; without a crontab the identifier, which is the default task."""
        return self.identifier if self.item is None else self.item.task


def recurring(known: Sequence[KnownCronItem], items: Sequence[CronItem] | None, now: datetime) -> tuple[Recurring, ...]:
    """Return every recurring task by its identifier, those that missed runs first."""
    rows = sorted(_rows(known, items, now), key=lambda row: row.identifier)
    return tuple(sorted(rows, key=lambda row: row.course is not CronStatus.MISSED))


def _rows(known: Sequence[KnownCronItem], items: Sequence[CronItem] | None, now: datetime) -> Iterator[Recurring]:
    by_identifier = {item.identifier: item for item in items or ()}
    for memory in known:
        item = by_identifier.pop(memory.identifier, None)
        if item is None:
            yield _without_item(memory, CronStatus.UNKNOWN if items is None else CronStatus.FOREIGN)
        else:
            yield _with_item(memory, item, now)
    minute = now.replace(second=0, microsecond=0)
    for item in by_identifier.values():
        yield Recurring(
            identifier=item.identifier, course=CronStatus.NEW, item=item, next_run=_next(item.schedule, minute)
        )


def _without_item(memory: KnownCronItem, course: CronStatus) -> Recurring:
    return Recurring(
        identifier=memory.identifier,
        course=CronStatus.PAUSED if memory.pause else course,
        known_since=memory.known_since,
        last_run=memory.last_execution,
        pause=memory.pause,
    )


def _with_item(memory: KnownCronItem, item: CronItem, now: datetime) -> Recurring:
    # The run of this minute may be on its way.
    minute = now.replace(second=0, microsecond=0)
    missed = _count(item.schedule, memory.missed_from, minute)
    return Recurring(
        identifier=memory.identifier,
        course=CronStatus.PAUSED if memory.pause else CronStatus.MISSED if missed else CronStatus.ON_TIME,
        item=item,
        known_since=memory.known_since,
        last_run=memory.last_execution,
        next_run=_next(item.schedule, scheduled_until(memory, minute)),
        missed=missed,
        missed_is_bound=missed == MAX_MISSED,
        pause=memory.pause,
    )


# A rare schedule is searched for years ahead, and the answer holds for the whole minute.
@lru_cache(maxsize=1_000)
def _next(schedule: Schedule, after: datetime) -> datetime | None:
    return schedule.next_after(after)


@lru_cache(maxsize=1_000)
def _count(schedule: Schedule, since: datetime, until: datetime) -> int:
    return sum(1 for _ in islice(schedule.between(since, until), MAX_MISSED))
