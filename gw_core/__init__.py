"""Graphile Worker for Python: add, run and manage jobs in PostgreSQL.

This package has the names that most programs use. The others are in eight modules, each name in exactly one:

- `gw_core.events`: the events that `Events` delivers
- `gw_core.errors`: the exceptions
- `gw_core.crontab`: schedules in Python, and crontabs as text
- `gw_core.operations`: what the methods of a client return
- `gw_core.recovery`: what a plugin decides about the job of a dead worker
- `gw_core.embedded`: keep an embedded PostgreSQL running
- `gw_core.selection`: parse selections of jobs
- `gw_core.types`: types that signatures name

All other modules are internal. Each name is imported when it is first used, so `import gw_core` is fast.
Each of these modules lists its names under `TYPE_CHECKING`, for type checkers and for the imports on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.clients.async_client import AsyncClient as AsyncClient
    from gw_core.clients.client import Client as Client
    from gw_core.clients.sharding import AsyncShardedClient as AsyncShardedClient, ShardedClient as ShardedClient
    from gw_core.domain.cron.cron_item import CronItem as CronItem, cron_item as cron_item
    from gw_core.domain.job.cancellation import StopReason as StopReason
    from gw_core.domain.job.job import Job as Job, JobKeyMode as JobKeyMode, JobSpec as JobSpec
    from gw_core.domain.job.job_state import JobState as JobState
    from gw_core.domain.job.outcome import (
        GiveUp as GiveUp,
        Interrupted as Interrupted,
        RetryAfter as RetryAfter,
        Snooze as Snooze,
    )
    from gw_core.domain.reports.health import ProbeSettings as ProbeSettings
    from gw_core.domain.rules.event_bus import Event as Event, Events as Events
    from gw_core.domain.rules.plugins import Addition as Addition, Plugin as Plugin, Reject as Reject, Skip as Skip
    from gw_core.domain.rules.session_limits import SessionLimits as SessionLimits
    from gw_core.domain.rules.settings import WorkerSettings as WorkerSettings
    from gw_core.domain.rules.sweep_rules import RecoverySettings as RecoverySettings
    from gw_core.execution.context import JobContext as JobContext, StopSignal as StopSignal
    from gw_core.execution.payloads import CronRun as CronRun
    from gw_core.execution.task import Task as Task
    from gw_core.runner.run_result import RunResult as RunResult
    from gw_core.runner.runner import Runner as Runner, run as run, run_once as run_once
    from gw_core.runtime.current_job import JobLogFilter as JobLogFilter, current_job as current_job
    from gw_core.selection.selection import Selection as Selection
    from gw_core.tasks.registry import TaskRegistry as TaskRegistry, cron as cron, task as task
    from gw_core.version import __version__ as __version__
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.clients.async_client: AsyncClient
        gw_core.clients.client: Client
        gw_core.clients.sharding: AsyncShardedClient ShardedClient
        gw_core.domain.cron.cron_item: CronItem cron_item
        gw_core.domain.job.cancellation: StopReason
        gw_core.domain.job.job: Job JobKeyMode JobSpec
        gw_core.domain.job.job_state: JobState
        gw_core.domain.job.outcome: GiveUp Interrupted RetryAfter Snooze
        gw_core.domain.reports.health: ProbeSettings
        gw_core.domain.rules.event_bus: Event Events
        gw_core.domain.rules.plugins: Addition Plugin Reject Skip
        gw_core.domain.rules.session_limits: SessionLimits
        gw_core.domain.rules.settings: WorkerSettings
        gw_core.domain.rules.sweep_rules: RecoverySettings
        gw_core.execution.context: JobContext StopSignal
        gw_core.execution.payloads: CronRun
        gw_core.execution.task: Task
        gw_core.runner.run_result: RunResult
        gw_core.runner.runner: Runner run run_once
        gw_core.runtime.current_job: JobLogFilter current_job
        gw_core.selection.selection: Selection
        gw_core.tasks.registry: TaskRegistry cron task
        gw_core.version: __version__
        """,
    )
