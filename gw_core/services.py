"""Build what a runner runs: its tasks, its cron items and the services beside the worker threads."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gw_core.domain.cron_item import CronItem
from gw_core.domain.durations import shown
from gw_core.domain.errors import CrontabError, InvalidSettingError, TaskLoadError
from gw_core.domain.event_bus import Events
from gw_core.domain.events import JobsSettled
from gw_core.domain.health import PoolHealth, ProbeSettings
from gw_core.domain.plugins import Interceptors
from gw_core.domain.settings import WorkerSettings
from gw_core.maintenance.cron_scheduler import ItemSource, Scheduler
from gw_core.maintenance.group_check import GroupCheck
from gw_core.maintenance.heartbeat import Heartbeat
from gw_core.maintenance.history_expiry import HistoryExpiry
from gw_core.maintenance.lock_renewal import ExpiredLocks, LockRenewal
from gw_core.maintenance.recycling import RecycleMonitor
from gw_core.maintenance.statistics_writer import StatisticsWriter
from gw_core.maintenance.sweeper import Sweep, Sweeper
from gw_core.postgres.connections import SharedConnection
from gw_core.service import Service
from gw_core.tasks.loading import LoadedTasks, load_folder
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.claimer import ForbiddenFlags
from gw_core.worker.pool import WorkerPool

if TYPE_CHECKING:
    from gw_core.maintenance.probe import Probe

Tasks = TaskRegistry | Path | str
Crontab = ItemSource | Path | str | None


class ServiceFactory(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the services that run beside the worker threads."""

    settings: WorkerSettings
    events: Events
    interceptors: Interceptors
    maintenance: SharedConnection
    heartbeat_connection: SharedConnection
    schema: str

    def of_every_run(self, pool: WorkerPool, *, once: bool) -> Iterator[Service]:
        """Yield what renews locks, makes room in history, and writes statistics."""
        yield LockRenewal(
            worker_id=pool.id,
            connection=self.maintenance,
            events=self.events,
            locked=pool.ledger.locked,
            every=self.settings.lock_renewal_interval,
        )

        if pool.keeps or not once:
            expiry = HistoryExpiry(connection=self.maintenance, events=self.events, keeps=lambda: pool.keeps)
            expiry.prepare()
            yield expiry
        if self.settings.statistics:
            yield StatisticsWriter(
                worker_id=pool.id, connection=self.maintenance, events=self.events, keep=self.settings.statistics
            )

    def lasting(self, pool: WorkerPool, heartbeat: Heartbeat, stop: Callable[[str], None]) -> Iterator[Service]:
        """Yield what only a long-running worker needs; `stop` ends it at its recycling limits."""
        yield ExpiredLocks(
            worker_id=pool.id,
            connection=self.maintenance,
            events=self.events,
            between=self.settings.expired_lock_interval,
        )
        yield GroupCheck(connection=self.maintenance, events=self.events)
        if self.settings.recover:
            yield self._sweeper(pool, heartbeat)
        if self.settings.recycles:
            yield self._recycle_monitor(pool, stop)

    def _sweeper(self, pool: WorkerPool, heartbeat: Heartbeat) -> Sweeper:
        sweep = Sweep(
            self.maintenance,
            self.settings,
            events=self.events,
            interceptors=self.interceptors,
            worker_id=pool.id,
        )
        return Sweeper(
            sweep,
            self.settings,
            events=self.events,
            every=self.settings.effective_sweep_interval,
            held_up_at=heartbeat.held_up_at,
        )

    def _recycle_monitor(self, pool: WorkerPool, stop: Callable[[str], None]) -> RecycleMonitor:
        watch = RecycleMonitor(self.settings, ended=lambda: pool.completed + pool.failed, on_limit_reached=stop)
        if self.settings.max_jobs is not None:
            self.events.on(JobsSettled, lambda event: watch.wake())
        return watch

    def heartbeat(
        self, pool: WorkerPool, registry: TaskRegistry, *, once: bool, on_breaking_migration: Callable[[int], None]
    ) -> Heartbeat:
        """Return the service that sends heartbeats."""
        settings = self.settings
        return Heartbeat(
            worker_id=pool.id,
            connection=self.heartbeat_connection,
            events=self.events,
            every=settings.effective_heartbeat_interval,
            tolerated=settings.sweep_threshold,
            metadata=lambda: {
                "tasks": registry.identifiers,
                "concurrency": settings.concurrency,
                "recovery": settings.recover,
                "statistics": bool(settings.statistics),
            },
            # A long single run needs heartbeats too, or a sweep recovers its jobs; most end before the first.
            first_after=settings.effective_heartbeat_interval if once else timedelta(0),
            needs_ping=pool.needs_ping if settings.listen else lambda: False,
            on_ping_sent=pool.expect_ping,
            on_cancel_request=pool.on_cancel_request,
            on_claim_rules=pool.on_claim_rules,
            on_written=pool.renew_lease,
            on_breaking_migration=on_breaking_migration,
        )

    def scheduler(self, crontab: ItemSource) -> Scheduler:
        """Return the service that schedules recurring tasks."""
        return Scheduler(self.maintenance, crontab, events=self.events, admit=self.interceptors.admit)

    def probe(
        self,
        settings: ProbeSettings,
        *,
        vitals: Callable[[], PoolHealth | None],
        on_crash: Callable[[str, BaseException], None],
    ) -> Probe:
        """Return the server for health checks and metrics."""
        from gw_core.maintenance.probe import Probe  # imports asyncio and the metrics client

        return Probe(
            settings,
            events=self.events,
            vitals=vitals,
            poll=self.settings.poll_interval,
            connections=self.maintenance,
            schema=self.schema,
            on_crash=on_crash,
        )


def load_tasks(
    tasks: Tasks, settings: WorkerSettings, *, watch: bool, log: logging.Logger | None
) -> LoadedTasks | TaskRegistry:
    """Return the tasks to run, with problems in their files logged. Raises `TaskLoadError` if there are none."""
    if isinstance(tasks, TaskRegistry):
        tasks.complete()
        tasks.check_isolated()
        if watch:
            raise InvalidSettingError("watch reloads the files of a task folder; pass the folder as tasks")
        if not tasks.identifiers:
            raise TaskLoadError("the task registry has no tasks; register at least one")
        return tasks
    loaded = load_folder(Path(tasks), strict=settings.strict, executable_env=settings.executable_env)
    if log is not None:
        for notice in loaded.notices:
            log.info("%s", notice)
        for warning in loaded.warnings:
            log.warning("%s", warning)
        for problem in loaded.errors:
            log.error("%s", problem)
    if not loaded.registry.identifiers:
        raise TaskLoadError(f"no tasks in {loaded.root}; add a file such as hello.py with def hello(payload)")
    return loaded


def checked_flags(flags: ForbiddenFlags) -> ForbiddenFlags:
    """Return the flags. Raises `InvalidSettingError` for a string and for a coroutine function."""
    if isinstance(flags, str):
        raise InvalidSettingError(f"forbidden_flags must be a list of names, not a string; use [{flags!r}]")
    if inspect.iscoroutinefunction(flags):
        raise InvalidSettingError("forbidden_flags must not be an async function; pass a function that returns a list")
    return flags


def items_of(crontab: Iterable[CronItem] | Path | str | None) -> tuple[CronItem, ...]:
    """Return the items of a crontab: a file, its text, or items."""
    if crontab is None:
        return ()
    from gw_core.domain.crontab import parse_crontab  # imports the JSON5 parser

    if isinstance(crontab, Path):
        try:
            text = crontab.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise CrontabError(f"cannot read the crontab {str(crontab)!r}: {reason}") from error
        return parse_crontab(text, source=str(crontab))
    if not isinstance(crontab, str):
        return checked_items(crontab)
    if crontab and not crontab.isspace() and len(crontab.split()) == 1:
        raise CrontabError(
            f"crontab {shown(crontab)} is not the text of a crontab; for a file, pass Path({shown(crontab)})"
        )
    return parse_crontab(crontab)


def checked_items(items: Iterable[CronItem]) -> tuple[CronItem, ...]:
    """Return the items. Raises `CrontabError` if one is anything else."""
    checked = tuple(items)
    for each in checked:
        if not isinstance(each, CronItem):
            raise CrontabError(f"a crontab has items made by cron_item(), not {type(each).__name__}")
    return checked
