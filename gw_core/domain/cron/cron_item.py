"""A recurring task as a value, and which of several are due between two times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import msgspec

from gw_core.domain.cron.schedule import MINUTE, Schedule, floor_minute
from gw_core.domain.cron.time_zone import UTC_NAME
from gw_core.domain.durations import Duration, as_duration, shown
from gw_core.domain.errors import CrontabError, InvalidInputError, InvalidJobError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.job import JobKeyMode, JobSpec, KeyMode, job_spec, json_text
from gw_core.domain.rules.pause import Pause

_LAST_MINUTE: Final = floor_minute(datetime.max.replace(tzinfo=UTC))

MAX_FILL: Final = timedelta(days=3650)
NO_FILL: Final = timedelta(0)
_JOB_FIELDS: Final = ("task", "queue_name", "max_attempts", "job_key", "job_key_mode", "priority")

JsonObject = Mapping[str, Any]


@hides("payload")
@dataclass(frozen=True, slots=True, kw_only=True)
class CronItem:
    """One recurring task: when, which task, and how its jobs are added.

    `identifier` names the item in the database, where all workers of all languages meet; it is the task's name unless
    given, must be unique among the items, and should never change. When a worker starts, it backfills runs missed in
    `fill`; zero backfills none. Raises `InvalidInputError` for a value that the database would reject.

    Example: docs/api/index.md
    """

    task: str
    schedule: Schedule
    identifier: str = ""
    fill: timedelta = NO_FILL
    max_attempts: int | None = None
    queue_name: str | None = None
    job_key: str | None = None
    job_key_mode: JobKeyMode = JobKeyMode.REPLACE
    priority: int | None = None
    payload: JsonObject | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, Schedule):
            raise InvalidInputError(f"the schedule must be a Schedule, not {self.schedule!r}; use cron_item() for text")
        spec = JobSpec(**self._job_fields())
        object.__setattr__(self, "job_key_mode", spec.job_key_mode)
        object.__setattr__(self, "identifier", check_identifier(self.identifier or self.task))
        check_fill(self.fill)
        if self.payload is not None:
            object.__setattr__(self, "payload", plain_payload(self.payload))

    def job_spec(self, at: datetime, *, backfilled: bool) -> JobSpec:
        """Return the job to add for one run; its `run_at` and `_cron` in its payload are when it was due."""
        cron = {"ts": iso_milliseconds(at), "backfilled": backfilled}
        return JobSpec(payload={**(self.payload or {}), "_cron": cron}, run_at=at, **self._job_fields())

    def _job_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _JOB_FIELDS}


def cron_item(
    when: str | Schedule,
    task: str | JobSpec | Callable[..., object],
    *,
    id: str | None = None,
    fill: Duration | None = None,
    max_attempts: int | None = None,
    queue_name: str | None = None,
    job_key: str | None = None,
    job_key_mode: KeyMode = JobKeyMode.REPLACE,
    priority: int | None = None,
    payload: JsonObject | None = None,
    tz: str | None = None,
) -> CronItem:
    """Return the item that adds `task` at `when`: five fields of text, or a schedule from `daily_at` and its siblings.

    `task` is an identifier, a task with its defaults, or a job of one: `cron_item("0 8 * * *", report.job(Report()))`.
    With `tz`, such as `"America/New_York"`, the fields are local times of that zone instead of UTC.

    >>> cron_item("0 8 * * *", "send_report", fill=timedelta(hours=4)).schedule == daily_at(8)
    True

    Example: docs/api/index.md
    """
    given = {"max_attempts": max_attempts, "queue_name": queue_name, "job_key": job_key, "priority": priority}
    options: Any = {name: value for name, value in given.items() if value is not None}
    if job_key_mode is not JobKeyMode.REPLACE:
        options["job_key_mode"] = job_key_mode
    spec = job_spec(task, payload, **options)
    if spec.run_at is not None or spec.flags or spec.expires_at is not None:
        raise InvalidInputError(f"a recurring job of {spec.task} can have neither a run_at, an expires_at nor flags")
    return CronItem(
        schedule=_schedule(when, tz),
        identifier=spec.task if id is None else check_identifier(id),
        fill=NO_FILL if fill is None else as_duration("fill", fill),
        payload=None if isinstance(spec.payload, msgspec.Raw) else spec.payload,  # null, for an optional one
        **{name: getattr(spec, name) for name in _JOB_FIELDS},
    )


def _schedule(when: str | Schedule, tz: str | None) -> Schedule:
    if isinstance(when, str):
        return Schedule.parse(when, tz=UTC_NAME if tz is None else tz)
    return when if tz is None or not isinstance(when, Schedule) else replace(when, tz=tz)


# -- rules ---------------------------------------------------------------------------------------------------------


def check_identifier(identifier: str) -> str:
    """Return the identifier; raises `InvalidInputError` when it cannot be a key in the database."""
    try:
        # A job key's rules serve: a text, not empty, storable, at most 512 characters. The identifier is a primary key,
        # and a row of PostgreSQL's index holds about 2,700 bytes.
        JobSpec(task="task", job_key=identifier)
    except InvalidJobError as error:
        raise InvalidInputError(str(error).replace("job key", "crontab identifier")) from None
    return identifier


def check_fill(fill: timedelta) -> timedelta:
    """Return the period; raises `InvalidInputError` when it is negative, not in whole seconds, or beyond ten years."""
    if not isinstance(fill, timedelta):
        raise InvalidInputError(f"fill must be a timedelta, not {fill!r}")
    if fill < NO_FILL or fill.microseconds:
        raise InvalidInputError(f"fill is {fill}; it must be zero or more, in whole seconds")
    if fill > MAX_FILL:
        raise InvalidInputError(f"fill is {fill.days} days; at most {MAX_FILL.days} are allowed")
    return fill


def plain_payload(payload: object) -> dict[str, Any]:
    """Return the payload as plain JSON values; raises `InvalidInputError` when it is not an object JSON can hold."""
    plain = json.loads(json_text(payload))
    if not isinstance(plain, dict):
        raise InvalidInputError(f"the payload must be an object, not {type(payload).__name__}")
    return plain


def reject_duplicates(items: Iterable[CronItem]) -> tuple[CronItem, ...]:
    """Return the items; raises `CrontabError` when two share an identifier, for only one of them would run."""
    kept = tuple(items)
    counts = Counter(item.identifier for item in kept)
    twice = [identifier for identifier, count in counts.items() if count > 1]
    if twice:
        names = ", ".join(map(shown, twice))
        raise CrontabError(
            f"crontab identifiers must be unique, but found more than once: {names}; give each item an id"
        )
    return kept


def iso_milliseconds(at: datetime) -> str:
    """Return the time as Graphile Worker (Node.js) writes it: `2021-01-01T04:00:00.000Z`."""
    return floor_minute(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- what is due ---------------------------------------------------------------------------------------------------


class Window(msgspec.Struct, frozen=True):
    """The time, `end` excluded, in which the runs of an item are asked for."""

    item: CronItem
    start: datetime
    end: datetime

    def runs(self) -> Iterator[tuple[datetime, CronItem]]:
        """Yield when the item runs in the window, oldest first."""
        return ((at, self.item) for at in self.item.schedule.between(self.start, self.end))


class KnownCronItem(msgspec.Struct, frozen=True):
    """The record of an identifier in the database.

    Example: docs/api/parts.md
    """

    identifier: str
    known_since: datetime
    last_execution: datetime | None = None
    pause: Pause | None = None
    """Its pause, unless that has ended."""
    skipped_until: datetime | None = None
    """The end of its pause, past or future, or `datetime.max` for one without end; earlier runs are not backfilled."""

    @property
    def missed_from(self) -> datetime:
        """The time from which runs count as missed: after its last run and the end of its pause."""
        due = self._due_from
        return due if self.skipped_until is None else max(due, self.skipped_until)

    @property
    def _due_from(self) -> datetime:
        """The minute after its last run, or when it became known."""
        if self.last_execution is None:
            return self.known_since
        last = floor_minute(self.last_execution)
        return last if last == _LAST_MINUTE else last + MINUTE


def scheduled_until(known: KnownCronItem, now: datetime) -> datetime:
    """Return the time after which the item's next run lies.

    It is `now`, its last run if a clock was ahead that scheduled it, or the end of its pause.
    """
    last = now if known.last_execution is None else max(now, known.last_execution)
    # A run in the minute in which the pause ends is added if the pause ends with the beginning of the minute.
    return last if known.skipped_until is None else max(last, known.skipped_until - timedelta(microseconds=1))


def by_minute(windows: Iterable[Window]) -> Iterator[tuple[datetime, tuple[CronItem, ...]]]:
    """Yield the minutes in which something is due, oldest first, with the items in the order of their windows."""
    # Merged and not sorted: years of minutes would not fit in memory, and the caller may stop early.
    merged = merge(*(window.runs() for window in windows), key=itemgetter(0))
    for at, runs in groupby(merged, key=itemgetter(0)):
        yield at, tuple(item for _, item in runs)


def missed(item: CronItem, memory: KnownCronItem, *, start: datetime, before: datetime) -> Window:
    """Return the time for which a worker starting at `start` makes up the item's runs: `before` the clock takes over.

    A run counts when it lies within the item's `fill`, not before the item became known and after its last run.
    """
    reach = start - item.fill
    return Window(item, max(reach, memory.missed_from), before)
