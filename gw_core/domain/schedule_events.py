"""What happens in the life of the scheduler of recurring tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from gw_core.domain.cron_item import CronItem
from gw_core.domain.events import Event


class CronStarting(Event, frozen=True):
    """The scheduler begins: it registers its items and makes up for missed runs; `start` is its clock's time."""

    name: ClassVar[str] = "cron:starting"
    start: datetime
    items: Sequence[CronItem]


class CronStarted(Event, frozen=True):
    """Registering and making up are done; from now on the scheduler follows the clock."""

    name: ClassVar[str] = "cron:started"
    start: datetime


class CronBackfill(Event, frozen=True):
    """The items' run of the minute `moment` was missed before the start and is about to be made up for."""

    name: ClassVar[str] = "cron:backfill"
    moment: datetime
    items: Sequence[CronItem]


class CronPrematureTimer(Event, frozen=True):
    """The timer fired, but the clock has not reached `expected`: it was set back; the scheduler goes on waiting."""

    name: ClassVar[str] = "cron:prematureTimer"
    current: datetime
    expected: datetime


class CronOverdueTimer(Event, frozen=True):
    """A minute or more has passed since `expected`: machine asleep, clock set forward, or database out of reach."""

    name: ClassVar[str] = "cron:overdueTimer"
    current: datetime
    expected: datetime


class CronSchedule(Event, frozen=True):
    """The items are due at `moment` and their jobs are about to be added."""

    name: ClassVar[str] = "cron:schedule"
    moment: datetime
    items: Sequence[CronItem]
    backfilled: bool


class CronScheduled(Event, frozen=True):
    """The minute is done; `jobs` tells which identifiers this process scheduled, with the job's id.

    An identifier is missing when another worker was first; its id is None when a plugin skipped the job.
    """

    name: ClassVar[str] = "cron:scheduled"
    moment: datetime
    items: Sequence[CronItem]
    jobs: Mapping[str, int | None]
    backfilled: bool


class CronRunsSkipped(Event, frozen=True):
    """The minutes from `first` to `last` lie too far back; only items whose `fill` reaches them are made up for."""

    name: ClassVar[str] = "cron:skipped"
    first: datetime
    last: datetime


class CronItemFailed(Event, frozen=True):
    """The run of one item at `moment` was refused, by a plugin or by the database; other items are not affected."""

    name: ClassVar[str] = "cron:item:error"
    moment: datetime
    item: CronItem
    error: Exception


class CronItemsRejected(Event, frozen=True):
    """The source of the items failed or gave items that cannot be used; the former items stay in force."""

    name: ClassVar[str] = "cron:items:error"
    error: Exception


class CronFailed(Event, frozen=True):
    """The scheduler cannot do its work now and goes on trying, first after `delay`; no minute is lost meanwhile."""

    name: ClassVar[str] = "cron:error"
    error: Exception
    delay: timedelta


class CronRestored(Event, frozen=True):
    """The scheduler can do its work again, after `attempts` tries."""

    name: ClassVar[str] = "cron:restored"
    attempts: int
