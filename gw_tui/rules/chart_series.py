"""What was measured lately, at four paces and in a fixed space: the numbers behind the charts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LENGTH: Final = 60

LONGEST_STEP: Final = 60.0
"""So far apart two answers may be for the rate between them to be drawn; a longer time without one is a gap."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """How far a chart looks back: this many seconds a column."""

    name: str
    seconds: int


TIME_RANGES: Final = (TimeRange("1 min", 1), TimeRange("10 min", 10), TimeRange("1 h", 60), TimeRange("24 h", 1_440))


HOUR_RANGE: Final = TIME_RANGES[2]
"""The shortest range of what workers record for each minute."""


class Series:
    """One measure: for every reach the mean of each of the last sixty steps; None where nothing was measured."""

    def __init__(self) -> None:
        self._steps: dict[int, deque[tuple[int, float, int]]] = {
            reach.seconds: deque(maxlen=LENGTH) for reach in TIME_RANGES
        }

    def add(self, second: float, value: float) -> None:
        """Note a value; seconds only go forward."""
        for seconds, steps in self._steps.items():
            number = int(second // seconds)
            if steps and steps[-1][0] == number:
                _, total, count = steps[-1]
                steps[-1] = (number, total + value, count + 1)
            else:
                steps.append((number, value, 1))

    def values(self, reach: TimeRange, second: float) -> Sequence[float | None]:
        """Return the means up to a time, oldest first, with None for every step without data."""
        last = int(second // reach.seconds)
        known = {number: total / count for number, total, count in self._steps[reach.seconds]}
        return [known.get(number) for number in range(last - LENGTH + 1, last + 1)]


def seconds_between(before: float | None, now: float) -> Sequence[float]:
    """Return the seconds that a rate measured now holds for: those since the measurement before, at most a minute."""
    if before is None or not before < now <= before + LONGEST_STEP:
        return (now,)
    return [now - back for back in range(int(now - before + 0.5) - 1, -1, -1)] or (now,)


class History:
    """The measures of the overview."""

    def __init__(self) -> None:
        self.done = Series()
        self.added = Series()
        self.age = Series()
