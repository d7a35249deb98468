"""The life of a runner: start the worker and its services, handle signals, stop gracefully."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from gw_core.domain.errors import GraphileWorkerError, PermissionDeniedError
from gw_core.domain.reports.health import ProbeSettings
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    PoolConnectionLost,
    PoolConnectionRestored,
    RecoveryConfigured,
    RunnerStarted,
    RunnerStopped,
    WorkerCrashed,
)
from gw_core.domain.rules.plugins import Interceptors, Plugin
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.domain.rules.stop_signals import StopSignals
from gw_core.execution.context import TaskResources
from gw_core.maintenance.heartbeat import Heartbeat
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, described
from gw_core.postgres.road.enqueue import AddOperations, Enqueuer
from gw_core.runner.connections import RunnerConnections
from gw_core.runner.cron_items import CronItems
from gw_core.runner.hooks import Hooks
from gw_core.runner.late_modules import load_late_modules
from gw_core.runner.outages import limit_outages
from gw_core.runner.program_loop import AsyncLifetime, RunnerLoop
from gw_core.runner.run_inputs import Crontab, Tasks, check_only, checked_flags, load_tasks
from gw_core.runner.run_result import RunResult
from gw_core.runner.schema_preparation import SchemaPreparation
from gw_core.runner.services import Services
from gw_core.runtime.log_messages import JobLog
from gw_core.runtime.loggers import enable_loggers, get_logger
from gw_core.runtime.service import Service
from gw_core.runtime.signals import Signals
from gw_core.runtime.thread_calls import started
from gw_core.tasks.loading import LoadedTasks
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.claim_policy import ForbiddenFlags
from gw_core.worker.pool import WorkerPool
from gw_core.worker.single_run import EndOfRun

if TYPE_CHECKING:
    import asyncio

    from gw_core.maintenance.probe import Probe
    from gw_core.postgres.connection.connections import AnyPool

BREAKING_MIGRATION_EXIT_CODE: Final = 57
"""Graphile Worker's exit code for a schema change that this version does not support."""

UNAVAILABLE_EXIT_CODE: Final = 3
"""The exit code of every command that cannot reach its database."""

DENIED_EXIT_CODE: Final = 4
"""The exit code of every command whose role lacks a right."""

MAX_OUTAGE: Final = timedelta(minutes=1)
"""How long `run_once` waits for its database; `run` waits without a limit."""

SERVICES_EXIT_DELAY: Final = timedelta(seconds=0.8)
HEARTBEAT_EXIT_DELAY: Final = timedelta(seconds=0.9)
"""How long after the grace period they may still wait for the database; the process exits within a second of it."""

MAX_EXIT_DELAY: Final = timedelta(seconds=3)


class _End(msgspec.Struct, frozen=True):
    """Why the run ends; the first reason wins."""

    reason: str
    exit_code: int = 0
    signal: str | None = None


class Runner(AsyncLifetime):
    """Runs jobs until stopped. Use `run()`, or `start()` and `wait()`, or `run_once()`; one runner runs once.

    `tasks` is a registry or a folder. `crontab` is the text of a crontab, a file (`Path`), items, or a function that is
    called repeatedly and returns items. `handle_signals` works in the main thread only. The conninfo is found as in
    `Client`. With `migrate`, the schema is installed or upgraded at the start. `probe` configures the HTTP server for
    health checks and metrics. Without `log_startup`, startup messages have the level debug. `password` is called for
    each new connection. Tasks use the connections of `pool`, if given; the worker opens its own beside it. Without
    `schedule_cron`, the runner adds no recurring jobs: of several shards, one adds them.

    On an event loop, use `async with Runner(…)`: the runner starts, its async tasks run on this loop, and at the end
    of the block it stops gracefully. `event_loop` names another loop for them. Without either, they run on a loop of
    gw's own.

    Example: docs/api/index.md
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
        event_loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(RunnerLoop(event_loop))
        self.events = events or Events()
        self.settings = settings or WorkerSettings()
        self.logger = get_logger(base=logger)
        self._log = get_logger("core", self.logger)
        self._log_startup = log_startup
        JobLog(self.logger, log_startup=log_startup).attach(self.events)
        self._interceptors = Interceptors.attached(plugins, self.events)
        self._hooks = Hooks(plugins, self._loop, self._log)
        self._connections = RunnerConnections(
            conninfo,
            schema=schema,
            prepared_statements=prepared_statements,
            max_pool_size=max_pool_size,
            heartbeat_timeout=self.settings.heartbeat_timeout,
            listen_conninfo=listen_conninfo,
            pg_bin=pg_bin,
            password=password,
            pool=pool,
        )
        clock = (lambda: datetime.now(UTC)) if self.settings.use_client_time else None
        adds = AddOperations(self._interceptors, self.events, clock=clock)
        self._adder = Enqueuer(self._connections.tasks, schema, adds)
        self._tasks = tasks
        self._forbidden_flags = checked_flags(forbidden_flags)
        self._cron = CronItems(crontab, self.events, self.logger, is_scheduled=schedule_cron, reloads=watch)
        self._handle_signals = handle_signals
        self._watch = watch
        self._schema = SchemaPreparation(
            self._connections, self.settings, self.events, self._log, migrate=migrate, log_startup=log_startup
        )
        self._services: list[Service] = []
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
        self._loop.check_wait("run")
        return self._run(once=False)

    def run_once(self, *, cron: bool = False) -> RunResult:
        """Run jobs until none is ready, without the services of a long-running worker.

        With `cron`, first register the crontab's items and backfill runs missed within their `fill`.
        """
        result = self._run(once=True, catch_up=cron)
        is_recorded = self._pool is None or not self._pool.settler.unsettled
        return result if is_recorded or result.exit_code else replace(result, exit_code=1)

    def start(self) -> None:
        """Start, and return immediately; then `wait()` or `stop()`. Installs no signal handlers.

        Raises `InvalidSettingError` in a program with an event loop that did not give it to the async tasks.
        """
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
        """Wait until a stop is requested, stop gracefully and return the result. On a loop, use `wait_async()`."""
        self._loop.check_wait("wait")
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
            self._loop.check_start()
            self._start_all(once=once, catch_up=catch_up, waits=waits)
        except BaseException:
            self._hooks.close()
            self._close()
            raise
        finally:
            self._is_up.set()

    def _start_all(self, *, once: bool, catch_up: bool, waits: bool) -> None:
        registry, loaded = load_tasks(self._tasks, self.settings, watch=self._watch, log=self._task_log)
        check_only(self.settings.only, registry)
        if not once:
            self._loop.check_tasks(registry)
        enable_loggers(self.logger)  # a module of the application may have configured logging
        self._cron.read(registry)
        if once:
            limit_outages(self.events, MAX_OUTAGE, self._give_up)
        self._schema.reach(once=once, waits=waits, end=self._end if self._can_abort_start else None)
        load_errors = 0 if loaded is None else len(loaded.errors)
        schedules = self._cron.is_scheduled and (catch_up or not once)
        self._report_start(registry, load_errors=load_errors, schedules=schedules)
        self._hooks.open()
        scheduler = self._cron.scheduler(self._connections.maintenance, self._interceptors)
        if catch_up and scheduler is not None:
            scheduler.catch_up()
        pool = self._pool = self._new_pool(registry, once=once)
        if self._is_forced:
            pool.grace_period.force()
        services = Services(pool, self._connections, self.settings, self.events, self._interceptors)
        self._services = [*services.of_every_run(once=once), *self._hooks.services]
        heartbeat = self._heartbeat = self._new_heartbeat(services, pool, registry, once=once)
        if not once:
            self._services += [
                *services.of_lasting_run(heartbeat, on_limit_reached=self.stop),
                *self._watcher(pool, loaded),
                *([] if scheduler is None else [scheduler]),
            ]
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
        if not once:
            started("gw-late-modules", self._load_late_modules)

    def _load_late_modules(self) -> None:
        """Load them a second after the start, because the first jobs come first."""
        with suppress(TimeoutError):
            self._end.result(timeout=1)
        load_late_modules()

    def _new_pool(self, registry: TaskRegistry, *, once: bool) -> WorkerPool:
        return WorkerPool(
            database=self._connections.database,
            registry=registry,
            settings=self.settings,
            events=self.events,
            resources=TaskResources(self._adder, self._connections.tasks, self.logger, loop=self._loop.tasks),
            interceptors=self._interceptors,
            forbidden_flags=self._forbidden_flags,
            listen_database=self._connections.listen_database,
            end_of_run=self._end_of_run if once else None,
            on_migration=self._write_heartbeat_soon,
        )

    @property
    def _end_of_run(self) -> EndOfRun:
        return EndOfRun(self.stop, on_rejected=lambda error: self._request_end(_End(str(error), exit_code=1)))

    def _report_start(self, registry: TaskRegistry, *, load_errors: int, schedules: bool) -> None:
        """Emit what this runner works on."""
        items = self._cron.known if schedules else ()
        database = self._connections.database
        self.events.emit(
            RunnerStarted(
                database=described(database.conninfo),
                schema=database.schema,
                crontab=self._cron.file,
                crontab_items=len(items),
                load_errors=load_errors,
                unknown_tasks=sorted({item.task for item in items} - set(registry.identifiers)),
            )
        )

    def _use(self, pool: WorkerPool, registry: TaskRegistry) -> None:
        """Switch to reloaded tasks and the cron items they declare."""
        pool.use_registry(registry)
        self._cron.reload(registry)

    # -- services beside the worker threads --------------------------------------------------------------------------

    def _new_probe(self, settings: ProbeSettings) -> Probe:
        from gw_core.maintenance.probe import Probe  # imports asyncio and the metrics client

        return Probe(
            settings,
            events=self.events,
            vitals=lambda: None if self._pool is None else self._pool.vitals,
            poll=self.settings.poll_interval,
            connections=self._connections.maintenance,
            on_crash=self._on_crash,
        )

    def _watcher(self, pool: WorkerPool, loaded: LoadedTasks | None) -> Iterator[Service]:
        """Yield what reloads changed task files, if it is wanted."""
        if self._watch and loaded is not None:
            from gw_core.tasks.reloader import TaskWatcher  # brings a package that is in an extra

            yield TaskWatcher(loaded, lambda tasks: self._use(pool, tasks), self.events)

    def _new_heartbeat(self, services: Services, pool: WorkerPool, registry: TaskRegistry, *, once: bool) -> Heartbeat:
        # Notifications may have been missed while there was no connection.
        self.events.on(PoolConnectionRestored, lambda event: self._write_heartbeat_soon())
        pool.timeouts.on_overruns = self._write_heartbeat_soon
        heartbeat = services.heartbeat(registry, once=once, on_breaking_migration=self._on_breaking_migration)
        pool.on_new_session = heartbeat.renew_session
        return heartbeat

    def _write_heartbeat_soon(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.check_soon()

    def _give_up(self, event: PoolConnectionLost) -> None:
        is_denied = isinstance(event.error, PermissionDeniedError)
        lasting = "" if is_denied else f" for {MAX_OUTAGE.total_seconds():g} s"
        reason = f"cannot {event.operation}{lasting}: {event.error}"
        self._log.error("Giving up: %s", reason)
        self._request_end(_End(reason, exit_code=DENIED_EXIT_CODE if is_denied else UNAVAILABLE_EXIT_CODE))

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
        self._connections.close()

    def _on_signal(self, name: str) -> None:
        received = self._stop_signals.receive(name, time.monotonic())
        self.events.emit(received)
        if received.forced:
            self.force()
        self._request_end(_End(f"received {name}", signal=name))

    def _abort_start(self) -> None:
        """Abort a start that waits for the database, so that the process can exit."""
        self._connections.abort(until=self._is_up, cancel_for=SERVICES_EXIT_DELAY)

    def _on_breaking_migration(self, revision: int) -> None:
        self._request_end(_End(f"schema revision {revision} is breaking", exit_code=BREAKING_MIGRATION_EXIT_CODE))

    def _on_crash(self, thread: str, error: BaseException) -> None:
        self._log.error("Thread %s ended by %s: %s", thread, type(error).__name__, error, exc_info=error)
        self.events.emit(WorkerCrashed(worker_id=self.worker_id, thread=thread, error=error))
        self._request_end(_End(f"thread {thread} ended by {type(error).__name__}", exit_code=1))


class RunnerOptions(TypedDict, total=False):
    """The options of `Runner`, for `run` and `run_once`.

    Example: docs/api/types.md
    """

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
    event_loop: asyncio.AbstractEventLoop | None


def run(conninfo: str | None = None, *, tasks: Tasks, **options: Unpack[RunnerOptions]) -> RunResult:
    """Run jobs until a signal; the options are those of `Runner`.

    Example: docs/api/types.md
    """
    return Runner(conninfo, tasks=tasks, **options).run()


def run_once(conninfo: str | None = None, *, tasks: Tasks, **options: Unpack[RunnerOptions]) -> RunResult:
    """Run jobs until none is ready; the options are those of `Runner`.

    Example: docs/api/index.md
    """
    return Runner(conninfo, tasks=tasks, **options).run_once()
