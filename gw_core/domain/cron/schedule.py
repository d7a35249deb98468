"""When something recurs: five fields of time in a zone, matched, searched and printed."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final

import msgspec

from gw_core.domain.cron.time_zone import UTC_NAME, wall_clock
from gw_core.domain.durations import shown
from gw_core.domain.errors import InvalidInputError

MINUTE: Final = timedelta(minutes=1)
MIN_RANGE_LENGTH: Final = 3
"""Consecutive values from this many on are printed as a range."""

MAX_PATTERN_LENGTH: Final = 1_000
_LAST_MINUTE: Final = datetime.max.replace(second=0, microsecond=0, tzinfo=UTC)

# 29 February can be eight years away (1896 to 1904, 2096 to 2104); a schedule with a longer gap never fires.
_SEARCHED_MONTHS = 12 * 8 + 1


class Field(msgspec.Struct, frozen=True):
    """One of the five fields: its name, its values, and whether it accepts 7 as Sunday, as Graphile Worker does."""

    name: str
    smallest: int
    largest: int
    wraps: bool = False

    @property
    def everything(self) -> tuple[int, ...]:
        """Every value the field can have."""
        return tuple(range(self.smallest, self.largest + 1))

    @property
    def expectation(self) -> str:
        """What may stand in the field, for messages."""
        top = f"{self.largest} (7 is Sunday too)" if self.wraps else str(self.largest)
        return f"numbers from {self.smallest} to {top}, ranges like 1-5, * or */n, separated by commas"


FIELDS: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day", 1, 31),
    Field("month", 1, 12),
    Field("weekday", 0, 6, wraps=True),
)
_ATTRIBUTES: Final = ("minutes", "hours", "days", "months", "weekdays")


@dataclass(frozen=True)
class Schedule:
    """The minutes at which something recurs, in UTC; every field lists its values once, in ascending order.

    A day counts when the day of the month *or* the weekday matches if both are restricted, as in cron; otherwise the
    restricted one decides. Weekdays count from Sunday, 0.
    Made from text with `Schedule.parse("30 4 * * 1")` or by `daily_at` and its siblings.

    With `tz`, an IANA name such as `Europe/Berlin`, the fields are local times, with the rules of Debian's cron for
    clock changes. They differ for a schedule with a wildcard, `*` or `*/n` for the minute or the hour: it follows the
    clock. `wildcard` is known from the text; without text, a field that lists every n-th value counts as one.

    Example: docs/api/crontab.md
    """

    minutes: tuple[int, ...] = FIELDS[0].everything
    hours: tuple[int, ...] = FIELDS[1].everything
    days: tuple[int, ...] = FIELDS[2].everything
    months: tuple[int, ...] = FIELDS[3].everything
    weekdays: tuple[int, ...] = FIELDS[4].everything
    _: KW_ONLY
    tz: str = UTC_NAME
    wildcard: bool | None = None

    def __post_init__(self) -> None:
        for field, name in zip(FIELDS, _ATTRIBUTES, strict=True):
            object.__setattr__(self, name, _checked(field, getattr(self, name)))
        if self.tz == UTC_NAME:
            object.__setattr__(self, "wildcard", None)
            return
        wall_clock(self.tz)
        if self.wildcard is None:
            object.__setattr__(self, "wildcard", self._lists_every_nth())

    @classmethod
    def parse(cls, pattern: str, *, tz: str = UTC_NAME) -> Schedule:
        """Return the schedule of five fields such as `0 8 * * *`; raises `InvalidInputError` naming what is wrong."""
        if len(pattern) > MAX_PATTERN_LENGTH:
            raise InvalidInputError(f"the cron pattern is {len(pattern)} characters long; use {MAX_PATTERN_LENGTH}")
        parts = pattern.split()
        if len(parts) != len(FIELDS):
            raise InvalidInputError(
                f"the cron pattern {shown(pattern)} has {len(parts)} fields; "
                "it needs five: minute, hour, day, month and weekday"
            )
        fields = []
        for field, part in zip(FIELDS, parts, strict=True):
            values, errors = read_field(field, part)
            if errors:
                raise InvalidInputError(
                    f"the cron pattern {shown(pattern)} is wrong: {errors[0].message}; expected {field.expectation}"
                )
            fields.append(values)
        return cls(*fields, tz=tz, wildcard=parts[0].startswith("*") or parts[1].startswith("*"))

    def _lists_every_nth(self) -> bool:
        times = zip(FIELDS[:2], (self.minutes, self.hours), strict=True)
        return any(
            len(values) >= MIN_RANGE_LENGTH and print_field(field, values).startswith("*") for field, values in times
        )

    def __str__(self) -> str:
        texts = [print_field(field, getattr(self, name)) for field, name in zip(FIELDS, _ATTRIBUTES, strict=True)]
        if self.wildcard is False:
            texts[:2] = [",".join(with_ranges(values)) for values in (self.minutes, self.hours)]
        return " ".join(texts)

    def matches(self, at: datetime) -> bool:
        """True when the schedule fires in the minute that contains `at` (any zone)."""
        utc = in_utc(at)
        if self.tz != UTC_NAME:
            minute = floor_minute(utc)
            return next(self._from(minute), None) == minute
        return (
            utc.minute in self.minutes
            and utc.hour in self.hours
            and self.matches_day(utc.day, utc.month, utc.isoweekday() % 7)
        )

    def matches_day(self, day: int, month: int, weekday: int) -> bool:
        """True when the schedule fires at some minute of such a day; Sunday is weekday 0."""
        if month not in self.months:
            return False
        if self.restricts_days and self.restricts_weekdays:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays

    @property
    def restricts_days(self) -> bool:
        """True when not every day of the month is listed."""
        return len(self.days) < len(FIELDS[2].everything)

    @property
    def restricts_weekdays(self) -> bool:
        """True when not every weekday is listed."""
        return len(self.weekdays) < len(FIELDS[4].everything)

    def next_after(self, at: datetime) -> datetime | None:
        """Return the first minute after `at` at which the schedule fires, or None when it never does again."""
        return next(self.upcoming(at), None)

    def upcoming(self, after: datetime) -> Iterator[datetime]:
        """Yield every later minute at which the schedule fires, in order; ends only when there is none."""
        first = floor_minute(in_utc(after))
        if first > _LAST_MINUTE - MINUTE:
            return
        yield from self._from(first + MINUTE)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the minutes from `start` (included) to `end` (excluded) at which the schedule fires."""
        start, end = in_utc(start), in_utc(end)
        if start >= end:
            return
        first = ceil_minute(start)
        for at in self._from(first):
            if at >= end:
                return
            yield at

    def _from(self, first: datetime) -> Iterator[datetime]:
        if self.tz == UTC_NAME:
            return self._local_from(first)
        return wall_clock(self.tz).runs(first, self._local_from, wildcard=bool(self.wildcard))

    def _local_from(self, first: datetime) -> Iterator[datetime]:
        for day in self._days_from(first.date()):
            on_first_day = day == first.date()
            for hour, minute in self._times:
                at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
                if not on_first_day or at >= first:
                    yield at

    def _days_from(self, first: date) -> Iterator[date]:
        """Yield the matching days from `first` on; stops after eight years without one."""
        year, month, dry_months = first.year, first.month, 0
        while dry_months < _SEARCHED_MONTHS and year <= date.max.year:
            dry_months += 1
            if month in self.months:
                weekday, length = monthrange(year, month)
                for day in range(first.day if (year, month) == (first.year, first.month) else 1, length + 1):
                    # monthrange counts weekdays from Monday, 0.
                    if self.matches_day(day, month, (weekday + day) % 7):
                        dry_months = 0
                        yield date(year, month, day)
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)

    @cached_property
    def _times(self) -> tuple[tuple[int, int], ...]:
        return tuple((hour, minute) for hour in self.hours for minute in self.minutes)


# -- times -----------------------------------------------------------------------------------------------------


def in_utc(at: datetime) -> datetime:
    """Return the time in UTC; raises `InvalidInputError` when it has no zone."""
    if at.tzinfo is UTC:
        return at
    if at.tzinfo is None:
        raise InvalidInputError(f"{at.isoformat()} has no time zone; give an aware datetime")
    return at.astimezone(UTC)


def floor_minute(at: datetime) -> datetime:
    """Return the minute that contains the time, in UTC."""
    return in_utc(at).replace(second=0, microsecond=0)


def ceil_minute(at: datetime) -> datetime:
    """Return the time itself when it is a whole minute, else the next one, in UTC."""
    whole = floor_minute(at)
    return whole if whole == at else whole + MINUTE


# -- the builder ---------------------------------------------------------------------------------------------------


def every_minute() -> Schedule:
    """Every minute.

    Example: docs/guide/recurring-tasks.md
    """
    return Schedule()


def every_n_minutes(n: int) -> Schedule:
    """At minute 0 of every hour and each `n` minutes after it, 1 to 59; the count restarts with every hour.

    Example: docs/guide/recurring-tasks.md
    """
    _check("n", n, 1, 59)
    return Schedule(minutes=tuple(range(0, 60, n)))


def hourly_at(minute: int) -> Schedule:
    """Every hour at `minute`.

    Example: docs/guide/recurring-tasks.md
    """
    return Schedule(minutes=(minute,))


def daily_at(hour: int, minute: int = 0) -> Schedule:
    """Every day at the given time, UTC.

    Example: docs/guide/recurring-tasks.md
    """
    return Schedule(minutes=(minute,), hours=(hour,))


def weekly_on(weekday: int | str, hour: int, minute: int = 0) -> Schedule:
    """Every week on a day, by its English name ("monday", "mon") or number (Sunday is 0 or 7), at the time in UTC.

    Example: docs/guide/recurring-tasks.md
    """
    return Schedule(minutes=(minute,), hours=(hour,), weekdays=(_weekday(weekday),))


def monthly_on(day: int, hour: int, minute: int = 0) -> Schedule:
    """Every month on a day, 1 to 31, at the time in UTC; a month too short for it is left out.

    Example: docs/guide/recurring-tasks.md
    """
    return Schedule(minutes=(minute,), hours=(hour,), days=(day,))


def yearly_on(month: int | str, day: int, hour: int, minute: int = 0) -> Schedule:
    """Every year on a day of a month, by its English name ("february", "feb") or number, at the time in UTC.

    Example: docs/guide/recurring-tasks.md
    """
    number = _by_name("month", month, MONTH_NAMES, 1) if isinstance(month, str) else month
    _check("month", number, 1, 12)
    _check(f"day of {MONTH_NAMES[number - 1]}", day, 1, monthrange(2000, number)[1])
    return Schedule(minutes=(minute,), hours=(hour,), days=(day,), months=(number,))


WEEKDAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _weekday(given: int | str) -> int:
    if isinstance(given, str):
        return _by_name("weekday", given, WEEKDAY_NAMES, 0)
    _check("weekday", given, 0, 7)
    return given % 7


def _by_name(what: str, given: str, names: tuple[str, ...], first: int) -> int:
    wanted = given.strip().casefold()
    for number, name in enumerate(names, first):
        if wanted in (name.casefold(), name[:3].casefold()):
            return number
    raise InvalidInputError(f"{what} {shown(given)} is unknown; use one of {', '.join(names)}")


def _check(what: str, value: object, smallest: int, largest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise InvalidInputError(f"{what} is {value!r}; it must be a whole number from {smallest} to {largest}")


def _checked(field: Field, values: Iterable[int]) -> tuple[int, ...]:
    given = tuple(values)
    if not given:
        raise InvalidInputError(f"the schedule has no {field.name}; give at least one")
    for value in given:
        _check(field.name, value, field.smallest, field.largest)
    return tuple(sorted(set(given)))


# -- text ----------------------------------------------------------------------------------------------------------


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong at `offset` inside the text of one field."""

    offset: int
    message: str


_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?|\*(?:/([0-9]+))?")
_BEYOND_ANY_FIELD = 1_000


def read_field(field: Field, text: str) -> tuple[tuple[int, ...], list[FieldError]]:
    """Return the values of one field's text, ascending, and every error in it."""
    values: set[int] = set()
    errors: list[FieldError] = []
    offset = 0
    for part in text.split(","):
        try:
            values.update(_read_part(field, part))
        except InvalidInputError as error:
            errors.append(FieldError(offset, str(error)))
        offset += len(part) + 1
    return tuple(sorted(values)), errors


def _read_part(field: Field, part: str) -> Iterable[int]:
    match = _PART.fullmatch(part)
    if match is None and not part:
        raise InvalidInputError(f"a value is missing in the {field.name} field")
    if match is None:
        raise InvalidInputError(f"{shown(part)} is not a number, range or wildcard for the {field.name}")
    first, last, step = match.groups()
    if first is None:
        return _every_nth(field, part, _bounded(step or "1"))
    return (_in_field(field, first),) if last is None else _range(field, part, first, last)


def _range(field: Field, part: str, first: str, last: str) -> Iterable[int]:
    numbers = range(_bounded(first), _bounded(last) + 1)
    if len(numbers) < 2:
        raise InvalidInputError(f"the range {shown(part)} in the {field.name} field does not ascend")
    _in_field(field, first)
    _in_field(field, last)
    return (_wrapped(field, value) for value in numbers)


def _every_nth(field: Field, part: str, step: int) -> Iterable[int]:
    if step < 1:
        raise InvalidInputError(f"the step of {shown(part)} in the {field.name} field must be greater than zero")
    # Counted from the field's first value, as Graphile Worker does: */2 is day 1, 3, 5, … and not the even days.
    return range(field.smallest, field.largest + 1, step)


def _in_field(field: Field, digits: str) -> int:
    value = _wrapped(field, _bounded(digits))
    if value > field.largest:
        raise InvalidInputError(f"{shown(digits)} is too large for the {field.name}")
    if value < field.smallest:
        raise InvalidInputError(f"{shown(digits)} is too small for the {field.name}")
    return value


def _wrapped(field: Field, value: int) -> int:
    return field.smallest if field.wraps and value == field.largest + 1 else value


def _bounded(digits: str) -> int:
    """Return the number. Thousands of digits only count as too large, because `int` would reject them."""
    significant = digits.lstrip("0")
    return _BEYOND_ANY_FIELD if len(significant) > 3 else int(significant or "0")


def print_field(field: Field, values: tuple[int, ...]) -> str:
    """Return the shortest usual text of a field's values: `*`, `*/n`, or a list with ranges."""
    if values == field.everything:
        return "*"
    if len(values) > 1:
        step = values[1] - values[0]
        if step > 1 and values == field.everything[::step]:
            return f"*/{step}"
    return ",".join(with_ranges(values))


def with_ranges(values: Sequence[int], name: Callable[[int], str] = str, to: str = "-") -> Iterator[str]:
    """Yield the names of values; three and more consecutive ones become a range."""
    start = 0
    for index, value in enumerate(values):
        if index + 1 < len(values) and values[index + 1] == value + 1:
            continue
        run = values[start : index + 1]
        if len(run) >= MIN_RANGE_LENGTH:
            yield f"{name(run[0])}{to}{name(run[-1])}"
        else:
            yield from map(name, run)
        start = index + 1
