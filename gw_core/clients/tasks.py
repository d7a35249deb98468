"""The tasks that the database knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from gw_core.clients.verbs import Part, R, blocking
from gw_core.domain.durations import Duration
from gw_core.domain.reports.query_results import TaskReport
from gw_core.domain.reports.run_statistics import RunSeries, RunStatistics
from gw_core.domain.rules.sweep_rules import RecoverySettings

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class Tasks(Part[R]):
    """The tasks in the database, and their recent runs; `client.tasks` is one."""

    @blocking
    def list(self, recovery: RecoverySettings | None = None, *, exact: bool = False) -> Sequence[TaskReport]:
        """Return every task in the database, by name, with its jobs and the live workers that know it.

        Workers are unknown (None) without a live worker, and if one of them does not report its tasks, such as a
        Node.js worker, which is known by its locks. `recovery` defines which workers are dead.
        """
        return self._queries.tasks(recovery, exact=exact)

    @blocking
    def statistics(self, back: Duration = HOUR) -> Mapping[str, RunStatistics]:
        """Return what ended lately of each task, as gw's workers recorded it."""
        from gw_core.postgres.read.statistics_queries import StatisticsQueries

        return StatisticsQueries(self._connections, self._schema).by_task(back)

    @blocking
    def statistics_over_time(
        self, back: Duration = HOUR, *, step: Duration = MINUTE, task: str | None = None
    ) -> RunSeries:
        """Return what ended in each step of the last time, as gw's workers recorded it; of one task, or of all.

        A step is a number of minutes. Jobs that workers in other languages ran are not recorded.
        """
        from gw_core.postgres.read.statistics_queries import StatisticsQueries

        return StatisticsQueries(self._connections, self._schema).history(back, step=step, task=task)
