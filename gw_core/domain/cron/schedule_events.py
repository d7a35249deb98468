"""The events of the cron scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from gw_core.domain.cron.cron_item import CronItem
from gw_core.domain.rules.event_bus import Event


class CronStarting(Event, frozen=True):
    """The scheduler starts: it registers its items and backfills missed runs. `start` is the time by its clock."""

    name: ClassVar[str] = "cron:starting"
    start: datetime
    items: Sequence[CronItem]


class CronStarted(Event, frozen=True):
    """Registration and backfill are complete; the scheduler now follows the clock."""

    name: ClassVar[str] = "cron:started"
    start: datetime


class CronBackfill(Event, frozen=True):
    """Runs of `items` at `timestamp` were missed before the start and are about to be backfilled."""

    name: ClassVar[str] = "cron:backfill"
    timestamp: datetime
    items: Sequence[CronItem]


class CronPrematureTimer(Event, frozen=True):
    """The timer fired before `expected`, because the clock was set back; the scheduler keeps waiting."""

    name: ClassVar[str] = "cron:prematureTimer"
    current: datetime
    expected: datetime


class CronOverdueTimer(Event, frozen=True):
    """The timer fired a minute or more after `expected`: the machine slept, or the clock or database failed."""

    name: ClassVar[str] = "cron:overdueTimer"
    current: datetime
    expected: datetime


class CronSchedule(Event, frozen=True):
    """`items` are due at `timestamp`, and their jobs are about to be added."""

    name: ClassVar[str] = "cron:schedule"
    timestamp: datetime
    items: Sequence[CronItem]
    backfilled: bool


class CronScheduled(Event, frozen=True):
    """The jobs due at `timestamp` are added; `jobs` maps the identifiers that this worker scheduled to job ids.

    An identifier is missing if it is paused, or if another worker scheduled it. Its id is None if a plugin skipped the
    job.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "cron:scheduled"
    timestamp: datetime
    items: Sequence[CronItem]
    jobs: Mapping[str, int | None]
    backfilled: bool


class CronBackfilled(Event, frozen=True):
    """This worker backfilled `runs` runs of the item `identifier`, those from `first` to `last`."""

    name: ClassVar[str] = "cron:backfilled"
    identifier: str
    runs: int
    first: datetime
    last: datetime


class CronRunsSkipped(Event, frozen=True):
    """Runs from `first` to `last` were missed; only items with a long enough `fill` are backfilled."""

    name: ClassVar[str] = "cron:skipped"
    first: datetime
    last: datetime


class CronItemFailed(Event, frozen=True):
    """A plugin or the database rejected the run of `item` at `timestamp`; other items are not affected."""

    name: ClassVar[str] = "cron:item:error"
    timestamp: datetime
    item: CronItem
    error: Exception


class CronItemsRejected(Event, frozen=True):
    """The source of cron items failed or returned invalid items; the previous items stay in use."""

    name: ClassVar[str] = "cron:items:error"
    error: Exception


class CronFailed(Event, frozen=True):
    """Scheduling failed; the scheduler retries, first after `delay`. No run is lost.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "cron:error"
    error: Exception
    delay: timedelta


class CronRestored(Event, frozen=True):
    """Scheduling works again after `attempts` failed attempts."""

    name: ClassVar[str] = "cron:restored"
    attempts: int
