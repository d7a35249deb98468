"""Durations as callers give them: a `timedelta`, seconds, or text such as 5m; and times as people type them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final, Generic, TypeAlias, TypeVar, dataclass_transform

from gw_core.domain.errors import GraphileWorkerError, InvalidInputError, InvalidSettingError

Duration: TypeAlias = timedelta | float
"""A duration as callers give it: a `timedelta`, or a number of seconds.

Example: docs/api/types.md
"""

T = TypeVar("T")
C = TypeVar("C")

UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}

MAX_FROM_NOW: Final = timedelta(days=1_000_000)
"""How far from now a time may lie that is given as a duration; PostgreSQL's and Python's calendars end."""

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[wdhms])")
_WHOLE = re.compile(f"(?:{_PART.pattern})+")
_MAX_INPUT = 64
_MAX_SHOWN = 40


def as_duration(what: str, given: Duration, error: type[GraphileWorkerError] = InvalidInputError) -> timedelta:
    """Return a duration that was given as a `timedelta` or in seconds; raises `error` for anything else."""
    if isinstance(given, timedelta):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise error(f"{what} must be a timedelta or a number of seconds, got {given!r}")
    try:
        return timedelta(seconds=given)
    except OverflowError:
        raise error(f"{what} is {given:g} seconds, which is too long; give a shorter duration") from None


def as_optional_duration(what: str, given: Duration | None) -> timedelta | None:
    """Return a duration as `as_duration` does; None stays None."""
    return None if given is None else as_duration(what, given)


class DurationField(Generic[T]):
    """A field of settings that is given as a `timedelta` or in seconds, and is read as a `timedelta`.

    `T` is `timedelta`, or `timedelta | None` for a field that may be None.
    """

    def __init__(self, default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> T:
        if instance is None:  # a dataclass asks for its default
            return self._default
        value: T = vars(instance)[self._name]
        return value

    def __set__(self, instance: object, value: T | float) -> None:
        given: Any = value
        is_none = given is None and self._default is None
        vars(instance)[self._name] = None if is_none else as_duration(self._name, given, InvalidSettingError)


class DurationRangeField:
    """A field of settings for the shortest and the longest of a range of durations; see `DurationField`."""

    def __init__(self, shortest: timedelta, longest: timedelta) -> None:
        self._default = shortest, longest

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> tuple[timedelta, timedelta]:
        if instance is None:
            return self._default
        value: tuple[timedelta, timedelta] = vars(instance)[self._name]
        return value

    def __set__(self, instance: object, value: tuple[Duration, Duration]) -> None:
        shortest, longest = (as_duration(self._name, each, InvalidSettingError) for each in value)
        vars(instance)[self._name] = shortest, longest


@dataclass_transform(kw_only_default=True)
def settings(kind: type[C]) -> type[C]:
    """Make a frozen dataclass whose fields are given by keyword; some of them can be a `DurationField`.

    Type checkers do not see that it is frozen: mypy would read such a field as what it may be given as.
    """
    return dataclass(frozen=True, kw_only=True)(kind)


def check_from_now(what: str, duration: timedelta, error: type[InvalidInputError] = InvalidInputError) -> timedelta:
    """Return a duration that leads from now to a time that PostgreSQL can hold; raises `error` for another."""
    if abs(duration) > MAX_FROM_NOW:
        raise error(f"{what} lies {abs(duration).days:,} days from now; at most {MAX_FROM_NOW.days:,} are allowed")
    return duration


def parse_duration(text: str) -> timedelta:
    """Return the duration written as `90s`, `5m`, `1h30m`, `250ms`, `2d` or `1w`; parts add up.

    Raises `InvalidInputError` for anything else; a number without a unit is rejected because the unit is ambiguous.
    """
    trimmed = text.strip()
    if len(trimmed) > _MAX_INPUT or not _WHOLE.fullmatch(trimmed):
        raise InvalidInputError(f"{shown(text)} is not a duration; write it like 90s, 5m, 1h30m, 250ms or 2d")
    try:
        return sum((float(number) * UNITS[unit] for number, unit in _PART.findall(trimmed)), timedelta())
    except OverflowError:
        raise InvalidInputError(f"{shown(text)} is too long; give a shorter duration") from None


def format_duration(duration: Duration) -> str:
    """Return the duration as `parse_duration` reads it, largest unit first: `1w2d`, `1h30m`, `250ms`, `0s`.

    Parts below a millisecond are dropped; a negative duration has a leading minus.
    """
    duration = as_duration("the duration", duration)
    left = abs(duration)
    parts = []
    for unit, size in UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if duration < timedelta() and parts else "") + ("".join(parts) or "0s")


def parse_time(text: str, now: datetime) -> datetime:
    """Return the time written as ISO 8601 with a zone, `now`, or relative to `now` as `+5m` or `-2h`.

    The answer is in UTC. Raises `InvalidInputError` when the text is something else, or lacks its zone.
    """
    trimmed = text.strip()
    if trimmed == "now":
        return now.astimezone(UTC)
    try:
        if trimmed[:1] in ("+", "-"):
            duration = parse_duration(trimmed[1:])
            return (now + duration if trimmed[0] == "+" else now - duration).astimezone(UTC)
        at = datetime.fromisoformat(trimmed)
        if at.tzinfo is None:
            raise InvalidInputError(f"{shown(text)} has no time zone; add Z for UTC or an offset such as +02:00")
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(f"{shown(text)} lies outside the years 1 to 9999; give another time") from None
    except InvalidInputError:
        raise
    except ValueError:
        raise InvalidInputError(
            f"{shown(text)} is not a valid time; write it like 2026-01-31T08:00:00Z, now, +5m or -2h"
        ) from None


def shown(text: str) -> str:
    """Return untrusted text quoted, escaped and short enough for a message."""
    return repr(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…")
