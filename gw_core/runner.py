"""The runner: a pool, the services that keep the queue healthy, and the signals that end them, as one."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gw_core.domain.cron_item import CronItem
from gw_core.domain.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    LockTimeoutError,
)
from gw_core.domain.events import (
    Events,
    HeartbeatLate,
    MaintenanceFailed,
    PoolConnectionLost,
    PoolConnectionRestored,
    PoolerDetected,
    RecoveryConfigured,
    RunnerStopped,
    SignalReceived,
)
from gw_core.domain.health import ProbeSettings
from gw_core.domain.plugins import Interceptors, Plugin
from gw_core.domain.schedule_events import CronItemsRejected
from gw_core.domain.settings import PoolerMode, WorkerSettings
from gw_core.execution.context import TaskResources
from gw_core.log import JobLog, Logger
from gw_core.maintenance.cron_scheduler import ItemSource, Scheduler
from gw_core.maintenance.heartbeat import (
    ANSWER_WITHIN as HEARTBEAT_ANSWER_WITHIN,
    SESSION as HEARTBEAT_SESSION,
    Heartbeat,
)
from gw_core.postgres.connections import ConnectionPool, SharedConnection
from gw_core.postgres.database import DEFAULT_SCHEMA, Database, find_conninfo
from gw_core.postgres.enqueue import Enqueuer
from gw_core.postgres.job_store import JobStore
from gw_core.postgres.migrations import migrate as migrate_schema
from gw_core.postgres.permissions import require_rights, require_visible_jobs
from gw_core.postgres.schema_state import check
from gw_core.service import Service
from gw_core.services import Crontab, ServiceFactory, Tasks, checked_flags, items_of, load_tasks, marked_items
from gw_core.signals import Signals
from gw_core.tasks.loading import LoadedTasks
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.claimer import ForbiddenFlags
from gw_core.worker.pool import WorkerPool
from gw_core.worker.settler import reconnect_delay

if TYPE_CHECKING:
    pass

BREAKING_MIGRATION_EXIT_CODE: Final = 57
"""The ancestor's: the schema was changed in a way this version does not know."""

UNAVAILABLE_EXIT_CODE: Final = 3
"""That of every command whose database cannot be reached."""

LONGEST_OUTAGE: Final = timedelta(minutes=1)
"""How long a single run waits for its database; one that is to last waits for as long as it takes."""

END_OF_SERVICES: Final = timedelta(seconds=0.8)
END_OF_HEARTBEAT: Final = timedelta(seconds=0.9)
"""How long after the grace period these may still wait for the database: the process ends within a second of it."""

LONGEST_FAREWELL: Final = timedelta(seconds=3)
A_MOMENT: Final = timedelta(seconds=0.05)

LONGEST_SILENCE: Final = timedelta(seconds=60)
"""How long the server may take over a statement that keeps the queue healthy."""

MAINTENANCE: Final = {"lock_timeout": "10s"}
"""What the connection for maintenance is set to: recurring tasks, sweeps and lock renewal take turns on it, and none
of them may wait long for a table that another session keeps locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended."""

    completed: int
    """Jobs completed."""
    failed: int
    """Attempts that failed."""
    reason: str
    exit_code: int
    """0, or 1 after failures with `strict` or an internal error, or 57 after a breaking migration.

    Or 3 when a single run gave up, because it could not reach its database for a minute.
    """
    signal: str | None = None
    """The name of the signal that ended the run, such as SIGTERM."""


@dataclass(frozen=True, slots=True)
class _End:
    """Why the run shall end; the first one counts."""

    reason: str
    exit_code: int = 0
    signal: str | None = None


class Runner:
    """Runs jobs until stopped. Use `run()`, or `start()` and `wait()`, or `run_once()`; one runner runs once.

    `tasks` is a registry or a folder. `crontab` is the text of a crontab, a file (`Path`), items, or a function that is
    asked for items again and again. `handle_signals` takes effect in the main thread only. The conninfo is found as by
    `Client`. With `migrate` the schema is installed or brought up to date at the start. `probe` says where probes and
    scrapes are answered over HTTP. Without `log_startup` what is run is told only to those who look for a fault.
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
        logger: Logger | None = None,
        plugins: Sequence[Plugin] = (),
        crontab: Crontab = None,
        prepared_statements: bool = True,
        handle_signals: bool = True,
        watch: bool = False,
        max_pool_size: int = 10,
        migrate: bool = True,
        listen_conninfo: str | None = None,
        pg_bin: Path | None = None,
        log_startup: bool = True,
        probe: ProbeSettings | None = None,
    ) -> None:
        self.events = events or Events()
        self.settings = settings or WorkerSettings()
        self.logger = logger or Logger()
        self._log_startup = log_startup
        JobLog(self.logger, log_startup=log_startup).attach(self.events)
        for plugin in plugins:
            plugin.attach(self.events)
        self._database = Database(
            find_conninfo(conninfo),
            schema=schema,
            prepared_statements=prepared_statements,
            pg_bin=pg_bin,
            notice_pooler=True,
        )
        self._listen_database = (
            None if listen_conninfo is None else Database(listen_conninfo, schema=schema, notice_pooler=True)
        )
        self._interceptors = Interceptors(plugins)
        self._connections = ConnectionPool(self._database, max_size=max_pool_size, role="task")
        self._maintenance = SharedConnection(
            self._database, role="maintenance", settings=MAINTENANCE, response_timeout=LONGEST_SILENCE
        )
        # Of its own and patient: a step may take as long as it takes.
        self._migration = SharedConnection(self._database, role="migrate")
        # Of its own, so that a worker that lives is seen to live, whatever other statements wait for.
        self._heartbeat_connection = SharedConnection(
            self._database, role="heartbeat", settings=HEARTBEAT_SESSION, response_timeout=HEARTBEAT_ANSWER_WITHIN
        )
        self._adder = Enqueuer(
            self._connections,
            schema,
            self._interceptors,
            self.events,
            clock=(lambda: datetime.now(UTC)) if self.settings.use_client_time else None,
        )
        self._tasks = tasks
        self._forbidden_flags = checked_flags(forbidden_flags)
        self._crontab = crontab
        self._handle_signals = handle_signals
        self._watch = watch
        self._migrate = migrate
        self._services: list[Service] = []
        self._marked: tuple[CronItem, ...] = ()
        self._heartbeat: Heartbeat | None = None
        self._pool: WorkerPool | None = None
        self._factory = ServiceFactory(
            settings=self.settings,
            events=self.events,
            interceptors=self._interceptors,
            maintenance=self._maintenance,
            heartbeat_connection=self._heartbeat_connection,
            schema=schema,
            on_crash=self._on_crash,
        )
        self._probe = None
        if probe is not None:
            self._probe = self._factory.probe(probe, vitals=lambda: None if self._pool is None else self._pool.vitals)
        self._ending = threading.Event()
        self._is_up = threading.Event()
        """Set when the start waits for the database no more, or is over."""
        self._can_break_off = False
        """Whether a stop breaks off the start: `run()` returns then, where `start()` could only raise."""
        self._end_lock = threading.Lock()  # guards _end: the first reason counts
        self._end: _End | None = None
        self._has_heard_signal = False
        self._is_forced = False

    @property
    def _task_log(self) -> Logger | None:
        return self.logger.scope(label="tasks") if self._log_startup else None

    @property
    def worker_id(self) -> str | None:
        """The id under which this runner locks jobs; None before the start."""
        return None if self._pool is None else self._pool.id

    @property
    def probe_address(self) -> tuple[str, int] | None:
        """The host and port on which probes are answered; None before the start, and without a probe."""
        return None if self._probe is None else self._probe.address

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self) -> RunResult:
        """Run jobs until a signal or `stop()`; returns when everything is settled.

        A database that cannot be reached at the start is waited for, as it is later; `start` and `run_once` raise.
        """
        return self._run(once=False)

    def run_once(self, *, cron: bool = False) -> RunResult:
        """Run jobs until none is left that can run now, without the services of a lasting worker.

        With `cron` the crontab's items are made known first, and runs missed within their `fill` are added and run.
        """
        return self._run(once=True, catch_up=cron)

    def start(self) -> None:
        """Start and return at once; then `wait()` for the end or `stop()`. Installs no signal handlers."""
        self._start(once=False)

    def stop(self, reason: str = "asked to stop") -> None:
        """Ask for an orderly stop; returns at once, from any thread. `wait()` returns when it is done."""
        self._ask_to_end(_End(reason))

    def force(self) -> None:
        """End the grace period of a stop now: what still runs is given back."""
        self._is_forced = True  # before the pool is looked for, which is made before this is looked at
        if self._pool is not None:
            self._pool.force()

    def wait(self) -> RunResult:
        """Wait until somebody asks for the end, then stop in order and say how the run went."""
        self._ending.wait()
        return self._stop(self._first_end())

    # -- starting ----------------------------------------------------------------------------------------------------

    def _run(self, *, once: bool, catch_up: bool = False) -> RunResult:
        with Signals(self._on_signal, enabled=self._handle_signals):
            self._can_break_off = True  # before the look, so that no stop falls between the two
            if self._ending.is_set():
                return self._result(self._first_end())
            try:
                self._start(once=once, catch_up=catch_up, waits=not once)
            except GraphileWorkerError:
                if not self._ending.is_set():
                    raise
                return self._result(self._first_end())  # broken off, because somebody asked for the end
            return self.wait()

    def _start(self, *, once: bool, catch_up: bool = False, waits: bool = False) -> None:
        if self._probe is not None:
            self._probe.start()  # before anything that may take its time
        try:
            self._start_all(once=once, catch_up=catch_up, waits=waits)
        except BaseException:
            self._close()
            raise
        finally:
            self._is_up.set()

    def _start_all(self, *, once: bool, catch_up: bool, waits: bool) -> None:
        loaded = load_tasks(self._tasks, self.settings, watch=self._watch, log=self._task_log)
        registry = loaded.registry if isinstance(loaded, LoadedTasks) else loaded
        crontab = self._crontab_items(loaded)
        if once:
            self._limit_outages()
        self._reach_schema(once=once, waits=waits)
        scheduler = None if crontab is None else self._factory.scheduler(crontab)
        if catch_up and scheduler is not None:
            scheduler.catch_up()
        pool = self._pool = self._new_pool(registry, once=once)
        if self._is_forced:
            pool.force()
        self._services = [self._factory.lock_renewal(pool)]
        self._heartbeat = self._new_heartbeat(pool, registry, once=once)
        if not once:
            self._services += self._lasting_services(pool, loaded, scheduler)
            # Before the first claim: whoever holds a lock is known.
            self._heartbeat.beat()
            recovery = self.settings.recovery if self.settings.recover else None
            self.events.emit(RecoveryConfigured(worker_id=pool.id, recovery=recovery))
        self._is_up.set()
        self._heartbeat.start()
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
            once=once,
            listen_database=self._listen_database,
            on_ended=self.stop,
            on_refused=lambda error: self._ask_to_end(_End(str(error), exit_code=1)),
            on_migration=self._check_revision,
            on_crash=self._on_crash,
        )

    def _crontab_items(self, loaded: LoadedTasks | TaskRegistry) -> ItemSource | None:
        """Return what shall recur: the crontab given, and what tasks say of themselves with `@cron`."""
        from gw_core.domain.cron_item import refuse_duplicates

        self._marked = marked_items(loaded.registry if isinstance(loaded, LoadedTasks) else loaded)
        given = self._crontab
        if callable(given):
            source = given
            return lambda: (*source(), *self._marked)
        written = items_of(given)
        items = refuse_duplicates((*written, *self._marked))
        if self._watch:
            # Asked again and again, for the marks of changed files; also when there are none yet.
            return lambda: (*written, *self._marked)
        return items or None

    def _use(self, pool: WorkerPool, registry: TaskRegistry) -> None:
        """Go on with tasks that were read again, and with what they say of their schedules."""
        pool.use_and_look(registry)
        try:
            self._marked = marked_items(registry)
        except GraphileWorkerError as error:
            self.events.emit(CronItemsRejected(error=error))
        for service in self._services:
            if isinstance(service, Scheduler):
                service.wake()

    def _reach_schema(self, *, once: bool, waits: bool) -> None:
        """Prepare the schema; with `waits` try again for as long as the database cannot be reached."""
        tries = 0
        while True:
            try:
                self._prepare_schema(once=once)
                break
            except DatabaseUnavailableError as error:
                delay = reconnect_delay(tries)
                if waits and not tries:
                    self.logger.scope(label="core").warning(
                        f"Cannot start yet: {error}; trying again, first in {delay.total_seconds():.2f} s"
                    )
                tries += 1
                if not waits or self._ending.wait(delay.total_seconds()):
                    raise
        if tries:
            self.logger.scope(label="core").info(f"The database answers after {tries + 1} tries; starting")

    def _prepare_schema(self, *, once: bool) -> None:
        with self._maintenance.connection() as connection:
            state = check(connection, self._database.schema)
            # A role that sees no row of the ledgers would take the schema for one that is behind.
            require_visible_jobs(connection, self._database.schema)
        if self._migrate and state.problem() is not None:
            with self._migration.connection() as connection:
                warnings = migrate_schema(connection, self._database.schema).warnings
            self._migration.close()
        else:
            state.raise_unless_usable()
            warnings = state.warnings() if self._log_startup else ()
        for warning in warnings:
            self.logger.scope(label="core").warning(warning)
        with self._maintenance.connection() as connection:
            try:
                # A lasting worker waits for a standby to be promoted; a single run has nothing to wait for.
                require_rights(connection, self._database.schema, writes=once)
            except LockTimeoutError:
                self.logger.scope(label="core").warning(
                    "Another session keeps a table of the queue locked; no job is claimed until it is released "
                    "(gw doctor shows which session that is)"
                )
        self._tell_pooler()

    def _tell_pooler(self) -> None:
        mode, settings = self._database.pooling, self.settings
        if mode is not PoolerMode.NONE and self._log_startup:
            listens = settings.listen and (mode is PoolerMode.SESSION or self._listen_database is not None)
            self.events.emit(PoolerDetected(mode=mode, listens=listens, poll_interval=settings.poll_interval))

    def _lasting_services(
        self, pool: WorkerPool, loaded: LoadedTasks | TaskRegistry, scheduler: Scheduler | None
    ) -> list[Service]:
        services: list[Service] = [self._factory.expired_locks(pool)]
        if self.settings.recover:
            assert self._heartbeat is not None  # noqa: S101 - made before the services
            services.append(self._factory.sweeper(pool, self._heartbeat))
        if self.settings.recycle_limits:
            services.append(self._factory.recycle_monitor(pool, self.stop))
        if scheduler is not None:
            services.append(scheduler)
        if self._watch and isinstance(loaded, LoadedTasks):
            from gw_core.tasks.reloader import TaskWatcher  # brings a package that is in an extra

            services.append(
                TaskWatcher(loaded, lambda tasks: self._use(pool, tasks), self.events, on_crash=self._on_crash)
            )
        return services

    def _new_heartbeat(self, pool: WorkerPool, registry: TaskRegistry, *, once: bool) -> Heartbeat:
        self.events.on(HeartbeatLate, lambda event: self._stop_lost_runs_soon(pool))
        # Notifications may have been missed while there was no connection.
        self.events.on(PoolConnectionRestored, lambda event: self._check_revision())
        return self._factory.heartbeat(pool, registry, once=once, on_breaking_migration=self._on_breaking_migration)

    def _check_revision(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.check_soon()

    def _stop_lost_runs_soon(self, pool: WorkerPool) -> None:
        # In a thread of its own: it reads the jobs table, which the thread of the heartbeat must never wait for.
        threading.Thread(target=self._stop_lost_runs, args=(pool,), name="gw-stop-lost", daemon=True).start()

    def _stop_lost_runs(self, pool: WorkerPool) -> None:
        """After a long silence, tell tasks whose jobs were taken away: nothing they still do will count."""
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
        """End a single run that cannot reach its database for too long."""
        waiting: dict[str, threading.Timer] = {}

        def lost(event: PoolConnectionLost) -> None:
            timer = waiting[event.operation] = threading.Timer(LONGEST_OUTAGE.total_seconds(), self._give_up, (event,))
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
        reason = f"cannot {event.operation} for {LONGEST_OUTAGE.total_seconds():g} s: {event.error}"
        self.logger.scope(label="core").error(f"Giving up: {reason}")
        self._ask_to_end(_End(reason, exit_code=UNAVAILABLE_EXIT_CODE))

    # -- ending ------------------------------------------------------------------------------------------------------

    def _ask_to_end(self, end: _End) -> None:
        with self._end_lock:
            if self._end is None:
                self._end = end
        self._ending.set()
        if self._can_break_off and not self._is_up.is_set():
            threading.Thread(target=self._break_off_start, name="gw-break-off", daemon=True).start()

    def _first_end(self) -> _End:
        end = self._end
        assert end is not None  # noqa: S101 - set before the event
        return end

    def _stop(self, end: _End) -> RunResult:
        pool = self._pool
        assert pool is not None  # noqa: S101 - waited for, so started
        for service in self._services:
            service.request_stop()
        pool.stop(end.reason)
        # Nothing runs any more: what a silent server keeps from ending need not use up the grace period.
        until = time.monotonic() + LONGEST_FAREWELL.total_seconds()

        def time_left(beyond: timedelta) -> timedelta:
            return min(pool.time_left(beyond), timedelta(seconds=max(0.0, until - time.monotonic())))

        for service in self._services:
            service.join_until(lambda: time_left(END_OF_SERVICES))
        if self._heartbeat is not None:
            # What could not be written keeps the row, for a sweep to find.
            self._heartbeat.end(is_graceful=pool.unsettled == 0, time_left=lambda: time_left(END_OF_HEARTBEAT))
        self._close()
        self.events.emit(RunnerStopped(reason=end.reason))
        return self._result(end)

    def _result(self, end: _End) -> RunResult:
        completed, failed = (0, 0) if self._pool is None else (self._pool.completed, self._pool.failed)
        exit_code = end.exit_code or int(self.settings.strict and failed > 0)
        return RunResult(completed=completed, failed=failed, reason=end.reason, exit_code=exit_code, signal=end.signal)

    def _close(self) -> None:
        if self._probe is not None:
            self._probe.stop()
        self._connections.close(timeout=A_MOMENT)
        # A service that is stuck in a statement holds its connection; that is left to the end of the process.
        for connection in (self._maintenance, self._migration, self._heartbeat_connection):
            connection.close(timeout=A_MOMENT)
        self._database.close()
        if self._listen_database is not None:
            self._listen_database.close()

    def _on_signal(self, name: str) -> None:
        # Only a second signal: a first one may follow a stop that was asked for otherwise, such as by a supervisor.
        forced, self._has_heard_signal = self._has_heard_signal, True
        self.events.emit(SignalReceived(signal=name, forced=forced))
        if forced:
            self.force()
        self._ask_to_end(_End(f"received {name}", signal=name))

    def _break_off_start(self) -> None:
        """Let no start that waits for the database keep the process from ending.

        The server would finish a migration's step that it is at before it sees that we are gone, so it is asked to end.
        """
        patient_until = time.monotonic() + END_OF_SERVICES.total_seconds()
        while not self._is_up.wait(A_MOMENT.total_seconds()):
            self._maintenance.abort()
            self._heartbeat_connection.abort()
            if not self._migration.cancel() or time.monotonic() > patient_until:
                self._migration.abort()

    def _on_breaking_migration(self, revision: int) -> None:
        self._ask_to_end(_End(f"schema revision {revision} is breaking", exit_code=BREAKING_MIGRATION_EXIT_CODE))

    def _on_crash(self, thread: str, error: BaseException) -> None:
        self.logger.scope(label="core").error(
            f"Thread {thread} ended by {type(error).__name__}: {error}", {"error": error}
        )
        self._ask_to_end(_End(f"thread {thread} ended by {type(error).__name__}", exit_code=1))


def run(conninfo: str | None = None, *, tasks: Tasks, **options: object) -> RunResult:
    """Run jobs until a signal; the options are those of `Runner`."""
    return Runner(conninfo, tasks=tasks, **options).run()  # type: ignore[arg-type] # Runner checks them


def run_once(conninfo: str | None = None, *, tasks: Tasks, **options: object) -> RunResult:
    """Run jobs until none is left that can run now; the options are those of `Runner`."""
    return Runner(conninfo, tasks=tasks, **options).run_once()  # type: ignore[arg-type] # Runner checks them
