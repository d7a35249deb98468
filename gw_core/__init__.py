"""Graphile Worker for Python: the public names, nothing else.

A name is resolved when it is first used, so that `import gw_core` costs a program only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gw_core.version import __version__

if TYPE_CHECKING:
    from gw_core.client import Client as Client
    from gw_core.domain.backoff import retry_delay as retry_delay
    from gw_core.domain.cancellation import (
        CancelledJob as CancelledJob,
        CancelResult as CancelResult,
        JobCancelledError as JobCancelledError,
        StopReason as StopReason,
    )
    from gw_core.domain.cron_item import (
        CronItem as CronItem,
        KnownCronItem as KnownCronItem,
        crontab_item as crontab_item,
    )
    from gw_core.domain.crontab import (
        CrontabFault as CrontabFault,
        format_crontab as format_crontab,
        format_item as format_item,
        parse_crontab as parse_crontab,
        read_crontab as read_crontab,
    )
    from gw_core.domain.diagnosis import (
        CheckStatus as CheckStatus,
        DoctorFacts as DoctorFacts,
        Finding as Finding,
        diagnose as diagnose,
        is_healthy as is_healthy,
    )
    from gw_core.domain.durations import (
        format_duration as format_duration,
        parse_duration as parse_duration,
        parse_moment as parse_moment,
    )
    from gw_core.domain.errors import (
        AuthenticationError as AuthenticationError,
        ConnectionSettingsError as ConnectionSettingsError,
        CrontabError as CrontabError,
        DatabaseError as DatabaseError,
        DatabaseUnavailableError as DatabaseUnavailableError,
        DeadlockError as DeadlockError,
        EmbeddedError as EmbeddedError,
        GraphileWorkerError as GraphileWorkerError,
        InvalidInputError as InvalidInputError,
        InvalidJobError as InvalidJobError,
        InvalidSettingError as InvalidSettingError,
        JobRejectedError as JobRejectedError,
        LockedJobsError as LockedJobsError,
        LockTimeoutError as LockTimeoutError,
        MigrationError as MigrationError,
        NoConnectionError as NoConnectionError,
        PermissionDeniedError as PermissionDeniedError,
        ReadOnlyError as ReadOnlyError,
        SchemaMissingError as SchemaMissingError,
        SchemaTooNewError as SchemaTooNewError,
        SchemaTooOldError as SchemaTooOldError,
        ServerTooOldError as ServerTooOldError,
        StatementTimeoutError as StatementTimeoutError,
        TaskLoadError as TaskLoadError,
        TransientDatabaseError as TransientDatabaseError,
    )
    from gw_core.domain.events import (
        BreakingMigrationDetected as BreakingMigrationDetected,
        Event as Event,
        Events as Events,
        HeartbeatFailed as HeartbeatFailed,
        HeartbeatLate as HeartbeatLate,
        HeartbeatRestored as HeartbeatRestored,
        JobAdded as JobAdded,
        JobCancelling as JobCancelling,
        JobCompleted as JobCompleted,
        JobErrored as JobErrored,
        JobFailed as JobFailed,
        JobLockLost as JobLockLost,
        JobRecovered as JobRecovered,
        JobResultRejected as JobResultRejected,
        JobReturned as JobReturned,
        JobsSettled as JobsSettled,
        JobStarted as JobStarted,
        JobSucceeded as JobSucceeded,
        LocksReset as LocksReset,
        MaintenanceFailed as MaintenanceFailed,
        PoolClaimed as PoolClaimed,
        PoolConnectionLost as PoolConnectionLost,
        PoolConnectionRestored as PoolConnectionRestored,
        PoolerDetected as PoolerDetected,
        PoolInterrupting as PoolInterrupting,
        PoolListening as PoolListening,
        PoolListenLost as PoolListenLost,
        PoolListenRestored as PoolListenRestored,
        PoolNotified as PoolNotified,
        PoolStarted as PoolStarted,
        PoolStopped as PoolStopped,
        PoolStopping as PoolStopping,
        ProbeStarted as ProbeStarted,
        RecoveryConfigured as RecoveryConfigured,
        RecoveryHookFailed as RecoveryHookFailed,
        RunnerStopped as RunnerStopped,
        SignalReceived as SignalReceived,
        TasksReloaded as TasksReloaded,
        WorkersRecovered as WorkersRecovered,
        WorkerStarted as WorkerStarted,
        WorkerStopped as WorkerStopped,
    )
    from gw_core.domain.health import ProbeSettings as ProbeSettings
    from gw_core.domain.job import Job as Job, JobSpec as JobSpec
    from gw_core.domain.job_key import JobKeyMode as JobKeyMode
    from gw_core.domain.job_state import JobFilter as JobFilter, JobState as JobState
    from gw_core.domain.job_status import PlannedAttempt as PlannedAttempt, Reason as Reason, ReasonCode as ReasonCode
    from gw_core.domain.job_version import JobVersion as JobVersion
    from gw_core.domain.lock_waits import (
        AdvisoryLock as AdvisoryLock,
        BackendSession as BackendSession,
        LockWait as LockWait,
        LockWaits as LockWaits,
    )
    from gw_core.domain.narrowing import Narrowing as Narrowing
    from gw_core.domain.outcome import (
        Completed as Completed,
        Failed as Failed,
        GiveUp as GiveUp,
        Outcome as Outcome,
        RetryAfter as RetryAfter,
        Returned as Returned,
        Snooze as Snooze,
    )
    from gw_core.domain.plugins import Plugin as Plugin, Reject as Reject, Skip as Skip
    from gw_core.domain.process_events import (
        ProcessEnded as ProcessEnded,
        ProcessesKilled as ProcessesKilled,
        ProcessReady as ProcessReady,
        SupervisorGaveUp as SupervisorGaveUp,
        SupervisorStarted as SupervisorStarted,
        SupervisorStopped as SupervisorStopped,
    )
    from gw_core.domain.query_results import (
        Count as Count,
        FoundJob as FoundJob,
        JobPage as JobPage,
        JobReport as JobReport,
        PageCursor as PageCursor,
        Quality as Quality,
        QueueReport as QueueReport,
        QueueStatistics as QueueStatistics,
        TaskReport as TaskReport,
    )
    from gw_core.domain.recovery import (
        DefaultRecovery as DefaultRecovery,
        FailWithBackoff as FailWithBackoff,
        RecoverySettings as RecoverySettings,
        Reschedule as Reschedule,
        SkipRecovery as SkipRecovery,
        SweepReport as SweepReport,
        WorkerInfo as WorkerInfo,
    )
    from gw_core.domain.schedule import (
        Schedule as Schedule,
        daily_at as daily_at,
        every_minute as every_minute,
        every_n_minutes as every_n_minutes,
        hourly_at as hourly_at,
        monthly_on as monthly_on,
        weekly_on as weekly_on,
        yearly_on as yearly_on,
    )
    from gw_core.domain.schedule_events import (
        CronBackfill as CronBackfill,
        CronFailed as CronFailed,
        CronItemFailed as CronItemFailed,
        CronItemsRejected as CronItemsRejected,
        CronOverdueTimer as CronOverdueTimer,
        CronPrematureTimer as CronPrematureTimer,
        CronRestored as CronRestored,
        CronRunsSkipped as CronRunsSkipped,
        CronSchedule as CronSchedule,
        CronScheduled as CronScheduled,
        CronStarted as CronStarted,
        CronStarting as CronStarting,
    )
    from gw_core.domain.schedule_text import in_words as in_words
    from gw_core.domain.session_limits import SessionLimits as SessionLimits
    from gw_core.domain.settings import PoolerMode as PoolerMode, WorkerSettings as WorkerSettings
    from gw_core.domain.snapshot import (
        LockedQueue as LockedQueue,
        PrioritySummary as PrioritySummary,
        QueueSnapshot as QueueSnapshot,
        SchemaInfo as SchemaInfo,
        ServerInfo as ServerInfo,
        TableCounters as TableCounters,
        Throughput as Throughput,
        ThroughputMeter as ThroughputMeter,
    )
    from gw_core.domain.text import UNSAFE_NAME as UNSAFE_NAME, UNSAFE_TEXT as UNSAFE_TEXT
    from gw_core.execution.context import JobContext as JobContext, StopSignal as StopSignal
    from gw_core.execution.executables import ExecutableError as ExecutableError
    from gw_core.execution.executor import BatchError as BatchError, TaskResultError as TaskResultError
    from gw_core.execution.payloads import CronRun as CronRun, PayloadError as PayloadError
    from gw_core.execution.process_pool import IsolatedProcessError as IsolatedProcessError
    from gw_core.execution.process_protocol import IsolatedTaskError as IsolatedTaskError
    from gw_core.execution.task import Task as Task
    from gw_core.log import (
        LogFactory as LogFactory,
        Logger as Logger,
        LogSink as LogSink,
        stdlib_factory as stdlib_factory,
    )
    from gw_core.postgres.bulk_actions import (
        ActionResult as ActionResult,
        ChangedJob as ChangedJob,
        JobBatches as JobBatches,
        Jobs as Jobs,
        SelectionCount as SelectionCount,
        SkippedJob as SkippedJob,
        SkipReason as SkipReason,
        WorkerActions as WorkerActions,
        WorkerLocks as WorkerLocks,
    )
    from gw_core.postgres.cleanup import (
        Cleaner as Cleaner,
        CleanupTarget as CleanupTarget,
    )
    from gw_core.postgres.command_preview import CommandPreview as CommandPreview, CommandText as CommandText
    from gw_core.postgres.database import Database as Database, described as described, find_conninfo as find_conninfo
    from gw_core.postgres.doctor import (
        Doctor as Doctor,
    )
    from gw_core.postgres.job_queries import JobQueries as JobQueries
    from gw_core.postgres.job_store import RemovedJob as RemovedJob
    from gw_core.postgres.listener import JobListener as JobListener
    from gw_core.postgres.migrations import (
        MigrationPlan as MigrationPlan,
        MigrationReport as MigrationReport,
        MigrationStep as MigrationStep,
    )
    from gw_core.postgres.name_lookup import NameKind as NameKind, known_names as known_names
    from gw_core.postgres.scratch_schema import ScratchSchema as ScratchSchema, ServerTiming as ServerTiming
    from gw_core.processes.control_channel import ControlChannel as ControlChannel
    from gw_core.processes.supervisor import Supervisor as Supervisor
    from gw_core.runner import Runner as Runner, RunResult as RunResult, run as run, run_once as run_once
    from gw_core.selection import Selection as Selection, SelectionError as SelectionError
    from gw_core.tasks.loading import (
        LoadedTasks as LoadedTasks,
        TaskFault as TaskFault,
        load_app as load_app,
        load_folder as load_folder,
    )
    from gw_core.tasks.registry import TaskRegistry as TaskRegistry, cron as cron, task as task
    from gw_core.worker.timeouts import TaskTimeoutError as TaskTimeoutError

_HOMES = {
    "gw_core.client": ("Client",),
    "gw_core.domain.backoff": ("retry_delay",),
    "gw_core.domain.lock_waits": (
        "AdvisoryLock",
        "LockWait",
        "LockWaits",
        "BackendSession",
    ),
    "gw_core.domain.cancellation": (
        "CancelResult",
        "CancelledJob",
        "JobCancelledError",
        "StopReason",
    ),
    "gw_core.domain.crontab": (
        "CrontabFault",
        "format_crontab",
        "format_item",
        "parse_crontab",
        "read_crontab",
    ),
    "gw_core.domain.cron_item": (
        "CronItem",
        "KnownCronItem",
        "crontab_item",
    ),
    "gw_core.domain.diagnosis": (
        "DoctorFacts",
        "Finding",
        "CheckStatus",
        "diagnose",
        "is_healthy",
    ),
    "gw_core.domain.durations": (
        "format_duration",
        "parse_duration",
        "parse_moment",
    ),
    "gw_core.domain.errors": (
        "AuthenticationError",
        "ConnectionSettingsError",
        "CrontabError",
        "DatabaseError",
        "DatabaseUnavailableError",
        "DeadlockError",
        "EmbeddedError",
        "GraphileWorkerError",
        "InvalidInputError",
        "InvalidJobError",
        "InvalidSettingError",
        "JobRejectedError",
        "LockTimeoutError",
        "LockedJobsError",
        "MigrationError",
        "NoConnectionError",
        "PermissionDeniedError",
        "ReadOnlyError",
        "SchemaMissingError",
        "SchemaTooNewError",
        "SchemaTooOldError",
        "ServerTooOldError",
        "StatementTimeoutError",
        "TaskLoadError",
        "TransientDatabaseError",
    ),
    "gw_core.domain.events": (
        "BreakingMigrationDetected",
        "Event",
        "Events",
        "HeartbeatFailed",
        "HeartbeatLate",
        "HeartbeatRestored",
        "JobAdded",
        "JobCancelling",
        "JobCompleted",
        "JobErrored",
        "JobFailed",
        "JobRecovered",
        "JobLockLost",
        "JobResultRejected",
        "JobReturned",
        "JobStarted",
        "JobSucceeded",
        "JobsSettled",
        "LocksReset",
        "MaintenanceFailed",
        "PoolClaimed",
        "PoolerDetected",
        "PoolConnectionLost",
        "PoolConnectionRestored",
        "PoolListenLost",
        "PoolListenRestored",
        "PoolInterrupting",
        "PoolListening",
        "PoolNotified",
        "PoolStarted",
        "PoolStopped",
        "PoolStopping",
        "ProbeStarted",
        "RecoveryConfigured",
        "RecoveryHookFailed",
        "RunnerStopped",
        "SignalReceived",
        "TasksReloaded",
        "WorkerStarted",
        "WorkerStopped",
        "WorkersRecovered",
    ),
    "gw_core.domain.snapshot": (
        "Throughput",
        "ThroughputMeter",
        "QueueSnapshot",
        "LockedQueue",
        "TableCounters",
        "PrioritySummary",
        "SchemaInfo",
        "ServerInfo",
    ),
    "gw_core.domain.job": (
        "Job",
        "JobSpec",
    ),
    "gw_core.domain.job_key": ("JobKeyMode",),
    "gw_core.domain.job_status": (
        "PlannedAttempt",
        "Reason",
        "ReasonCode",
    ),
    "gw_core.domain.job_state": (
        "JobFilter",
        "JobState",
    ),
    "gw_core.domain.session_limits": ("SessionLimits",),
    "gw_core.domain.narrowing": ("Narrowing",),
    "gw_core.domain.outcome": (
        "Completed",
        "Failed",
        "GiveUp",
        "Outcome",
        "RetryAfter",
        "Returned",
        "Snooze",
    ),
    "gw_core.domain.plugins": (
        "Plugin",
        "Reject",
        "Skip",
    ),
    "gw_core.domain.recovery": (
        "DefaultRecovery",
        "FailWithBackoff",
        "RecoverySettings",
        "Reschedule",
        "SkipRecovery",
        "SweepReport",
        "WorkerInfo",
    ),
    "gw_core.domain.process_events": (
        "ProcessEnded",
        "ProcessReady",
        "SupervisorGaveUp",
        "ProcessesKilled",
        "SupervisorStarted",
        "SupervisorStopped",
    ),
    "gw_core.domain.query_results": (
        "Count",
        "FoundJob",
        "JobPage",
        "JobReport",
        "PageCursor",
        "Quality",
        "QueueReport",
        "QueueStatistics",
        "TaskReport",
    ),
    "gw_core.domain.schedule": (
        "Schedule",
        "daily_at",
        "every_minute",
        "every_n_minutes",
        "hourly_at",
        "monthly_on",
        "weekly_on",
        "yearly_on",
    ),
    "gw_core.domain.schedule_events": (
        "CronBackfill",
        "CronFailed",
        "CronItemFailed",
        "CronItemsRejected",
        "CronOverdueTimer",
        "CronPrematureTimer",
        "CronRestored",
        "CronRunsSkipped",
        "CronSchedule",
        "CronScheduled",
        "CronStarted",
        "CronStarting",
    ),
    "gw_core.domain.schedule_text": ("in_words",),
    "gw_core.domain.job_version": ("JobVersion",),
    "gw_core.domain.settings": (
        "PoolerMode",
        "WorkerSettings",
    ),
    "gw_core.domain.text": ("UNSAFE_NAME", "UNSAFE_TEXT"),
    "gw_core.domain.health": ("ProbeSettings",),
    "gw_core.log": (
        "LogFactory",
        "LogSink",
        "Logger",
        "stdlib_factory",
    ),
    "gw_core.postgres.bulk_actions": (
        "ActionResult",
        "WorkerActions",
        "JobBatches",
        "Jobs",
        "WorkerLocks",
        "SkipReason",
        "SkippedJob",
        "SelectionCount",
        "ChangedJob",
    ),
    "gw_core.postgres.doctor": ("Doctor",),
    "gw_core.postgres.cleanup": (
        "Cleaner",
        "CleanupTarget",
    ),
    "gw_core.postgres.database": (
        "Database",
        "described",
        "find_conninfo",
    ),
    "gw_core.postgres.listener": ("JobListener",),
    "gw_core.postgres.migrations": (
        "MigrationPlan",
        "MigrationReport",
        "MigrationStep",
    ),
    "gw_core.postgres.name_lookup": (
        "NameKind",
        "known_names",
    ),
    "gw_core.postgres.job_queries": ("JobQueries",),
    "gw_core.postgres.job_store": ("RemovedJob",),
    "gw_core.postgres.command_preview": (
        "CommandPreview",
        "CommandText",
    ),
    "gw_core.postgres.scratch_schema": ("ServerTiming", "ScratchSchema"),
    "gw_core.processes.control_channel": ("ControlChannel",),
    "gw_core.processes.supervisor": ("Supervisor",),
    "gw_core.runner": (
        "RunResult",
        "Runner",
        "run",
        "run_once",
    ),
    "gw_core.execution.context": (
        "JobContext",
        "StopSignal",
    ),
    "gw_core.execution.executables": ("ExecutableError",),
    "gw_core.execution.executor": (
        "BatchError",
        "TaskResultError",
    ),
    "gw_core.execution.process_pool": ("IsolatedProcessError",),
    "gw_core.execution.process_protocol": ("IsolatedTaskError",),
    "gw_core.tasks.loading": (
        "LoadedTasks",
        "TaskFault",
        "load_app",
        "load_folder",
    ),
    "gw_core.execution.payloads": ("CronRun", "PayloadError"),
    "gw_core.selection": ("Selection", "SelectionError"),
    "gw_core.worker.timeouts": ("TaskTimeoutError",),
    "gw_core.tasks.registry": (
        "Task",
        "TaskRegistry",
        "cron",
        "task",
    ),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'gw_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
