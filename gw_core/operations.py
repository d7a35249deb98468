"""Tools for operators: results of queries and actions, diagnosis, migrations and supervision."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.clients.async_rules import AsyncLimits as AsyncLimits, AsyncPauses as AsyncPauses
    from gw_core.clients.workers import Workers as Workers
    from gw_core.domain.durations import (
        format_duration as format_duration,
        parse_duration as parse_duration,
        parse_time as parse_time,
    )
    from gw_core.domain.job.group import JobGroup as JobGroup, OnFailure as OnFailure, WaitingGroup as WaitingGroup
    from gw_core.domain.job.history import (
        EndedAttempt as EndedAttempt,
        HistoryPage as HistoryPage,
        HistoryState as HistoryState,
        HistoryStatus as HistoryStatus,
    )
    from gw_core.domain.job.job import encode_payload as encode_payload
    from gw_core.domain.reports.diagnosis import (
        CheckStatus as CheckStatus,
        DoctorFacts as DoctorFacts,
        Finding as Finding,
        TableHealth as TableHealth,
        diagnose as diagnose,
        is_healthy as is_healthy,
    )
    from gw_core.domain.reports.job_status import (
        PlannedAttempt as PlannedAttempt,
        Reason as Reason,
        ReasonCode as ReasonCode,
    )
    from gw_core.domain.reports.lock_waits import *
    from gw_core.domain.reports.query_results import (
        Count as Count,
        FoundJob as FoundJob,
        JobPage as JobPage,
        JobReport as JobReport,
        PageCursor as PageCursor,
        Quality as Quality,
        QueueReport as QueueReport,
        QueueStatistics as QueueStatistics,
        TaskActivity as TaskActivity,
        TaskReport as TaskReport,
    )
    from gw_core.domain.reports.run_statistics import (
        RunHistory as RunHistory,
        RunPoint as RunPoint,
        RunStatistics as RunStatistics,
        StatisticsStatus as StatisticsStatus,
    )
    from gw_core.domain.reports.snapshot import *
    from gw_core.domain.rules.backoff import retry_delay as retry_delay
    from gw_core.domain.rules.pause import (
        Pause as Pause,
        PauseKind as PauseKind,
        PauseResult as PauseResult,
        PauseTarget as PauseTarget,
    )
    from gw_core.domain.rules.roles import Grant as Grant, RoleKind as RoleKind
    from gw_core.domain.rules.sweep_rules import SweepReport as SweepReport, WorkerInfo as WorkerInfo
    from gw_core.domain.rules.task_limit import TaskLimit as TaskLimit
    from gw_core.domain.safe_text import (
        UNSAFE_NAME as UNSAFE_NAME,
        UNSAFE_TEXT as UNSAFE_TEXT,
        shell_command as shell_command,
    )
    from gw_core.maintenance.metrics import METRICS as METRICS, MetricInfo as MetricInfo
    from gw_core.postgres.connection.database import (
        DEFAULT_SCHEMA as DEFAULT_SCHEMA,
        Database as Database,
        described as described,
        find_conninfo as find_conninfo,
    )
    from gw_core.postgres.read.doctor import Doctor as Doctor
    from gw_core.postgres.read.history import History as History
    from gw_core.postgres.read.listener import JobListener as JobListener
    from gw_core.postgres.read.name_lookup import NameKind as NameKind, known_names as known_names
    from gw_core.postgres.road.add_calls import RemovedJob as RemovedJob
    from gw_core.postgres.road.bulk_actions import (
        ChangedJob as ChangedJob,
        JobBatches as JobBatches,
        SelectionCount as SelectionCount,
        SkippedJob as SkippedJob,
        SkipReason as SkipReason,
        WorkerActions as WorkerActions,
    )
    from gw_core.postgres.road.limits import Limits as Limits
    from gw_core.postgres.road.pauses import Pauses as Pauses
    from gw_core.postgres.schema.cleanup import Cleanup as Cleanup, CleanupTarget as CleanupTarget
    from gw_core.postgres.schema.grants import Grants as Grants
    from gw_core.postgres.schema.migrations import (
        MigrationPlan as MigrationPlan,
        MigrationReport as MigrationReport,
        MigrationStep as MigrationStep,
    )
    from gw_core.postgres.schema.schema_state import SchemaState as SchemaState, SchemaStatus as SchemaStatus
    from gw_core.postgres.schema.scratch_schema import ScratchSchema as ScratchSchema, ServerTiming as ServerTiming
    from gw_core.processes.control_channel import ControlChannel as ControlChannel
    from gw_core.processes.supervisor import Supervisor as Supervisor
    from gw_core.runtime.log_messages import (
        LOGGER_NAME as LOGGER_NAME,
        CompletedJobs as CompletedJobs,
        get_logger as get_logger,
        job_fields as job_fields,
        record_fields as record_fields,
    )
    from gw_core.runtime.operator_name import operator_name as operator_name
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.clients.async_rules: AsyncLimits AsyncPauses
        gw_core.clients.workers: Workers
        gw_core.domain.durations: format_duration parse_duration parse_time
        gw_core.domain.job.group: JobGroup OnFailure WaitingGroup
        gw_core.domain.job.history: EndedAttempt HistoryPage HistoryState HistoryStatus
        gw_core.domain.job.job: encode_payload
        gw_core.domain.reports.diagnosis: CheckStatus DoctorFacts Finding TableHealth diagnose is_healthy
        gw_core.domain.reports.job_status: PlannedAttempt Reason ReasonCode
        gw_core.domain.reports.lock_waits: BackendSession LockWait AdvisoryLock LockWaits
        gw_core.domain.reports.query_results: Count FoundJob JobPage JobReport PageCursor Quality QueueReport
        gw_core.domain.reports.query_results: QueueStatistics TaskActivity TaskReport
        gw_core.domain.reports.run_statistics: RunHistory RunPoint RunStatistics StatisticsStatus
        gw_core.domain.reports.snapshot: ServerInfo SchemaInfo TableCounters PrioritySummary LockedQueue QueueSnapshot
        gw_core.domain.reports.snapshot: Throughput ThroughputMeter
        gw_core.domain.rules.backoff: retry_delay
        gw_core.domain.rules.pause: Pause PauseKind PauseResult PauseTarget
        gw_core.domain.rules.roles: Grant RoleKind
        gw_core.domain.rules.sweep_rules: SweepReport WorkerInfo
        gw_core.domain.rules.task_limit: TaskLimit
        gw_core.domain.safe_text: UNSAFE_NAME UNSAFE_TEXT shell_command
        gw_core.maintenance.metrics: METRICS MetricInfo
        gw_core.postgres.connection.database: DEFAULT_SCHEMA Database described find_conninfo
        gw_core.postgres.read.doctor: Doctor
        gw_core.postgres.read.history: History
        gw_core.postgres.read.listener: JobListener
        gw_core.postgres.read.name_lookup: NameKind known_names
        gw_core.postgres.road.add_calls: RemovedJob
        gw_core.postgres.road.bulk_actions: ChangedJob JobBatches SelectionCount SkippedJob SkipReason WorkerActions
        gw_core.postgres.road.limits: Limits
        gw_core.postgres.road.pauses: Pauses
        gw_core.postgres.schema.cleanup: Cleanup CleanupTarget
        gw_core.postgres.schema.grants: Grants
        gw_core.postgres.schema.migrations: MigrationPlan MigrationReport MigrationStep
        gw_core.postgres.schema.schema_state: SchemaState SchemaStatus
        gw_core.postgres.schema.scratch_schema: ScratchSchema ServerTiming
        gw_core.processes.control_channel: ControlChannel
        gw_core.processes.supervisor: Supervisor
        gw_core.runtime.log_messages: LOGGER_NAME CompletedJobs get_logger job_fields record_fields
        gw_core.runtime.operator_name: operator_name
        """,
    )
