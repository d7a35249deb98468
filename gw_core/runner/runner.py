"""The life of a runner: start the worker and its services, handle signals, stop gracefully."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import msgspec

from gw_core.domain.cron.cron_item import CronItem, reject_duplicates
from gw_core.domain.cron.schedule_events import CronItemsRejected
from gw_core.domain.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    LockTimeoutError,
    PermissionDeniedError,
)
from gw_core.domain.reports.health import ProbeSettings
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    HeartbeatLate,
    JobsSettled,
    MaintenanceFailed,
    PoolConnectionLost,
    PoolConnectionRestored,
    PoolerDetected,
    RecoveryConfigured,
    RunnerStarted,
    RunnerStopped,
    WorkerCrashed,
)
from gw_core.domain.rules.plugins import Interceptors, Plugin
from gw_core.domain.rules.roles import RoleKind
from gw_core.domain.rules.settings import PoolerMode, WorkerSettings
from gw_core.domain.rules.stop_signals import StopSignals
from gw_core.execution.context import TaskResources
from gw_core.maintenance.cron_scheduler import ItemSource, Scheduler
from gw_core.maintenance.group_check import GroupCheck
from gw_core.maintenance.heartbeat import Heartbeat, heartbeat_session
from gw_core.maintenance.history_expiry import HistoryExpiry
from gw_core.maintenance.lock_renewal import ExpiredLocks, LockRenewal
from gw_core.maintenance.recycling import RecycleMonitor
from gw_core.maintenance.statistics_writer import StatisticsWriter
from gw_core.maintenance.sweeper import Sweep, Sweeper
from gw_core.postgres.connection.connections import (
    CallersPool,
    ConnectionPool,
    SharedConnection,
    conninfo_of,
    password_of,
)
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database, described, expand_conninfo, find_conninfo
from gw_core.postgres.connection.row_security import rows_hidden, uses_of_kind
from gw_core.postgres.road.enqueue import AddOperations, Enqueuer
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.permissions import require_rights
from gw_core.postgres.schema.schema_state import SchemaState, check
from gw_core.runner.run_inputs import Crontab, Tasks, checked_flags, items_of, load_tasks
from gw_core.runtime.log_messages import JobLog, enable_loggers, get_logger
from gw_core.runtime.service import Service
from gw_core.runtime.signals import Signals
from gw_core.tasks.loading import LoadedTasks
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.claim_policy import ForbiddenFlags
from gw_core.worker.pool import WorkerPool
from gw_core.worker.settler import reconnect_delay
from gw_core.worker.single_run import EndOfRun

if TYPE_CHECKING:
    from gw_core.maintenance.probe import Probe
    from gw_core.postgres.connection.connections import AnyPool

BREAKING_MIGRATION_EXIT_CODE: Final = 57
"""Graphile Worker's exit code for a schema change that this version does not support."""

UNAVAILABLE_EXIT_CODE: Final = 3
"""The exit code of every command that cannot reach its database."""

MAX_OUTAGE: Final = timedelta(minutes=1)
"""How long `run_once` waits for its database; `run` waits without a limit."""

MAX_REPORTED_OVERRUNS: Final = 100
"""How many tasks that overran a heartbeat names."""

SERVICES_EXIT_DELAY: Final = timedelta(seconds=0.8)
HEARTBEAT_EXIT_DELAY: Final = timedelta(seconds=0.9)
"""How long after the grace period they may still wait for the database; the process exits within a second of it."""

MAX_EXIT_DELAY: Final = timedelta(seconds=3)
CLOSE_TIMEOUT: Final = timedelta(seconds=0.05)

MAINTENANCE_RESPONSE_TIMEOUT: Final = timedelta(seconds=60)
"""The limit for the response to a maintenance statement."""

MAINTENANCE: Final = {"lock_timeout": "10s"}
"""Session settings of the maintenance connection. Scheduler, sweeper and lock renewal share it, so none of them may
wait long for a table that another session keeps locked."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    completed: int
    """Jobs completed."""
    failed: int
    """Attempts that failed."""
    reason: str
    exit_code: int
    """0, or 1 after failures with `strict` or an internal error, or 57 after a breaking migration.

    3 if `run_once` could not reach its database for a minute.
    """
    signal: str | None = None
    """The signal that ended the run, for example SIGTERM."""


class _End(msgspec.Struct, frozen=True):
    """Why the run ends; the first reason wins."""

    reason: str
    exit_code: int = 0
    signal: str | None = None


class Runner:
    """Runs jobs until stopped. Use `run()`, or `start()` and `wait()`, or `run_once()`; one runner runs once.

    `tasks` is a registry or a folder. `crontab` is the text of a crontab, a file (`Path`), items, or a function that is
    called repeatedly and returns items. `handle_signals` works in the main thread only. The conninfo is found as in
    `Client`. With `migrate`, the schema is installed or upgraded at the start. `probe` configures the HTTP server for
    health checks and metrics. Without `log_startup`, startup messages have the level debug. `password` is called for
    each new connection. Tasks use the connections of `pool`, if given; the worker opens its own beside it. Without
    `schedule_cron`, the runner adds no recurring jobs: of several shards, one adds them.
    """

    def __init__(
        self,
        conninfo: str | None = None,
        *,
        tasks: Tasks,
        settings: WorkerSettings | None = None,
        schema: str = DEFAULT_SCHEMA,
        forbidden_flags: ForbiddenFlags = None,
        events: Events | None = None,
        logger: logging.Logger | None = None,
        plugins: Sequence[Plugin] = (),
        crontab: Crontab = None,
        schedule_cron: bool = True,
        prepared_statements: bool = True,
        handle_signals: bool = True,
        watch: bool = False,
        max_pool_size: int = 10,
        migrate: bool = True,
        listen_conninfo: str | None = None,
        pg_bin: Path | None = None,
        log_startup: bool = True,
        probe: ProbeSettings | None = None,
        password: Callable[[], str] | None = None,
        pool: AnyPool | None = None,
    ) -> None:
        self.events = events or Events()
        self.settings = settings or WorkerSettings()
        self.logger = get_logger(base=logger)
        self._log = get_logger("core", self.logger)
        self._log_startup = log_startup
        JobLog(self.logger, log_startup=log_startup).attach(self.events)
        for plugin in plugins:
            plugin.attach(self.events)
        self._database = Database(
            find_conninfo(conninfo) if pool is None else conninfo_of(pool),
            schema=schema,
            prepared_statements=prepared_statements,
            pg_bin=pg_bin,
            notice_pooler=True,
            password=password or password_of(pool),
        )
        self._listen_database = (
            None
            if listen_conninfo is None
            else Database(expand_conninfo(listen_conninfo), schema=schema, notice_pooler=True, password=password)
        )
        self._interceptors = Interceptors(plugins)
        self._connections = (
            ConnectionPool(self._database, max_size=max_pool_size, role="task")
            if pool is None
            else CallersPool(self._database, pool)
        )
        self._maintenance = SharedConnection(
            self._database, role="maintenance", settings=MAINTENANCE, response_timeout=MAINTENANCE_RESPONSE_TIMEOUT
        )
        # A connection of its own, without a response timeout: a migration step can take long.
        self._migration = SharedConnection(self._database, role="migrate")
        # A connection of its own, so that heartbeats never wait for other statements.
        self._heartbeat_connection = SharedConnection(
            self._database,
            role="heartbeat",
            settings=heartbeat_session(self.settings.heartbeat_timeout),
            response_timeout=self.settings.heartbeat_timeout,
        )
        self._adder = Enqueuer(
            self._connections,
            schema,
            AddOperations(
                self._interceptors,
                self.events,
                clock=(lambda: datetime.now(UTC)) if self.settings.use_client_time else None,
            ),
        )
        self._tasks = tasks
        self._forbidden_flags = checked_flags(forbidden_flags)
        self._crontab = crontab
        self._schedule_cron = schedule_cron
        self._handle_signals = handle_signals
        self._watch = watch
        self._migrate = migrate
        self._services: list[Service] = []
        self._marked: tuple[CronItem, ...] = ()
        """The cron items that tasks declare."""
        self._items: tuple[CronItem, ...] = ()
        """All cron items at the start, unless a function returns them."""
        self._heartbeat: Heartbeat | None = None
        self._pool: WorkerPool | None = None
        self._probe = None if probe is None else self._new_probe(probe)
        self._is_up = threading.Event()
        """Set once the start no longer waits for the database."""
        self._can_abort_start = False
        """Whether a stop aborts the start: `run()` can return then, but `start()` could only raise an error."""
        self._end: Future[_End] = Future()
        self._stop_signals = StopSignals()
        self._is_forced = False

    @property
    def _task_log(self) -> logging.Logger | None:
        return get_logger("tasks", self.logger) if self._log_startup else None

    @property
    def worker_id(self) -> str | None:
        """The id in the `locked_by` of this runner's jobs; None before the start."""
        return None if self._pool is None else self._pool.id

    @property
    def probe_address(self) -> tuple[str, int] | None:
        """The host and port of the probe server; None before the start, and without a probe."""
        return None if self._probe is None else self._probe.address

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self) -> RunResult:
        """Run jobs until a signal or `stop()`; returns when all outcomes are settled.

        If the database cannot be reached at the start, `run` retries; `start` and `run_once` raise an error.
        """
        return self._run(once=False)

    def run_once(self, *, cron: bool = False) -> RunResult:
        """Run jobs until none is ready, without the services of a long-running worker.

        With `cron`, first register the crontab's items and backfill runs missed within their `fill`.
        """
        return self._run(once=True, catch_up=cron)

    def start(self) -> None:
        """Start, and return immediately; then `wait()` or `stop()`. Installs no signal handlers."""
        self._start(once=False)

    def stop(self, reason: str = "stop requested") -> None:
        """Request a graceful stop, from any thread. Does not block; `wait()` returns when the runner has stopped."""
        self._request_end(_End(reason))

    def force(self) -> None:
        """End the grace period of a stop now; running jobs return to the queue."""
        self._is_forced = True  # set before reading _pool; the start sets _pool before it reads this
        if self._pool is not None:
            self._pool.grace_period.force()

    def wait(self) -> RunResult:
        """Wait until a stop is requested, stop gracefully and return the result."""
        return self._stop(self._end.result())

    # -- starting ----------------------------------------------------------------------------------------------------

    def _run(self, *, once: bool, catch_up: bool = False) -> RunResult:
        with Signals(self._on_signal, enabled=self._handle_signals):
            self._can_abort_start = True  # set before the check, so that no stop is missed between the two
            if self._end.done():
                return self._result(self._end.result())
            try:
                self._start(once=once, catch_up=catch_up, waits=not once)
            except GraphileWorkerError:
                if not self._end.done():
                    raise
                return self._result(self._end.result())  # aborted by a stop
            return self.wait()

    def _start(self, *, once: bool, catch_up: bool = False, waits: bool = False) -> None:
        if self._probe is not None:
            self._probe.start()  # before anything that can take long
        try:
            self._start_all(once=once, catch_up=catch_up, waits=waits)
        except BaseException:
            self._close()
            raise
        finally:
            self._is_up.set()

    def _start_all(self, *, once: bool, catch_up: bool, waits: bool) -> None:
        registry, loaded = load_tasks(self._tasks, self.settings, watch=self._watch, log=self._task_log)
        enable_loggers(self.logger)  # a module of the application may have configured logging
        crontab = self._crontab_items(registry)
        if once:
            self._limit_outages()
        self._reach_schema(once=once, waits=waits)
        load_errors = 0 if loaded is None else len(loaded.errors)
        self._report_start(registry, load_errors=load_errors, catch_up=self._schedule_cron and (catch_up or not once))
        scheduler = None if crontab is None else self._new_scheduler(crontab)
        if catch_up and scheduler is not None:
            scheduler.catch_up()
        pool = self._pool = self._new_pool(registry, once=once)
        if self._is_forced:
            pool.grace_period.force()
        self._services = [*self._services_of_every_run(pool, once=once)]
        heartbeat = self._heartbeat = self._new_heartbeat(pool, registry, once=once)
        if not once:
            self._services += [*self._lasting_services(pool, heartbeat), *self._watcher(pool, loaded)]
            self._services += [] if scheduler is None else [scheduler]
            # Before the first claim: a sweep finds the jobs of a dead worker by its heartbeat.
            heartbeat.write()
            if heartbeat.is_delayed:
                pool.wait_for_heartbeat()
            recovery = self.settings if self.settings.recover else None
            self.events.emit(RecoveryConfigured(worker_id=pool.id, recovery=recovery))
        for service in (heartbeat, *pool.services, *self._services):
            service.on_crash = self._on_crash
        self._is_up.set()
        heartbeat.start()
        pool.start()
        for service in self._services:
            service.start()

    def _new_pool(self, registry: TaskRegistry, *, once: bool) -> WorkerPool:
        return WorkerPool(
            database=self._database,
            registry=registry,
            settings=self.settings,
            events=self.events,
            resources=TaskResources(self._adder, self._connections, self.logger),
            interceptors=self._interceptors,
            forbidden_flags=self._forbidden_flags,
            listen_database=self._listen_database,
            end_of_run=self._end_of_run if once else None,
            on_migration=self._write_heartbeat_soon,
        )

    @property
    def _end_of_run(self) -> EndOfRun:
        return EndOfRun(self.stop, on_rejected=lambda error: self._request_end(_End(str(error), exit_code=1)))

    def _report_start(self, registry: TaskRegistry, *, load_errors: int, catch_up: bool) -> None:
        """Emit what this runner works on; with `catch_up`, it schedules cron items."""
        items = self._items if catch_up else ()
        self.events.emit(
            RunnerStarted(
                database=described(self._database.conninfo),
                schema=self._database.schema,
                crontab=str(self._crontab) if isinstance(self._crontab, Path) else None,
                crontab_items=len(items),
                load_errors=load_errors,
                unknown_tasks=sorted({item.task for item in items} - set(registry.identifiers)),
            )
        )

    def _crontab_items(self, registry: TaskRegistry) -> ItemSource | None:
        """Return the cron items: the crontab's, and those that tasks declare with `@cron`."""
        self._marked = registry.cron_items
        given = self._crontab
        if not self._schedule_cron:
            return None
        if callable(given):
            source = given
            return lambda: (*source(), *self._marked)
        written = items_of(given)
        self._items = reject_duplicates((*written, *self._marked))
        if self._watch:
            # Called repeatedly, because reloaded files can declare other items.
            return lambda: (*written, *self._marked)
        return self._items or None

    def _use(self, pool: WorkerPool, registry: TaskRegistry) -> None:
        """Switch to reloaded tasks and the cron items they declare."""
        pool.use_registry(registry)
        try:
            self._marked = registry.cron_items
        except GraphileWorkerError as error:
            self.events.emit(CronItemsRejected(error=error))
        for service in self._services:
            if isinstance(service, Scheduler):
                service.wake()

    def _reach_schema(self, *, once: bool, waits: bool) -> None:
        """Prepare the schema; with `waits`, retry until the database can be reached."""
        tries = 0
        while True:
            try:
                self._prepare_schema(once=once)
                break
            except DatabaseUnavailableError as error:
                delay = reconnect_delay(tries)
                if waits and not tries:
                    self._log.warning("Cannot start yet: %s; retrying, first in %.2f s", error, delay.total_seconds())
                tries += 1
                if not waits or futures.wait([self._end], delay.total_seconds()).done:
                    raise
        if tries:
            self._log.info("Database available after %s attempts; starting", tries + 1)

    def _prepare_schema(self, *, once: bool) -> None:
        with self._maintenance.connection() as connection:
            # Asked once for all statements of a worker: rows do not become visible by waiting.
            worker = RoleKind.WORKER
            state = check(connection, self._database.schema, uses=uses_of_kind(worker), kind=worker)
        if state.hidden:
            raise rows_hidden(state.role, state.hidden, self._database.schema, worker)
        for warning in self._bring_up_to_date(state):
            self._log.warning("%s", warning)
        with self._maintenance.connection() as connection:
            try:
                # `run` waits for a standby to be promoted; `run_once` does not.
                require_rights(connection, self._database.schema, state.role, writes=once)
            except LockTimeoutError:
                self._log.warning(
                    "Another session keeps a table of the queue locked; no job is claimed until it is released "
                    "(gw doctor shows which session that is)"
                )
        self._report_pooler()

    def _bring_up_to_date(self, state: SchemaState) -> Sequence[str]:
        """Migrate the schema if it needs it; return warnings."""
        if self._migrate and (state.problem() is not None or state.has_replaced_functions):
            try:
                return self._migrated()
            except PermissionDeniedError:
                if state.problem() is not None:
                    raise
        state.raise_unless_usable()
        return state.warnings() if self._log_startup else ()

    def _migrated(self) -> Sequence[str]:
        from gw_core.postgres.schema.migrations import migrate as migrate_schema  # late: most starts need none

        try:
            with self._migration.connection() as connection:
                return migrate_schema(connection, self._database.schema).warnings
        finally:
            self._migration.close()

    def _report_pooler(self) -> None:
        mode, settings = self._database.pooling, self.settings
        if mode is not PoolerMode.NONE and self._log_startup:
            listens = settings.listen and (mode is PoolerMode.SESSION or self._listen_database is not None)
            self.events.emit(PoolerDetected(mode=mode, listens=listens, poll_interval=settings.poll_interval))

    # -- services beside the worker threads --------------------------------------------------------------------------

    def _new_probe(self, settings: ProbeSettings) -> Probe:
        from gw_core.maintenance.probe import Probe  # imports asyncio and the metrics client

        return Probe(
            settings,
            events=self.events,
            vitals=lambda: None if self._pool is None else self._pool.vitals,
            poll=self.settings.poll_interval,
            connections=self._maintenance,
            on_crash=self._on_crash,
        )

    def _new_scheduler(self, crontab: ItemSource) -> Scheduler:
        return Scheduler(self._maintenance, crontab, events=self.events, admit=self._interceptors.admit)

    def _services_of_every_run(self, pool: WorkerPool, *, once: bool) -> Iterator[Service]:
        """Yield what renews locks, makes room in history, and writes statistics."""
        yield LockRenewal(
            worker_id=pool.id,
            connection=self._maintenance,
            events=self.events,
            locked=pool.ledger.locked,
            every=self.settings.lock_renewal_interval,
        )
        if pool.keeps or not once:
            expiry = HistoryExpiry(connection=self._maintenance, events=self.events, keeps=lambda: pool.keeps)
            expiry.prepare()
            yield expiry
        if keep := self.settings.statistics:
            yield StatisticsWriter(worker_id=pool.id, connection=self._maintenance, events=self.events, keep=keep)

    def _lasting_services(self, pool: WorkerPool, heartbeat: Heartbeat) -> Iterator[Service]:
        """Yield what only a long-running worker needs."""
        between = self.settings.expired_lock_interval
        yield ExpiredLocks(worker_id=pool.id, connection=self._maintenance, events=self.events, between=between)
        yield GroupCheck(connection=self._maintenance, events=self.events)
        if self.settings.recover:
            yield self._new_sweeper(pool, heartbeat)
        if self.settings.recycles:
            monitor = RecycleMonitor(
                self.settings, ended=lambda: pool.settler.completed + pool.settler.failed, on_limit_reached=self.stop
            )
            if self.settings.max_jobs is not None:
                self.events.on(JobsSettled, lambda event: monitor.wake())
            yield monitor

    def _new_sweeper(self, pool: WorkerPool, heartbeat: Heartbeat) -> Sweeper:
        sweep = Sweep(
            self._maintenance, self.settings, events=self.events, interceptors=self._interceptors, worker_id=pool.id
        )
        return Sweeper(
            sweep,
            self.settings,
            events=self.events,
            every=self.settings.effective_sweep_interval,
            held_up_at=heartbeat.held_up_at,
        )

    def _watcher(self, pool: WorkerPool, loaded: LoadedTasks | None) -> Iterator[Service]:
        """Yield what reloads changed task files, if it is wanted."""
        if self._watch and loaded is not None:
            from gw_core.tasks.reloader import TaskWatcher  # brings a package that is in an extra

            yield TaskWatcher(loaded, lambda tasks: self._use(pool, tasks), self.events)

    def _new_heartbeat(self, pool: WorkerPool, registry: TaskRegistry, *, once: bool) -> Heartbeat:
        self.events.on(HeartbeatLate, lambda event: self._stop_lost_runs_soon(pool))
        # Notifications may have been missed while there was no connection.
        self.events.on(PoolConnectionRestored, lambda event: self._write_heartbeat_soon())
        pool.timeouts.on_overruns = self._write_heartbeat_soon
        settings = self.settings
        return Heartbeat(
            worker_id=pool.id,
            connection=self._heartbeat_connection,
            events=self.events,
            settings=settings,
            metadata=lambda: {
                "tasks": registry.identifiers,
                "concurrency": settings.concurrency,
                "recovery": settings.recover,
                "statistics": bool(settings.statistics),
                "lease_seconds": settings.lease.total_seconds(),
                "overruns": pool.timeouts.overruns[:MAX_REPORTED_OVERRUNS],
            },
            # A long single run needs heartbeats too, or a sweep recovers its jobs; most end before the first.
            first_after=settings.effective_heartbeat_interval if once else timedelta(0),
            needs_ping=pool.notifications.needs_ping if settings.listen else lambda: False,
            on_ping_sent=pool.expect_ping,
            on_cancel_request=pool.claimer.on_cancel_request,
            on_claim_rules=pool.claimer.on_claim_rules,
            on_written=pool.renew_lease,
            on_breaking_migration=self._on_breaking_migration,
        )

    def _write_heartbeat_soon(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.check_soon()

    def _stop_lost_runs_soon(self, pool: WorkerPool) -> None:
        # In its own thread: it reads the jobs table, and the heartbeat thread must never wait for that.
        threading.Thread(target=self._stop_lost_runs, args=(pool,), name="gw-stop-lost", daemon=True).start()

    def _stop_lost_runs(self, pool: WorkerPool) -> None:
        """After a late heartbeat, stop the tasks whose jobs a sweep recovered."""
        locked = pool.ledger.locked()
        try:
            with self._maintenance.connection() as connection:
                ours = JobStore(connection, self._database.schema).renew_locks(
                    locked.jobs, worker_id=pool.id, queues=locked.queues
                )
        except GraphileWorkerError as error:
            self.events.emit(MaintenanceFailed(service="gw-heartbeat", error=error))
            return
        pool.stop_lost([job for job in locked.jobs if job.id not in ours])

    def _limit_outages(self) -> None:
        """End `run_once` if it cannot reach its database for too long."""
        waiting: dict[str, threading.Timer] = {}

        def lost(event: PoolConnectionLost) -> None:
            timer = waiting[event.operation] = threading.Timer(MAX_OUTAGE.total_seconds(), self._give_up, (event,))
            timer.daemon = True
            timer.start()

        def restored(event: PoolConnectionRestored) -> None:
            waiting.pop(event.operation).cancel()

        def ended(event: RunnerStopped) -> None:
            for timer in list(waiting.values()):
                timer.cancel()

        self.events.on(PoolConnectionLost, lost)
        self.events.on(PoolConnectionRestored, restored)
        self.events.on(RunnerStopped, ended)

    def _give_up(self, event: PoolConnectionLost) -> None:
        reason = f"cannot {event.operation} for {MAX_OUTAGE.total_seconds():g} s: {event.error}"
        self._log.error("Giving up: %s", reason)
        self._request_end(_End(reason, exit_code=UNAVAILABLE_EXIT_CODE))

    # -- ending ------------------------------------------------------------------------------------------------------

    def _request_end(self, end: _End) -> None:
        with suppress(InvalidStateError):  # the first reason counts
            self._end.set_result(end)
        if self._can_abort_start and not self._is_up.is_set():
            threading.Thread(target=self._abort_start, name="gw-abort-start", daemon=True).start()

    def _stop(self, end: _End) -> RunResult:
        pool = self._pool
        assert pool is not None  # noqa: S101 - waited for, so started
        for service in self._services:
            if not service.stops_after_jobs:
                service.request_stop()
        pool.stop(end.reason)
        # No job is running now, so an unresponsive server must not use up the grace period.
        until = time.monotonic() + MAX_EXIT_DELAY.total_seconds()

        def time_left(beyond: timedelta) -> timedelta:
            return min(pool.grace_period.time_left(beyond), timedelta(seconds=max(0.0, until - time.monotonic())))

        for service in self._services:
            service.request_stop()
        for service in self._services:
            service.join_until(lambda: time_left(SERVICES_EXIT_DELAY))
        if self._heartbeat is not None:
            # With its heartbeat row, a sweep finds what stays locked.
            is_graceful = not pool.may_hold_locks
            self._heartbeat.end(is_graceful=is_graceful, time_left=lambda: time_left(HEARTBEAT_EXIT_DELAY))
        self._close()
        self.events.emit(RunnerStopped(reason=end.reason))
        return self._result(end)

    def _result(self, end: _End) -> RunResult:
        settler = None if self._pool is None else self._pool.settler
        completed, failed = (0, 0) if settler is None else (settler.completed, settler.failed)
        exit_code = end.exit_code or int(self.settings.strict and failed > 0)
        return RunResult(completed=completed, failed=failed, reason=end.reason, exit_code=exit_code, signal=end.signal)

    def _close(self) -> None:
        if self._probe is not None:
            self._probe.stop()
        self._connections.close(timeout=CLOSE_TIMEOUT)
        # A service that waits for a statement keeps its connection until the process exits.
        for connection in (self._maintenance, self._migration, self._heartbeat_connection):
            connection.close(timeout=CLOSE_TIMEOUT)
        self._database.close()
        if self._listen_database is not None:
            self._listen_database.close()

    def _on_signal(self, name: str) -> None:
        received = self._stop_signals.receive(name, time.monotonic())
        self.events.emit(received)
        if received.forced:
            self.force()
        self._request_end(_End(f"received {name}", signal=name))

    def _abort_start(self) -> None:
        """Abort a start that waits for the database, so that the process can exit.

        The server would finish the current migration step before it notices the disconnect, so the step is cancelled.
        """
        deadline = time.monotonic() + SERVICES_EXIT_DELAY.total_seconds()
        while not self._is_up.wait(CLOSE_TIMEOUT.total_seconds()):
            self._maintenance.abort()
            self._heartbeat_connection.abort()
            if not self._migration.cancel() or time.monotonic() > deadline:
                self._migration.abort()

    def _on_breaking_migration(self, revision: int) -> None:
        self._request_end(_End(f"schema revision {revision} is breaking", exit_code=BREAKING_MIGRATION_EXIT_CODE))

    def _on_crash(self, thread: str, error: BaseException) -> None:
        self._log.error("Thread %s ended by %s: %s", thread, type(error).__name__, error, exc_info=error)
        self.events.emit(WorkerCrashed(worker_id=self.worker_id, thread=thread, error=error))
        self._request_end(_End(f"thread {thread} ended by {type(error).__name__}", exit_code=1))


class RunnerOptions(TypedDict, total=False):
    """The options of `Runner`, for `run` and `run_once`."""

    settings: WorkerSettings | None
    schema: str
    forbidden_flags: ForbiddenFlags
    events: Events | None
    logger: logging.Logger | None
    plugins: Sequence[Plugin]
    crontab: Crontab
    schedule_cron: bool
    prepared_statements: bool
    handle_signals: bool
    watch: bool
    max_pool_size: int
    migrate: bool
    listen_conninfo: str | None
    pg_bin: Path | None
    log_startup: bool
    probe: ProbeSettings | None
    password: Callable[[], str] | None
    pool: AnyPool | None


def run(conninfo: str | None = None, *, tasks: Tasks, **options: Unpack[RunnerOptions]) -> RunResult:
    """Run jobs until a signal; the options are those of `Runner`."""
    return Runner(conninfo, tasks=tasks, **options).run()


def run_once(conninfo: str | None = None, *, tasks: Tasks, **options: Unpack[RunnerOptions]) -> RunResult:
    """Run jobs until none is ready; the options are those of `Runner`."""
    return Runner(conninfo, tasks=tasks, **options).run_once()
