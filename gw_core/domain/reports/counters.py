"""Count the outcomes of jobs by task, at a cost that suits tens of thousands of jobs per second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gw_core.domain.job.outcome import Completed, Failed, Outcome, Returned

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0)
"""The upper ends of the histograms' buckets, in seconds: from a trivial job to one of ten minutes."""

MAX_TASKS: Final = 100
"""Tasks that are counted each for itself; each costs some forty series."""

OTHERS: Final = "(others)"


class Histogram:
    """How many values fell into each bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count a value; one below zero, as clocks may give, is zero."""
        seconds = max(0.0, seconds)
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def add_all(self, values: list[float]) -> None:
        """Count values from zero upwards; of many, each costs little, because most share a bucket."""
        self.total += sum(values)
        bucket = bisect_left(BOUNDS, min(values))
        if bucket == bisect_left(BOUNDS, max(values)):
            self.counts[bucket] += len(values)
            return
        values.sort()
        begin = 0
        while begin < len(values):
            end = bisect_right(values, BOUNDS[bucket], begin) if bucket < len(BOUNDS) else len(values)
            self.counts[bucket] += end - begin
            begin, bucket = end, bucket + 1

    def cumulative(self) -> list[tuple[str, int]]:
        """Return for each bucket its upper end, as Prometheus writes it, and how many values are not above it."""
        so_far, made = 0, []
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self.counts, strict=True):
            so_far += count
            made.append((bound, so_far))
        return made


class TaskCounters:
    """Counts of the outcomes of one task."""

    __slots__ = ("completed", "duration", "failed", "lost", "permanently_failed", "returned", "start_delay")

    def __init__(self) -> None:
        self.completed = 0
        self.failed = 0
        self.permanently_failed = 0
        self.returned = 0
        self.lost = 0
        self.duration = Histogram()
        self.start_delay = Histogram()


class OutcomeCounters:
    """Counts of the outcomes of all tasks; not thread-safe."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskCounters] = {}

    def settled(self, outcomes: Sequence[Outcome], lost: Sequence[Outcome]) -> None:
        """Count outcomes of one kind that were recorded, and those that were discarded."""
        for identifier, group in by_task(outcomes).items():
            task, kind = self.of_task(identifier), type(group[0])
            if kind is Returned:
                task.returned += len(group)
                continue
            task.duration.add_all([each.seconds for each in group])
            if kind is Completed:
                task.completed += len(group)
            else:
                task.failed += len(group)
                task.permanently_failed += sum(type(each) is Failed and each.is_final for each in group)
        for outcome in lost:
            self.of_task(outcome.job.task).lost += 1

    def started(self, delays: Iterable[tuple[str, float]]) -> None:
        """Count starts: the task, and the seconds since the job was due."""
        for identifier, seconds in delays:
            self.of_task(identifier).start_delay.add(seconds)

    def of_task(self, identifier: str) -> TaskCounters:
        """Return the counters of a task; tasks beyond the limit share one."""
        found = self.tasks.get(identifier)
        if found is None:
            if len(self.tasks) >= MAX_TASKS:
                identifier = OTHERS
            found = self.tasks.setdefault(identifier, TaskCounters())
        return found


def by_task(outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of each task; most batches have only one."""
    names = {each.job.task for each in outcomes}
    if len(names) == 1:
        return dict.fromkeys(names, outcomes)
    groups: dict[str, list[Outcome]] = {name: [] for name in names}
    for each in outcomes:
        groups[each.job.task].append(each)
    return groups
