"""What a condition compares with: a text, the beginning of a text, or a range of numbers or times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from gw_core.domain.durations import format_duration

Bound: TypeAlias = "int | datetime | timedelta | None"
"""One end of a range; a `timedelta` counts from now, None is open."""

_PLAIN: Final = re.compile(r'[^\s",*<>][^\s",*]*')
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_START_OF_TIME: Final = datetime.min.replace(tzinfo=UTC)


class Text(msgspec.Struct, frozen=True):
    """Exactly this text; in long texts, this text anywhere."""

    text: str

    def __str__(self) -> str:
        return written(self.text)


class Prefix(msgspec.Struct, frozen=True):
    """A text that begins like this; with an empty prefix, any text."""

    text: str

    def __str__(self) -> str:
        return f"{written(self.text) if self.text else ''}*"


class Range(msgspec.Struct, frozen=True):
    """Values between two ends, either of which may be open."""

    low: Bound = None
    high: Bound = None
    with_low: bool = True
    with_high: bool = True

    def __str__(self) -> str:
        low, high = _bound(self.low), _bound(self.high)
        if self.low is not None and self.high is not None:
            return low if self.low == self.high and not isinstance(self.low, timedelta) else f"{low}..{high}"
        sign, bound = ("<", high) if self.low is None else (">", low)
        return f"{sign}{'=' if (self.with_low and self.with_high) else ''}{bound}"

    @property
    def only(self) -> int | None:
        """The one number in the range, if there is just one."""
        return self.low if isinstance(self.low, int) and self.low == self.high else None

    @property
    def is_relative(self) -> bool:
        """True when an end counts from now."""
        return isinstance(self.low, timedelta) or isinstance(self.high, timedelta)

    def at(self, now: datetime) -> Range:
        """Return the same range with ends that no longer count from now."""
        return Range(_absolute(self.low, now), _absolute(self.high, now), self.with_low, self.with_high)

    def contains(self, value: float, now: datetime) -> bool:
        """Return whether a number, or a time in seconds since 1970, lies in the range."""
        low, high = _comparable(self.low, now), _comparable(self.high, now)
        above = low is None or value > low or (self.with_low and value == low)
        return above and (high is None or value < high or (self.with_high and value == high))


Value = Text | Prefix | Range


def written(text: str, plain: re.Pattern[str] = _PLAIN) -> str:
    """Return a text as it is typed behind a colon: in quotes when it needs them."""
    if plain.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _absolute(bound: Bound, now: datetime) -> Bound:
    if not isinstance(bound, timedelta):
        return bound
    try:
        return (now + bound).astimezone(UTC)
    except OverflowError:
        return _END_OF_TIME if bound > timedelta() else _START_OF_TIME


def _comparable(bound: Bound, now: datetime) -> float | None:
    absolute = _absolute(bound, now)
    return absolute.timestamp() if isinstance(absolute, datetime) else absolute  # type: ignore[return-value] # no duration


def _bound(bound: Bound) -> str:
    match bound:
        case timedelta():
            return _offset(bound)
        case datetime():
            return bound.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return "" if bound is None else str(bound)


def _offset(offset: timedelta) -> str:
    """Return a time that counts from now, to the microsecond."""
    if not offset:
        return "now"
    sign, size = ("-", -offset) if offset < timedelta() else ("+", offset)
    whole, rest = divmod(size, timedelta(milliseconds=1))
    fraction = f"{rest.microseconds / 1000}ms" if rest else ""
    coarse = format_duration(timedelta(milliseconds=whole)) if whole else ""
    return f"{sign}{coarse}{fraction}"
