"""Runs by the clock of a time zone, with the rules of Debian's cron for the hours that a clock change skips or repeats.

A local time is written as a datetime in UTC that shows what the clock shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gw_core.domain.durations import shown
from gw_core.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

UTC_NAME: Final = "UTC"

CORRECTION: Final = timedelta(hours=3)
"""A larger change, such as a skipped day, counts as a correction: the new time applies, and no run is moved."""

_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)

# The local time can be a day away from UTC, and the search reads the offset a day ahead.
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + 3 * _DAY
_LAST: Final = datetime.max.replace(tzinfo=UTC) - 5 * _DAY


class WallClock:
    """The clock of a time zone, by its name in the IANA database; raises `InvalidInputError` for an unknown zone."""

    def __init__(self, name: str) -> None:
        self._zone = zone(name)

    def runs(
        self, first: datetime, local_runs: Callable[[datetime], Iterator[datetime]], *, wildcard: bool
    ) -> Iterator[datetime]:
        """Yield the runs from `first` on in UTC; `local_runs` yields the local times of a schedule from one on.

        With `wildcard` runs follow the clock: none in a skipped hour, twice in a repeated one. Otherwise the runs of a
        skipped hour happen together at its end, and a repeated hour has none in its second pass.
        """
        # Runs near `first` depend on a change that came before it.
        start = max(first, _FIRST) - CORRECTION
        while start < _LAST:
            offset = self._offset(start)
            # Runs in an hour that was just skipped still count.
            coming = next(local_runs(start + offset - CORRECTION), None)
            if coming is None:
                return
            # Clock changes matter near runs only; a rare schedule skips the years between.
            start = max(start, coming - offset - 2 * _DAY)
            end = self._end_of_offset(start)
            yield from (at for at in self._between(start, end, local_runs, wildcard=wildcard) if at >= first)
            start = end

    def _between(
        self, start: datetime, end: datetime, local_runs: Callable[[datetime], Iterator[datetime]], *, wildcard: bool
    ) -> Iterator[datetime]:
        """Yield the runs of a time in which the offset from UTC is constant."""
        offset = self._offset(start)
        change = offset - self._offset(start - _MINUTE)
        if not wildcard and timedelta(0) < change < CORRECTION:
            skipped = next(local_runs(start + offset - change), end + offset)
            if skipped < start + offset:
                yield start
                start += _MINUTE
        elif not wildcard and -CORRECTION < change < timedelta(0):
            start -= change
        for local in local_runs(start + offset):
            if local >= end + offset:
                return
            yield local - offset

    def _end_of_offset(self, start: datetime) -> datetime:
        """Return the first minute with another offset, or the same time of the next day if there is none before."""
        offset, end = self._offset(start), start + _DAY
        if self._offset(end) == offset:
            return end
        while end - start > _MINUTE:
            middle = start + (end - start) // 2 // _MINUTE * _MINUTE
            start, end = (middle, end) if self._offset(middle) == offset else (start, middle)
        return end

    def _offset(self, at: datetime) -> timedelta:
        # Whole minutes: before 1972 the offsets of some zones have seconds, and cron compares minutes.
        return (at.astimezone(self._zone).utcoffset() or timedelta(0)) // _MINUTE * _MINUTE


@lru_cache(maxsize=1_000)
def wall_clock(name: str) -> WallClock:
    """Return the clock of a zone."""
    return WallClock(name)


def zone(name: str) -> ZoneInfo:
    """Return a time zone by its name; raises `InvalidInputError` for a name that no installed zone has."""
    from zoneinfo import ZoneInfo  # late: most schedules are in UTC

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        raise InvalidInputError(_unknown(name)) from None


def _unknown(name: object) -> str:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    if not isinstance(name, str):
        return f"the time zone must be a name such as Europe/Berlin, not {name!r}"
    known = available_timezones()
    if not known:
        return (
            f"the time zone {shown(name)} needs a time zone database, which this machine does not have; "
            "install tzdata with the system's package manager or with pip"
        )
    by_lower_case = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), by_lower_case, n=1)
    hint = f"did you mean {by_lower_case[close[0]]}?" if close else "use a name such as Europe/Berlin"
    return f"the time zone {shown(name)} is unknown; {hint}"
