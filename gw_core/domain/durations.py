"""Parse and format durations and times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from gw_core.domain.errors import InvalidInputError

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


def format_duration(duration: timedelta) -> str:
    """Return the duration as `parse_duration` reads it, largest unit first: `1w2d`, `1h30m`, `250ms`, `0s`.

    Parts below a millisecond are dropped; a negative duration has a leading minus.
    """
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
