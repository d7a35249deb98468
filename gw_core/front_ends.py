"""For gw's own command line and console. Unstable: any release may change it, and programs need none of it."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.clients.cleanup import Cleanup as Cleanup
    from gw_core.clients.doctor import Doctor as Doctor
    from gw_core.clients.front_end import FrontEnd as FrontEnd
    from gw_core.clients.grants import Grants as Grants
    from gw_core.clients.history import History as History
    from gw_core.clients.jobs import JobBatches as JobBatches, Jobs as Jobs
    from gw_core.clients.limits import Limits as Limits
    from gw_core.clients.pauses import Pauses as Pauses
    from gw_core.clients.verbs import OnThreads as OnThreads
    from gw_core.clients.workers import Workers as Workers
    from gw_core.domain.cron.cron_item import reject_duplicates as reject_duplicates
    from gw_core.domain.cron.crontab import CrontabLineError as CrontabLineError, format_item as format_item
    from gw_core.domain.cron.schedule_events import (
        CronBackfill as CronBackfill,
        CronBackfilled as CronBackfilled,
        CronItemFailed as CronItemFailed,
        CronItemsRejected as CronItemsRejected,
        CronOverdueTimer as CronOverdueTimer,
        CronPrematureTimer as CronPrematureTimer,
        CronRestored as CronRestored,
        CronRunsSkipped as CronRunsSkipped,
        CronSchedule as CronSchedule,
        CronStarted as CronStarted,
        CronStarting as CronStarting,
    )
    from gw_core.domain.durations import (
        as_duration as as_duration,
        format_duration as format_duration,
        parse_duration as parse_duration,
        parse_time as parse_time,
    )
    from gw_core.domain.errors import (
        ConnectionSettingsError as ConnectionSettingsError,
        DeadlockError as DeadlockError,
        PluginLoadError as PluginLoadError,
        ServerTooOldError as ServerTooOldError,
    )
    from gw_core.domain.job.job import encode_payload as encode_payload
    from gw_core.domain.reports.diagnosis import (
        DoctorFacts as DoctorFacts,
        TableHealth as TableHealth,
        diagnose as diagnose,
        is_healthy as is_healthy,
    )
    from gw_core.domain.reports.job_status import (
        PlannedAttempt as PlannedAttempt,
        Reason as Reason,
        ReasonCode as ReasonCode,
    )
    from gw_core.domain.reports.lock_waits import (
        AdvisoryLock as AdvisoryLock,
        BackendSession as BackendSession,
        LockWait as LockWait,
    )
    from gw_core.domain.reports.query_results import (
        Count as Count,
        FoundJob as FoundJob,
        Quality as Quality,
        TaskActivity as TaskActivity,
    )
    from gw_core.domain.reports.run_statistics import RunPoint as RunPoint, StatisticsStatus as StatisticsStatus
    from gw_core.domain.reports.snapshot import (
        LockedQueue as LockedQueue,
        PrioritySummary as PrioritySummary,
        QueueSnapshot as QueueSnapshot,
        SchemaInfo as SchemaInfo,
        ServerInfo as ServerInfo,
        TableCounters as TableCounters,
        Throughput as Throughput,
        ThroughputMeter as ThroughputMeter,
    )
    from gw_core.domain.rules.backoff import retry_delay as retry_delay
    from gw_core.domain.rules.event_bus import NODE_EVENTS_HERE as NODE_EVENTS_HERE
    from gw_core.domain.rules.events import (
        ClaimEmpty as ClaimEmpty,
        HeartbeatLate as HeartbeatLate,
        HeartbeatRestored as HeartbeatRestored,
        JobResultRejected as JobResultRejected,
        LocksReset as LocksReset,
        PoolClaimed as PoolClaimed,
        PoolerDetected as PoolerDetected,
        PoolInterrupting as PoolInterrupting,
        PoolListening as PoolListening,
        PoolListenLost as PoolListenLost,
        PoolListenRestored as PoolListenRestored,
        PoolNotified as PoolNotified,
        ProbeStarted as ProbeStarted,
        ProcessesKilled as ProcessesKilled,
        ProcessReady as ProcessReady,
        RecoveryConfigured as RecoveryConfigured,
        RecoveryHookFailed as RecoveryHookFailed,
        SignalReceived as SignalReceived,
        SupervisorStarted as SupervisorStarted,
        SupervisorStopped as SupervisorStopped,
        TasksReloaded as TasksReloaded,
        UnknownLocksReleased as UnknownLocksReleased,
        WorkerCrashed as WorkerCrashed,
        WorkerStarted as WorkerStarted,
        WorkerStopped as WorkerStopped,
    )
    from gw_core.domain.rules.pause import PauseKind as PauseKind
    from gw_core.domain.safe_text import (
        UNSAFE_NAME as UNSAFE_NAME,
        UNSAFE_TEXT as UNSAFE_TEXT,
        shell_command as shell_command,
    )
    from gw_core.execution.executables import ExecutableError as ExecutableError
    from gw_core.execution.executor import TaskResultError as TaskResultError
    from gw_core.execution.process_pool import IsolatedProcessError as IsolatedProcessError
    from gw_core.maintenance.metrics import METRICS as METRICS, MetricInfo as MetricInfo
    from gw_core.postgres.connection.database import (
        DEFAULT_SCHEMA as DEFAULT_SCHEMA,
        Database as Database,
        described as described,
        find_conninfo as find_conninfo,
    )
    from gw_core.postgres.read.explain_script import (
        explain_script as explain_script,
        list_statements as list_statements,
    )
    from gw_core.postgres.read.listener import JobListener as JobListener
    from gw_core.postgres.read.name_lookup import NameKind as NameKind, known_names as known_names
    from gw_core.postgres.road.bulk_actions import ChangedJob as ChangedJob, SkippedJob as SkippedJob
    from gw_core.postgres.schema.migrations import MigrationStep as MigrationStep
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
    from gw_core.selection.completion import Suggestion as Suggestion, suggest as suggest
    from gw_core.selection.history_terms import HISTORY_TERMS as HISTORY_TERMS
    from gw_core.selection.kinds import Resolved as Resolved
    from gw_core.selection.selection import Condition as Condition, Fragment as Fragment, StateName as StateName
    from gw_core.selection.terms import TERMS as TERMS, Cost as Cost, Term as Term
    from gw_core.selection.values import written as written
    from gw_core.tasks.loading import TaskFileError as TaskFileError
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.clients.cleanup: Cleanup
        gw_core.clients.doctor: Doctor
        gw_core.clients.front_end: FrontEnd
        gw_core.clients.grants: Grants
        gw_core.clients.history: History
        gw_core.clients.jobs: JobBatches Jobs
        gw_core.clients.limits: Limits
        gw_core.clients.pauses: Pauses
        gw_core.clients.verbs: OnThreads
        gw_core.clients.workers: Workers
        gw_core.domain.cron.cron_item: reject_duplicates
        gw_core.domain.cron.crontab: CrontabLineError format_item
        gw_core.domain.cron.schedule_events: CronBackfill CronBackfilled CronItemFailed CronItemsRejected
        gw_core.domain.cron.schedule_events: CronOverdueTimer CronPrematureTimer CronRestored CronRunsSkipped
        gw_core.domain.cron.schedule_events: CronSchedule CronStarted CronStarting
        gw_core.domain.durations: as_duration format_duration parse_duration parse_time
        gw_core.domain.errors: ConnectionSettingsError DeadlockError PluginLoadError ServerTooOldError
        gw_core.domain.job.job: encode_payload
        gw_core.domain.reports.diagnosis: DoctorFacts TableHealth diagnose is_healthy
        gw_core.domain.reports.job_status: PlannedAttempt Reason ReasonCode
        gw_core.domain.reports.lock_waits: AdvisoryLock BackendSession LockWait
        gw_core.domain.reports.query_results: Count FoundJob Quality TaskActivity
        gw_core.domain.reports.run_statistics: RunPoint StatisticsStatus
        gw_core.domain.reports.snapshot: LockedQueue PrioritySummary QueueSnapshot SchemaInfo ServerInfo TableCounters
        gw_core.domain.reports.snapshot: Throughput ThroughputMeter
        gw_core.domain.rules.backoff: retry_delay
        gw_core.domain.rules.event_bus: NODE_EVENTS_HERE
        gw_core.domain.rules.events: ClaimEmpty HeartbeatLate HeartbeatRestored JobResultRejected LocksReset
        gw_core.domain.rules.events: PoolClaimed PoolInterrupting PoolListenLost PoolListenRestored PoolListening
        gw_core.domain.rules.events: PoolNotified PoolerDetected ProbeStarted ProcessReady ProcessesKilled
        gw_core.domain.rules.events: RecoveryConfigured RecoveryHookFailed SignalReceived SupervisorStarted
        gw_core.domain.rules.events: SupervisorStopped TasksReloaded UnknownLocksReleased WorkerCrashed WorkerStarted
        gw_core.domain.rules.events: WorkerStopped
        gw_core.domain.rules.pause: PauseKind
        gw_core.domain.safe_text: UNSAFE_NAME UNSAFE_TEXT shell_command
        gw_core.execution.executables: ExecutableError
        gw_core.execution.executor: TaskResultError
        gw_core.execution.process_pool: IsolatedProcessError
        gw_core.maintenance.metrics: METRICS MetricInfo
        gw_core.postgres.connection.database: DEFAULT_SCHEMA Database described find_conninfo
        gw_core.postgres.read.explain_script: explain_script list_statements
        gw_core.postgres.read.listener: JobListener
        gw_core.postgres.read.name_lookup: NameKind known_names
        gw_core.postgres.road.bulk_actions: ChangedJob SkippedJob
        gw_core.postgres.schema.migrations: MigrationStep
        gw_core.postgres.schema.schema_state: SchemaState SchemaStatus
        gw_core.postgres.schema.scratch_schema: ScratchSchema ServerTiming
        gw_core.processes.control_channel: ControlChannel
        gw_core.processes.supervisor: Supervisor
        gw_core.runtime.log_messages: CompletedJobs LOGGER_NAME get_logger job_fields record_fields
        gw_core.runtime.operator_name: operator_name
        gw_core.selection.completion: Suggestion suggest
        gw_core.selection.history_terms: HISTORY_TERMS
        gw_core.selection.kinds: Resolved
        gw_core.selection.selection: Condition Fragment StateName
        gw_core.selection.terms: Cost TERMS Term
        gw_core.selection.values: written
        gw_core.tasks.loading: TaskFileError
        """,
    )
