"""For gw's own command line, console and integrations. Unstable: any release may change it. Programs need none."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.clients.cleanup import Cleanup as Cleanup
    from gw_core.clients.front_end import FrontEnd as FrontEnd
    from gw_core.clients.jobs import JobBatches as JobBatches, Jobs as Jobs
    from gw_core.clients.pauses import Pauses as Pauses
    from gw_core.clients.verbs import OnThreads as OnThreads
    from gw_core.domain.counted import counted as counted
    from gw_core.domain.cron.cron_item import reject_duplicates as reject_duplicates, scheduled_until as scheduled_until
    from gw_core.domain.cron.crontab import CrontabLineError as CrontabLineError
    from gw_core.domain.cron.schedule_events import *
    from gw_core.domain.cron.schedule_text import describe_schedule as describe_schedule
    from gw_core.domain.durations import (
        as_duration as as_duration,
        format_duration as format_duration,
        parse_duration as parse_duration,
        parse_time as parse_time,
    )
    from gw_core.domain.errors import (
        AuthenticationError as AuthenticationError,
        DeadlockError as DeadlockError,
        EmbeddedError as EmbeddedError,
        LockedJobsError as LockedJobsError,
        LockTimeoutError as LockTimeoutError,
        NoConnectionError as NoConnectionError,
        NotRecordedError as NotRecordedError,
        PluginLoadError as PluginLoadError,
        ReadOnlyError as ReadOnlyError,
        SchemaTooNewError as SchemaTooNewError,
        SchemaTooOldError as SchemaTooOldError,
        ServerTooOldError as ServerTooOldError,
        StatementTimeoutError as StatementTimeoutError,
        TaskLoadError as TaskLoadError,
    )
    from gw_core.domain.job.cancellation import CancelResult as CancelResult
    from gw_core.domain.job.history import HistoryState as HistoryState
    from gw_core.domain.job.job import END_OF_TIME as END_OF_TIME, encode_payload as encode_payload
    from gw_core.domain.job.outcome import (
        Completed as Completed,
        Failed as Failed,
        Outcome as Outcome,
        Returned as Returned,
    )
    from gw_core.domain.reports.diagnosis import (
        CheckStatus as CheckStatus,
        DoctorFacts as DoctorFacts,
        TableHealth as TableHealth,
        diagnose as diagnose,
        is_healthy as is_healthy,
    )
    from gw_core.domain.reports.failures import MIN_FAILURES as MIN_FAILURES, STOPPED_AFTER as STOPPED_AFTER
    from gw_core.domain.reports.job_status import (
        PlannedAttempt as PlannedAttempt,
        Reason as Reason,
        ReasonCode as ReasonCode,
        why_task_waits as why_task_waits,
    )
    from gw_core.domain.reports.lock_waits import (
        AdvisoryLock as AdvisoryLock,
        BackendSession as BackendSession,
        Blocker as Blocker,
        LockWait as LockWait,
        LockWaits as LockWaits,
    )
    from gw_core.domain.reports.query_results import (
        Count as Count,
        FoundJob as FoundJob,
        HistoryStatus as HistoryStatus,
        PageCursor as PageCursor,
        Quality as Quality,
        QueueSize as QueueSize,
        TaskActivity as TaskActivity,
    )
    from gw_core.domain.reports.snapshot import (
        LockedQueue as LockedQueue,
        PrioritySummary as PrioritySummary,
        QueueSnapshot as QueueSnapshot,
        ServerInfo as ServerInfo,
        TableCounters as TableCounters,
        ThroughputMeter as ThroughputMeter,
    )
    from gw_core.domain.rules.backoff import retry_delay as retry_delay
    from gw_core.domain.rules.event_bus import NODE_EVENTS_HERE as NODE_EVENTS_HERE
    from gw_core.domain.rules.events import *
    from gw_core.domain.rules.pause import PauseKind as PauseKind, PauseTarget as PauseTarget
    from gw_core.domain.rules.retry_rules import RetryRule as RetryRule
    from gw_core.domain.rules.roles import RoleKind as RoleKind
    from gw_core.domain.rules.settings import PoolerMode as PoolerMode
    from gw_core.domain.safe_text import (
        UNSAFE_NAME as UNSAFE_NAME,
        UNSAFE_TEXT as UNSAFE_TEXT,
        shell_command as shell_command,
    )
    from gw_core.execution.context import (
        Payload as Payload,
        TakesContext as TakesContext,
        TakesContextByName as TakesContextByName,
        TakesPayload as TakesPayload,
        TaskFunction as TaskFunction,
    )
    from gw_core.execution.error_details import path_from_here as path_from_here
    from gw_core.execution.executables import ExecutableError as ExecutableError
    from gw_core.execution.executor import TaskResultError as TaskResultError, outcome_of as outcome_of
    from gw_core.execution.task import LoadedTask as LoadedTask
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
    from gw_core.postgres.road.bulk_actions import SkippedJob as SkippedJob, SkipReason as SkipReason
    from gw_core.postgres.schema.cleanup import CleanupTarget as CleanupTarget
    from gw_core.postgres.schema.migrations import MigrationStep as MigrationStep
    from gw_core.postgres.schema.schema_state import SchemaState as SchemaState, SchemaStatus as SchemaStatus
    from gw_core.postgres.schema.scratch_schema import ScratchSchema as ScratchSchema
    from gw_core.processes.control_channel import ControlChannel as ControlChannel
    from gw_core.processes.supervisor import Supervisor as Supervisor
    from gw_core.runtime.current_job import add_current_job as add_current_job
    from gw_core.runtime.loggers import (
        LOGGER_NAME as LOGGER_NAME,
        JobLogger as JobLogger,
        get_logger as get_logger,
        job_fields as job_fields,
        record_fields as record_fields,
    )
    from gw_core.runtime.operator_name import operator_name as operator_name
    from gw_core.selection.completion import Suggestion as Suggestion, suggest as suggest
    from gw_core.selection.history_terms import HISTORY_TERMS as HISTORY_TERMS
    from gw_core.selection.kinds import Resolved as Resolved
    from gw_core.selection.selection import EVERYTHING as EVERYTHING
    from gw_core.selection.terms import TERMS as TERMS, Cost as Cost
    from gw_core.selection.values import written as written
    from gw_core.tasks.loading import LoadedTasks as LoadedTasks, load_folder as load_folder
    from gw_core.tasks.references import load_app as load_app, load_plugin as load_plugin
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.clients.cleanup: Cleanup
        gw_core.clients.front_end: FrontEnd
        gw_core.clients.jobs: JobBatches Jobs
        gw_core.clients.pauses: Pauses
        gw_core.clients.verbs: OnThreads
        gw_core.domain.counted: counted
        gw_core.domain.cron.cron_item: reject_duplicates scheduled_until
        gw_core.domain.cron.crontab: CrontabLineError
        gw_core.domain.cron.schedule_events: *
        gw_core.domain.cron.schedule_text: describe_schedule
        gw_core.domain.durations: as_duration format_duration parse_duration parse_time
        gw_core.domain.errors: AuthenticationError DeadlockError EmbeddedError LockTimeoutError
        gw_core.domain.errors: LockedJobsError NoConnectionError NotRecordedError PluginLoadError ReadOnlyError
        gw_core.domain.errors: SchemaTooNewError SchemaTooOldError ServerTooOldError StatementTimeoutError TaskLoadError
        gw_core.domain.job.cancellation: CancelResult
        gw_core.domain.job.history: HistoryState
        gw_core.domain.job.job: END_OF_TIME encode_payload
        gw_core.domain.job.outcome: Completed Failed Outcome Returned
        gw_core.domain.reports.diagnosis: CheckStatus DoctorFacts TableHealth diagnose is_healthy
        gw_core.domain.reports.failures: MIN_FAILURES STOPPED_AFTER
        gw_core.domain.reports.job_status: PlannedAttempt Reason ReasonCode why_task_waits
        gw_core.domain.reports.lock_waits: AdvisoryLock BackendSession Blocker LockWait LockWaits
        gw_core.domain.reports.query_results: Count FoundJob HistoryStatus PageCursor Quality QueueSize TaskActivity
        gw_core.domain.reports.snapshot: LockedQueue PrioritySummary QueueSnapshot ServerInfo TableCounters
        gw_core.domain.reports.snapshot: ThroughputMeter
        gw_core.domain.rules.backoff: retry_delay
        gw_core.domain.rules.event_bus: NODE_EVENTS_HERE
        gw_core.domain.rules.events: *
        gw_core.domain.rules.pause: PauseKind PauseTarget
        gw_core.domain.rules.retry_rules: RetryRule
        gw_core.domain.rules.roles: RoleKind
        gw_core.domain.rules.settings: PoolerMode
        gw_core.domain.safe_text: UNSAFE_NAME UNSAFE_TEXT shell_command
        gw_core.execution.context: Payload TakesContext TakesContextByName TakesPayload TaskFunction
        gw_core.execution.error_details: path_from_here
        gw_core.execution.executables: ExecutableError
        gw_core.execution.executor: TaskResultError outcome_of
        gw_core.execution.task: LoadedTask
        gw_core.maintenance.metrics: METRICS MetricInfo
        gw_core.postgres.connection.database: DEFAULT_SCHEMA Database described find_conninfo
        gw_core.postgres.read.explain_script: explain_script list_statements
        gw_core.postgres.read.listener: JobListener
        gw_core.postgres.read.name_lookup: NameKind known_names
        gw_core.postgres.road.bulk_actions: SkipReason SkippedJob
        gw_core.postgres.schema.cleanup: CleanupTarget
        gw_core.postgres.schema.migrations: MigrationStep
        gw_core.postgres.schema.schema_state: SchemaState SchemaStatus
        gw_core.postgres.schema.scratch_schema: ScratchSchema
        gw_core.processes.control_channel: ControlChannel
        gw_core.processes.supervisor: Supervisor
        gw_core.runtime.current_job: add_current_job
        gw_core.runtime.loggers: JobLogger LOGGER_NAME get_logger job_fields record_fields
        gw_core.runtime.operator_name: operator_name
        gw_core.selection.completion: Suggestion suggest
        gw_core.selection.history_terms: HISTORY_TERMS
        gw_core.selection.kinds: Resolved
        gw_core.selection.selection: EVERYTHING
        gw_core.selection.terms: Cost TERMS
        gw_core.selection.values: written
        gw_core.tasks.loading: LoadedTasks load_folder
        gw_core.tasks.references: load_app load_plugin
        """,
    )
