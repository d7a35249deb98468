"""Facts about each task: its jobs, their states, and the live workers that know it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gw_core import JobState
from gw_core.front_ends import Count, QueueSnapshot, TaskActivity
from gw_core.operations import QueueCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """One task."""

    name: str
    jobs: Mapping[JobState, Count]
    activity: TaskActivity
    known_by: tuple[str, ...] | None
    """The live workers that know it; None if that is unknown."""

    @property
    def is_unknown(self) -> bool:
        """True when every live worker reports its tasks and none knows this one."""
        return self.known_by == ()


def tasks_of(statistics: QueueCounts, snapshot: QueueSnapshot) -> Iterator[TaskInfo]:
    """Yield the tasks that have jobs."""
    for name, jobs in statistics.tasks.items():
        activity = statistics.activity.get(name, TaskActivity(failed_lately=Count(0)))
        yield TaskInfo(name=name, jobs=jobs, activity=activity, known_by=snapshot.known_by(name))
