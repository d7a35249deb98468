"""What ran and when: counts, run times and waits, as workers recorded them for each minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import add

import msgspec

from gw_core.domain.reports.counters import BOUNDS
from gw_core.domain.reports.query_results import Count


class StatisticsStatus(msgspec.Struct, frozen=True):
    """What the table of statistics holds, and who writes it."""

    rows: Count
    """Counted up to 10,000, else an estimate; a lower bound where the server has none."""
    size_bytes: int
    """The size of the table with its index."""
    oldest_age: timedelta | None
    """How long ago the first minute began; None if there is none."""
    latest_age: timedelta | None
    """How long ago the last minute began. Nothing is written for minutes without jobs."""
    recording_workers: int
    """Live workers that record statistics."""
    live_workers: int


class RunStatistics(msgspec.Struct, frozen=True):
    """The attempts that ended in some time.

    Example: docs/api/parts.md
    """

    completed: int = 0
    failed: int = 0
    """Attempts that failed."""
    permanently_failed: int = 0
    run_seconds: float = 0.0
    """The sum of the run times."""
    durations: Sequence[int] = (0,) * (len(BOUNDS) + 1)
    """How many attempts ran for how long, in the buckets of `gw_job_duration_seconds`; the last has no upper end."""
    waited: int = 0
    """How many waits were measured: from when a job was due until it was claimed."""
    wait_seconds: float = 0.0
    """The sum of those waits."""

    @property
    def ended(self) -> int:
        """How many attempts ended."""
        return self.completed + self.failed

    @property
    def mean_wait(self) -> timedelta | None:
        """How long a job was due before it was claimed, on average."""
        return timedelta(seconds=max(0.0, self.wait_seconds / self.waited)) if self.waited else None

    def __add__(self, other: RunStatistics) -> RunStatistics:
        """Return both together."""
        return RunStatistics(
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            permanently_failed=self.permanently_failed + other.permanently_failed,
            run_seconds=self.run_seconds + other.run_seconds,
            durations=tuple(map(add, self.durations, other.durations)),
            waited=self.waited + other.waited,
            wait_seconds=self.wait_seconds + other.wait_seconds,
        )

    def percentile(self, share: float) -> timedelta | None:
        """Return the run time that this share (0 to 1) of the attempts did not exceed, interpolated in its bucket."""
        total = sum(self.durations)
        if not total:
            return None
        wanted, passed = share * total, 0
        for place, count in enumerate(self.durations):
            if count and passed + count >= wanted:
                return timedelta(seconds=_between(place, (wanted - passed) / count))
            passed += count
        return timedelta(seconds=BOUNDS[-1])


class RunPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What ended in one step of time."""

    at: datetime
    """The beginning of the step."""
    runs: RunStatistics


class RunSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts that ended, by step of time. A step without a point is a gap: no live worker recorded statistics.

    Example: docs/api/parts.md
    """

    at: datetime
    """When this was read, by the server's clock."""
    step: timedelta
    points: Sequence[RunPoint] = ()

    @property
    def total(self) -> RunStatistics:
        """All steps together."""
        return sum((point.runs for point in self.points), RunStatistics())


def run_series(
    at: datetime,
    *,
    back: timedelta,
    step: timedelta,
    steps: Mapping[int, RunStatistics],
    alive: Iterable[Sequence[float]],
) -> RunSeries:
    """Return the points of the steps that are over: those recorded, and zeros for those in which a worker was alive.

    `steps` are numbered from 1970 on; `alive` are the times, in seconds since 1970, between which each worker was.
    """
    seconds = step.total_seconds()
    first, last = int((at - back).timestamp() // seconds) + 1, int(at.timestamp() // seconds)
    known: set[int] = set()
    for begin, end in alive:
        # The first and the last step of a worker count only if it wrote them.
        known.update(range(max(first, int(begin // seconds) + 1), min(last, int(end // seconds))))
    numbers = sorted(number for number in known | steps.keys() if first <= number < last)
    points = [
        RunPoint(at=datetime.fromtimestamp(number * seconds, UTC), runs=steps.get(number, RunStatistics()))
        for number in numbers
    ]
    return RunSeries(at=at, step=step, points=points)


def _between(place: int, share: float) -> float:
    """Return the value at a share of a bucket; of the last one only its lower end is known."""
    low = BOUNDS[place - 1] if place else 0.0
    return low if place == len(BOUNDS) else low + share * (BOUNDS[place] - low)
