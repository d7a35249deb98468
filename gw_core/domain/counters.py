"""Count what became of jobs, by task: cheap enough for tens of thousands a second."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gw_core.domain.outcome import Completed, Failed, Outcome

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

    def cumulative(self) -> list[tuple[str, int]]:
        """Return for each bucket its upper end, as Prometheus writes it, and how many values are not above it."""
        so_far, made = 0, []
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self.counts, strict=True):
            so_far += count
            made.append((bound, so_far))
        return made


@dataclass(slots=True)
class TaskCounters:
    """Counts of the outcomes of one task."""

    completed: int = 0
    failed: int = 0
    permanently_failed: int = 0
    returned: int = 0
    lost: int = 0
    duration: Histogram = field(default_factory=Histogram)
    start_delay: Histogram = field(default_factory=Histogram)


class OutcomeCounters:
    """Counts of the outcomes of all tasks; not thread-safe."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskCounters] = {}

    def settled(self, outcomes: Sequence[Outcome], lost: Sequence[Outcome]) -> None:
        """Count outcomes that were recorded, and those that were discarded."""
        for outcome in outcomes:
            task = self.of_task(outcome.job.task_identifier)
            if type(outcome) is Completed:
                task.completed += 1
                task.duration.add(outcome.seconds)
            elif type(outcome) is Failed:
                task.failed += 1
                task.permanently_failed += outcome.is_final
                task.duration.add(outcome.seconds)
            else:
                task.returned += 1
        for outcome in lost:
            self.of_task(outcome.job.task_identifier).lost += 1

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
