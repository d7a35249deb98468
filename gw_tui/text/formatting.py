"""Format numbers, durations and times for a screen, with a mark for inexact counts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from gw_core.front_ends import format_duration

if TYPE_CHECKING:
    from gw_core.front_ends import Count

NOTHING: Final = "\N{EN DASH}"
PLAIN_BELOW: Final = 10_000
_SIZES: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_WEEKS: Final = re.compile(r"\b(\d+)w(?:(\d)d)?(?=\d+h|\b)")
_UNPADDED: Final = re.compile(r"\b(\d+[dhm])(\d[hms])\b")


def number(value: float) -> str:
    """Return a count in at most six characters: `2,000`, `12.3k`, `4.00M`."""
    if abs(value) < PLAIN_BELOW:
        return f"{round(value):,}"
    size, unit = next((size, unit) for size, unit in _SIZES if abs(value) >= size)
    return f"{_three_digits(value / size)}{unit}"


def count(found: Count) -> str:
    """Return a count with its accuracy: `2,000` exact, `~4.00M` an estimate, `~40?` rough, `1,000+` at least."""
    return found.marked(number(found.value))


def rate(per_second: float | None) -> str:
    """Return this many a second: `45/s`, `0.2/s`, `1.20k/s`."""
    if per_second is None:
        return NOTHING
    shown = f"{per_second:.1f}" if 0 < abs(per_second) < PLAIN_BELOW / 1_000 else number(per_second)
    return f"{shown}/s"


def duration(value: timedelta | None) -> str:
    """Return a duration in its two largest units: `4.2s`, `38s`, `9m02s`, `6h06m`, `3d04h`, `41d`."""
    if value is None:
        return NOTHING
    seconds = value.total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if seconds < 9.95:
        return f"{sign}{seconds:.1f}s"
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            units, rest = divmod(whole, size)
            return f"{sign}{units}{unit}" + ("" if units > 30 else f"{rest // part:02d}{smaller}")
    return f"{sign}{whole}s"


def padded(text: str) -> str:
    """Return a text with the durations in it written as `duration` writes them: `2m09s` for `2m9s`, and no weeks."""
    days = _WEEKS.sub(lambda found: f"{7 * int(found[1]) + int(found[2] or 0)}d", text)
    return _UNPADDED.sub(r"\g<1>0\g<2>", days)


def rounded(value: timedelta) -> str:
    """Return a duration as the reasons for a job's state have it: in whole seconds, without empty parts."""
    whole = timedelta(seconds=round(value.total_seconds()))
    if whole >= timedelta(hours=1):
        whole -= whole % (timedelta(hours=1) if whole >= timedelta(days=1) else timedelta(minutes=1))
    return padded(format_duration(whole))


def until(time: datetime | None, now: datetime) -> str:
    """Return how far a time is from now: `in 54s`, or `2m07s ago`."""
    if time is None:
        return NOTHING
    away = time - now
    return f"in {duration(away)}" if away > timedelta() else f"{duration(-away)} ago"


def clock(time: datetime | None) -> str:
    """Return the time of day in UTC: `14:52:07Z`."""
    return NOTHING if time is None else f"{time.astimezone(UTC):%H:%M:%SZ}"


def day(time: datetime | None, now: datetime) -> str:
    """Return a time in UTC, without its date when that is today's."""
    if time is None:
        return NOTHING
    shown, today = time.astimezone(UTC), now.astimezone(UTC)
    if shown.date() == today.date():
        return f"{shown:%H:%M:%S}"
    return f"{shown:%d %b %H:%M}" if shown.year == today.year else f"{shown:%Y-%m-%d}"


def size(count: int) -> str:
    """Return a number of bytes: `214 B`, `3.1 GiB`."""
    left = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= 1024
    return f"{left:.1f} TiB"


def _three_digits(value: float) -> str:
    for places, least in ((2, 9.995), (1, 99.95)):
        if abs(value) < least:
            return f"{value:.{places}f}"
    return f"{value:.0f}"
