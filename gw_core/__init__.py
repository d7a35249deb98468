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
    from gw_core.domain.crontab import (
        CrontabFault as CrontabFault,
    )
    from gw_core.domain.crontab import (
        format_crontab as format_crontab,
    )
    from gw_core.domain.crontab import (
        format_item as format_item,
    )
    from gw_core.domain.crontab import (
        parse_crontab as parse_crontab,
    )
    from gw_core.domain.crontab import (
        read_crontab as read_crontab,
    )
    from gw_core.domain.crontab_item import CrontabItem as CrontabItem
    from gw_core.domain.crontab_item import crontab_item as crontab_item
    from gw_core.domain.durations import (
        format_duration as format_duration,
    )
    from gw_core.domain.durations import (
        parse_duration as parse_duration,
    )
    from gw_core.domain.durations import (
        parse_moment as parse_moment,
    )
    from gw_core.domain.errors import (
        AuthenticationError as AuthenticationError,
    )
    from gw_core.domain.errors import (
        CrontabError as CrontabError,
    )
    from gw_core.domain.errors import (
        DatabaseError as DatabaseError,
    )
    from gw_core.domain.errors import (
        DatabaseUnavailableError as DatabaseUnavailableError,
    )
    from gw_core.domain.errors import (
        EmbeddedError as EmbeddedError,
    )
    from gw_core.domain.errors import (
        GraphileWorkerError as GraphileWorkerError,
    )
    from gw_core.domain.errors import (
        InvalidInputError as InvalidInputError,
    )
    from gw_core.domain.errors import (
        InvalidJobError as InvalidJobError,
    )
    from gw_core.domain.errors import (
        InvalidSettingError as InvalidSettingError,
    )
    from gw_core.domain.errors import (
        JobRefusedError as JobRefusedError,
    )
    from gw_core.domain.errors import (
        LockedJobsError as LockedJobsError,
    )
    from gw_core.domain.errors import (
        MigrationError as MigrationError,
    )
    from gw_core.domain.errors import (
        NoConnectionError as NoConnectionError,
    )
    from gw_core.domain.errors import (
        PermissionDeniedError as PermissionDeniedError,
    )
    from gw_core.domain.errors import (
        SchemaMissingError as SchemaMissingError,
    )
    from gw_core.domain.errors import (
        SchemaTooNewError as SchemaTooNewError,
    )
    from gw_core.domain.errors import (
        SchemaTooOldError as SchemaTooOldError,
    )
    from gw_core.domain.errors import (
        ServerTooOldError as ServerTooOldError,
    )
    from gw_core.domain.errors import (
        TaskLoadError as TaskLoadError,
    )
    from gw_core.domain.errors import (
        TransientDatabaseError as TransientDatabaseError,
    )
    from gw_core.domain.events import (
        BreakingMigrationSeen as BreakingMigrationSeen,
    )
    from gw_core.domain.events import (
        Event as Event,
    )
    from gw_core.domain.events import (
        Events as Events,
    )
    from gw_core.domain.events import (
        JobAdded as JobAdded,
    )
    from gw_core.domain.events import (
        JobCompleted as JobCompleted,
    )
    from gw_core.domain.events import (
        JobErrored as JobErrored,
    )
    from gw_core.domain.events import (
        JobFailed as JobFailed,
    )
    from gw_core.domain.events import (
        JobLost as JobLost,
    )
    from gw_core.domain.events import (
        JobReturned as JobReturned,
    )
    from gw_core.domain.events import (
        JobsSettled as JobsSettled,
    )
    from gw_core.domain.events import (
        JobStarted as JobStarted,
    )
    from gw_core.domain.events import (
        JobSucceeded as JobSucceeded,
    )
    from gw_core.domain.events import (
        LocksReset as LocksReset,
    )
    from gw_core.domain.events import (
        MaintenanceFailed as MaintenanceFailed,
    )
    from gw_core.domain.events import (
        PoolClaimed as PoolClaimed,
    )
    from gw_core.domain.events import (
        PoolConnectionLost as PoolConnectionLost,
    )
    from gw_core.domain.events import (
        PoolConnectionRestored as PoolConnectionRestored,
    )
    from gw_core.domain.events import (
        PoolInterrupting as PoolInterrupting,
    )
    from gw_core.domain.events import (
        PoolListening as PoolListening,
    )
    from gw_core.domain.events import (
        PoolNotified as PoolNotified,
    )
    from gw_core.domain.events import (
        PoolStarted as PoolStarted,
    )
    from gw_core.domain.events import (
        PoolStopped as PoolStopped,
    )
    from gw_core.domain.events import (
        PoolStopping as PoolStopping,
    )
    from gw_core.domain.events import (
        RunnerStopped as RunnerStopped,
    )
    from gw_core.domain.events import (
        SignalReceived as SignalReceived,
    )
    from gw_core.domain.events import (
        TasksReloaded as TasksReloaded,
    )
    from gw_core.domain.events import (
        WorkerStarted as WorkerStarted,
    )
    from gw_core.domain.events import (
        WorkerStopped as WorkerStopped,
    )
    from gw_core.domain.job import Job as Job
    from gw_core.domain.job import JobSpec as JobSpec
    from gw_core.domain.job_key import JobKeyMode as JobKeyMode
    from gw_core.domain.outcome import (
        Completed as Completed,
    )
    from gw_core.domain.outcome import (
        Failed as Failed,
    )
    from gw_core.domain.outcome import (
        GiveUp as GiveUp,
    )
    from gw_core.domain.outcome import (
        Outcome as Outcome,
    )
    from gw_core.domain.outcome import (
        RetryAfter as RetryAfter,
    )
    from gw_core.domain.outcome import (
        Returned as Returned,
    )
    from gw_core.domain.outcome import (
        Snooze as Snooze,
    )
    from gw_core.domain.plugins import Plugin as Plugin
    from gw_core.domain.plugins import Refuse as Refuse
    from gw_core.domain.plugins import Skip as Skip
    from gw_core.domain.schedule import (
        Schedule as Schedule,
    )
    from gw_core.domain.schedule import (
        daily_at as daily_at,
    )
    from gw_core.domain.schedule import (
        every_minute as every_minute,
    )
    from gw_core.domain.schedule import (
        every_n_minutes as every_n_minutes,
    )
    from gw_core.domain.schedule import (
        hourly_at as hourly_at,
    )
    from gw_core.domain.schedule import (
        monthly_on as monthly_on,
    )
    from gw_core.domain.schedule import (
        weekly_on as weekly_on,
    )
    from gw_core.domain.schedule import (
        yearly_on as yearly_on,
    )
    from gw_core.domain.schedule_events import (
        CronBackfill as CronBackfill,
    )
    from gw_core.domain.schedule_events import (
        CronFailed as CronFailed,
    )
    from gw_core.domain.schedule_events import (
        CronItemFailed as CronItemFailed,
    )
    from gw_core.domain.schedule_events import (
        CronItemsRefused as CronItemsRefused,
    )
    from gw_core.domain.schedule_events import (
        CronOverdueTimer as CronOverdueTimer,
    )
    from gw_core.domain.schedule_events import (
        CronPrematureTimer as CronPrematureTimer,
    )
    from gw_core.domain.schedule_events import (
        CronRestored as CronRestored,
    )
    from gw_core.domain.schedule_events import (
        CronRunsSkipped as CronRunsSkipped,
    )
    from gw_core.domain.schedule_events import (
        CronSchedule as CronSchedule,
    )
    from gw_core.domain.schedule_events import (
        CronScheduled as CronScheduled,
    )
    from gw_core.domain.schedule_events import (
        CronStarted as CronStarted,
    )
    from gw_core.domain.schedule_events import (
        CronStarting as CronStarting,
    )
    from gw_core.domain.schedule_words import in_words as in_words
    from gw_core.domain.settings import WorkerSettings as WorkerSettings
    from gw_core.log import (
        LogFactory as LogFactory,
    )
    from gw_core.log import (
        Logger as Logger,
    )
    from gw_core.log import (
        LogSink as LogSink,
    )
    from gw_core.log import (
        stdlib_factory as stdlib_factory,
    )
    from gw_core.postgres.database import Database as Database
    from gw_core.postgres.database import described as described
    from gw_core.postgres.database import find_conninfo as find_conninfo
    from gw_core.postgres.migrations import (
        MigrationPlan as MigrationPlan,
    )
    from gw_core.postgres.migrations import (
        MigrationReport as MigrationReport,
    )
    from gw_core.postgres.migrations import (
        MigrationStep as MigrationStep,
    )
    from gw_core.postgres.store import ListedJob as ListedJob
    from gw_core.postgres.store import RemovedJob as RemovedJob
    from gw_core.runner import Runner as Runner
    from gw_core.runner import RunResult as RunResult
    from gw_core.runner import run as run
    from gw_core.runner import run_once as run_once
    from gw_core.worker.context import JobContext as JobContext
    from gw_core.worker.context import StopSignal as StopSignal
    from gw_core.worker.loading import LoadedTasks as LoadedTasks
    from gw_core.worker.loading import load_app as load_app
    from gw_core.worker.loading import load_folder as load_folder
    from gw_core.worker.tasks import Task as Task
    from gw_core.worker.tasks import TaskRegistry as TaskRegistry
    from gw_core.worker.tasks import cron as cron
    from gw_core.worker.tasks import task as task

_HOMES = {
    "gw_core.client": ("Client",),
    "gw_core.domain.backoff": ("retry_delay",),
    "gw_core.domain.crontab": (
        "CrontabFault",
        "format_crontab",
        "format_item",
        "parse_crontab",
        "read_crontab",
    ),
    "gw_core.domain.crontab_item": (
        "CrontabItem",
        "crontab_item",
    ),
    "gw_core.domain.durations": (
        "format_duration",
        "parse_duration",
        "parse_moment",
    ),
    "gw_core.domain.errors": (
        "AuthenticationError",
        "CrontabError",
        "DatabaseError",
        "DatabaseUnavailableError",
        "EmbeddedError",
        "GraphileWorkerError",
        "InvalidInputError",
        "InvalidJobError",
        "InvalidSettingError",
        "JobRefusedError",
        "LockedJobsError",
        "MigrationError",
        "NoConnectionError",
        "PermissionDeniedError",
        "SchemaMissingError",
        "SchemaTooNewError",
        "SchemaTooOldError",
        "ServerTooOldError",
        "TaskLoadError",
        "TransientDatabaseError",
    ),
    "gw_core.domain.events": (
        "BreakingMigrationSeen",
        "Event",
        "Events",
        "JobAdded",
        "JobCompleted",
        "JobErrored",
        "JobFailed",
        "JobLost",
        "JobReturned",
        "JobStarted",
        "JobSucceeded",
        "JobsSettled",
        "LocksReset",
        "MaintenanceFailed",
        "PoolClaimed",
        "PoolConnectionLost",
        "PoolConnectionRestored",
        "PoolInterrupting",
        "PoolListening",
        "PoolNotified",
        "PoolStarted",
        "PoolStopped",
        "PoolStopping",
        "RunnerStopped",
        "SignalReceived",
        "TasksReloaded",
        "WorkerStarted",
        "WorkerStopped",
    ),
    "gw_core.domain.job": (
        "Job",
        "JobSpec",
    ),
    "gw_core.domain.job_key": ("JobKeyMode",),
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
        "Refuse",
        "Skip",
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
        "CronItemsRefused",
        "CronOverdueTimer",
        "CronPrematureTimer",
        "CronRestored",
        "CronRunsSkipped",
        "CronSchedule",
        "CronScheduled",
        "CronStarted",
        "CronStarting",
    ),
    "gw_core.domain.schedule_words": ("in_words",),
    "gw_core.domain.settings": ("WorkerSettings",),
    "gw_core.log": (
        "LogFactory",
        "LogSink",
        "Logger",
        "stdlib_factory",
    ),
    "gw_core.postgres.database": (
        "Database",
        "described",
        "find_conninfo",
    ),
    "gw_core.postgres.migrations": (
        "MigrationPlan",
        "MigrationReport",
        "MigrationStep",
    ),
    "gw_core.postgres.store": (
        "ListedJob",
        "RemovedJob",
    ),
    "gw_core.runner": (
        "RunResult",
        "Runner",
        "run",
        "run_once",
    ),
    "gw_core.worker.context": (
        "JobContext",
        "StopSignal",
    ),
    "gw_core.worker.loading": (
        "LoadedTasks",
        "load_app",
        "load_folder",
    ),
    "gw_core.worker.tasks": (
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
