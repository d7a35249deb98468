"""Say a schedule in words: "every Monday at 04:30 UTC"."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from typing import Final

from gw_core.domain.cron.schedule import FIELDS, MIN_RANGE_LENGTH, MONTH_NAMES, WEEKDAY_NAMES, Schedule, with_ranges
from gw_core.domain.cron.time_zone import UTC_NAME

MAX_TIMES: Final = 6
"""More times of day than this are described as minutes and hours instead of one by one."""

_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS = (field.everything for field in FIELDS)
_WORKDAYS = (1, 2, 3, 4, 5)


def describe_schedule(schedule: Schedule) -> str:
    """Return the schedule as an English phrase that names the zone of its times."""
    words = _describe_in_utc(schedule)
    if schedule.tz == UTC_NAME:
        return words
    return words.replace(UTC_NAME, schedule.tz) if UTC_NAME in words else f"{words} ({schedule.tz})"


def _describe_in_utc(schedule: Schedule) -> str:
    if never_fires(schedule):
        return f"never: {_the_days(schedule)} {_in_months(schedule)} does not exist"
    time, day = _time(schedule), _day(schedule)
    if time.startswith("at "):
        return f"{day} {time}"
    return time if day == "every day" else f"{time}, {day}"


def never_fires(schedule: Schedule) -> bool:
    """True when no month of the schedule has one of its days, as on 30 February."""
    if schedule.restricts_weekdays or not schedule.restricts_days:
        return False
    longest = max(monthrange(2000, month)[1] for month in schedule.months)
    return min(schedule.days) > longest


# -- the time of day -----------------------------------------------------------------------------------------------


def _time(schedule: Schedule) -> str:
    minutes, hours = schedule.minutes, schedule.hours
    if len(minutes) * len(hours) <= MAX_TIMES:
        return f"at {_listed([f'{hour:02}:{minute:02}' for hour in hours for minute in minutes])} UTC"
    if hours == _HOURS:
        return _within_hour(minutes, before_minutes="every hour at ")
    step = _step(hours, _HOURS)
    if step and len(minutes) == 1:
        return f"every {step} hours from 00:{minutes[0]:02} UTC"
    return f"{_within_hour(minutes)} {_of_hours(hours)} UTC"


def _within_hour(minutes: Sequence[int], *, before_minutes: str = "") -> str:
    if minutes == _MINUTES:
        return "every minute"
    step = _step(minutes, _MINUTES)
    if step and 60 % step == 0:
        return f"every {step} minutes"
    return f"{before_minutes}minute{'s' if len(minutes) > 1 else ''} {_listed(_runs(minutes, str))}"


def _of_hours(hours: Sequence[int]) -> str:
    return f"of hour{'s' if len(hours) > 1 else ''} {_listed(_runs(hours, str))}"


# -- the day -------------------------------------------------------------------------------------------------------


def _day(schedule: Schedule) -> str:
    if schedule.restricts_days and schedule.restricts_weekdays:
        both = f"{_the_days(schedule)} {_in_months(schedule)} and {_weekdays(schedule)}"
        return both if schedule.months == _MONTHS else f"{both} in {_months(schedule)}"
    if schedule.restricts_weekdays:
        return _weekdays(schedule) + _only_in_months(schedule)
    if schedule.restricts_days:
        return _dates(schedule)
    return "every day" + _only_in_months(schedule)


def _dates(schedule: Schedule) -> str:
    if len(schedule.months) == 1 and len(schedule.days) == 1:
        return f"every {schedule.days[0]} {MONTH_NAMES[schedule.months[0] - 1]}"
    return f"{_the_days(schedule)} {_in_months(schedule)}"


def _the_days(schedule: Schedule) -> str:
    step = _step(schedule.days, _DAYS)
    if step:
        return f"every {_ordinal(step)} day counted from the 1st"
    return f"the {_listed(_runs(schedule.days, _ordinal))}"


def _in_months(schedule: Schedule) -> str:
    return "of every month" if schedule.months == _MONTHS else f"of {_months(schedule)}"


def _only_in_months(schedule: Schedule) -> str:
    return "" if schedule.months == _MONTHS else f" in {_months(schedule)}"


def _months(schedule: Schedule) -> str:
    return _listed(_runs(schedule.months, lambda month: MONTH_NAMES[month - 1]))


def _weekdays(schedule: Schedule) -> str:
    if schedule.weekdays == _WORKDAYS:
        return "every day from Monday to Friday"
    from_monday = sorted(schedule.weekdays, key=lambda day: (day - 1) % 7)
    return f"every {_listed([WEEKDAY_NAMES[day] for day in from_monday])}"


# -- grammar -------------------------------------------------------------------------------------------------------


def _step(values: Sequence[int], everything: Sequence[int]) -> int:
    """Return n when the values are every n-th of the field and at least three, else 0."""
    if len(values) < MIN_RANGE_LENGTH:
        return 0
    step = values[1] - values[0]
    return step if step > 1 and tuple(values) == tuple(everything[::step]) else 0


def _runs(values: Sequence[int], name: Callable[[int], str]) -> list[str]:
    return list(with_ranges(values, name, " to "))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
