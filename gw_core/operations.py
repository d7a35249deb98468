"""Values that the methods of a client and of its parts return."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.cron_item import KnownCronItem as KnownCronItem
    from gw_core.domain.job.cancellation import CancelledJob as CancelledJob
    from gw_core.domain.job.group import JobGroup as JobGroup, WaitingGroup as WaitingGroup
    from gw_core.domain.job.history import EndedAttempt as EndedAttempt, HistoryPage as HistoryPage
    from gw_core.domain.job.recorded_action import RecordedAction as RecordedAction
    from gw_core.domain.job.step import JobStep as JobStep
    from gw_core.domain.reports.diagnosis import Finding as Finding
    from gw_core.domain.reports.query_results import (
        JobPage as JobPage,
        JobReport as JobReport,
        QueueCounts as QueueCounts,
        QueueReport as QueueReport,
        TaskReport as TaskReport,
    )
    from gw_core.domain.reports.run_statistics import RunSeries as RunSeries, RunStatistics as RunStatistics
    from gw_core.domain.rules.pause import Pause as Pause, PauseResult as PauseResult
    from gw_core.domain.rules.roles import Grant as Grant
    from gw_core.domain.rules.sweep_rules import SweepReport as SweepReport, WorkerInfo as WorkerInfo
    from gw_core.domain.rules.task_limit import TaskLimit as TaskLimit
    from gw_core.postgres.road.add_calls import RemovedJob as RemovedJob
    from gw_core.postgres.road.bulk_actions import ActionResult as ActionResult, SelectionCount as SelectionCount
    from gw_core.postgres.schema.migrations import MigrationPlan as MigrationPlan, MigrationReport as MigrationReport
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.cron_item: KnownCronItem
        gw_core.domain.job.cancellation: CancelledJob
        gw_core.domain.job.group: JobGroup WaitingGroup
        gw_core.domain.job.history: EndedAttempt HistoryPage
        gw_core.domain.job.recorded_action: RecordedAction
        gw_core.domain.job.step: JobStep
        gw_core.domain.reports.diagnosis: Finding
        gw_core.domain.reports.query_results: JobPage JobReport QueueCounts QueueReport TaskReport
        gw_core.domain.reports.run_statistics: RunSeries RunStatistics
        gw_core.domain.rules.pause: Pause PauseResult
        gw_core.domain.rules.roles: Grant
        gw_core.domain.rules.sweep_rules: SweepReport WorkerInfo
        gw_core.domain.rules.task_limit: TaskLimit
        gw_core.postgres.road.add_calls: RemovedJob
        gw_core.postgres.road.bulk_actions: ActionResult SelectionCount
        gw_core.postgres.schema.migrations: MigrationPlan MigrationReport
        """,
    )
