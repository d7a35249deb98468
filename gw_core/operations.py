"""Tools for operators: results of queries and actions, diagnosis, migrations and supervision."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.job.group import JobGroup as JobGroup, OnFailure as OnFailure, WaitingGroup as WaitingGroup
    from gw_core.domain.job.history import (
        EndedAttempt as EndedAttempt,
        HistoryPage as HistoryPage,
        HistoryState as HistoryState,
        HistoryStatus as HistoryStatus,
    )
    from gw_core.domain.reports.diagnosis import CheckStatus as CheckStatus, Finding as Finding
    from gw_core.domain.reports.lock_waits import LockWaits as LockWaits
    from gw_core.domain.reports.query_results import (
        JobPage as JobPage,
        JobReport as JobReport,
        PageCursor as PageCursor,
        QueueCounts as QueueCounts,
        QueueReport as QueueReport,
        TaskReport as TaskReport,
    )
    from gw_core.domain.reports.run_statistics import RunSeries as RunSeries, RunStatistics as RunStatistics
    from gw_core.domain.rules.pause import Pause as Pause, PauseResult as PauseResult, PauseTarget as PauseTarget
    from gw_core.domain.rules.roles import Grant as Grant, RoleKind as RoleKind
    from gw_core.domain.rules.sweep_rules import SweepReport as SweepReport, WorkerInfo as WorkerInfo
    from gw_core.domain.rules.task_limit import TaskLimit as TaskLimit
    from gw_core.postgres.road.add_calls import RemovedJob as RemovedJob
    from gw_core.postgres.road.bulk_actions import SelectionCount as SelectionCount, SkipReason as SkipReason
    from gw_core.postgres.schema.cleanup import CleanupTarget as CleanupTarget
    from gw_core.postgres.schema.migrations import MigrationPlan as MigrationPlan, MigrationReport as MigrationReport
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.job.group: JobGroup OnFailure WaitingGroup
        gw_core.domain.job.history: EndedAttempt HistoryPage HistoryState HistoryStatus
        gw_core.domain.reports.diagnosis: CheckStatus Finding
        gw_core.domain.reports.lock_waits: LockWaits
        gw_core.domain.reports.query_results: JobPage JobReport PageCursor QueueReport QueueCounts TaskReport
        gw_core.domain.reports.run_statistics: RunSeries RunStatistics
        gw_core.domain.rules.pause: Pause PauseResult PauseTarget
        gw_core.domain.rules.roles: Grant RoleKind
        gw_core.domain.rules.sweep_rules: SweepReport WorkerInfo
        gw_core.domain.rules.task_limit: TaskLimit
        gw_core.postgres.road.add_calls: RemovedJob
        gw_core.postgres.road.bulk_actions: SelectionCount SkipReason
        gw_core.postgres.schema.cleanup: CleanupTarget
        gw_core.postgres.schema.migrations: MigrationPlan MigrationReport
        """,
    )
