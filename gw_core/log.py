"""The logger, and the log message for each event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from gw_core.domain import events as e, process_events as p, schedule_events as c
from gw_core.domain.durations import format_duration
from gw_core.domain.outcome import Completed, Failed, Outcome, Returned
from gw_core.domain.settings import PoolerMode

Level = Literal["error", "warning", "info", "debug"]
Meta = Mapping[str, object]


class LogSink(Protocol):
    """Takes one message. Can also have `enabled(level)` and `many(level, messages)`; see `Logger`."""

    def __call__(self, level: Level, message: str, meta: Meta | None) -> object:
        """Write the message. Must not raise an error."""


LogFactory = Callable[[Meta], LogSink]
"""Makes the sink for a scope, which may have `label`, `worker_id`, `thread`, `task_identifier` and `job_id`."""


class Logger:
    """Where gw and tasks log to; the factory decides where messages go.

    A sink may offer `enabled(level) -> bool`, asked before a costly message is built, and
    `many(level, messages)`, which takes a batch: a busy worker finishes thousands of jobs a second.
    """

    __slots__ = ("_factory", "_scope", "_sink")

    def __init__(self, factory: LogFactory | None = None, scope: Meta | None = None) -> None:
        self._factory: LogFactory = factory or stdlib_factory
        self._scope: Meta = scope or {}
        self._sink = self._factory(self._scope)

    def scope(self, **more: object) -> Logger:
        """Return a logger whose messages have these keys too."""
        return Logger(self._factory, {**self._scope, **more})

    def error(self, message: str, meta: Meta | None = None) -> None:
        """Log a problem that needs an operator."""
        self._sink("error", message, meta)

    def warning(self, message: str, meta: Meta | None = None) -> None:
        """Log an unexpected condition that gw handles."""
        self._sink("warning", message, meta)

    def info(self, message: str, meta: Meta | None = None) -> None:
        """Log normal operation."""
        self._sink("info", message, meta)

    def debug(self, message: str, meta: Meta | None = None) -> None:
        """Log details for troubleshooting."""
        self._sink("debug", message, meta)

    def enabled(self, level: Level) -> bool:
        """Return whether the sink writes messages of this level."""
        ask: Callable[[str], bool] | None = getattr(self._sink, "enabled", None)
        return True if ask is None else ask(level)

    def many(self, level: Level, messages: Sequence[str]) -> None:
        """Log several messages of one level."""
        take: Callable[[str, Sequence[str]], object] | None = getattr(self._sink, "many", None)
        if take is not None:
            take(level, messages)
            return
        for message in messages:
            self._sink(level, message, None)


class _StdlibSink:
    """Passes messages to the standard library's logger `graphile_worker`, with the scope in `extra`."""

    _LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}

    def __init__(self, scope: Meta) -> None:
        self._logger = logging.getLogger("graphile_worker")
        self._extra = {"graphile_worker": dict(scope)}

    def __call__(self, level: Level, message: str, meta: Meta | None) -> None:
        # The message is data: a `%` in it is not a placeholder, so it goes as the argument.
        self._logger.log(self._LEVELS[level], "%s", message, extra={**self._extra, "meta": meta})

    def enabled(self, level: str) -> bool:
        return self._logger.isEnabledFor(self._LEVELS[level])


def stdlib_factory(scope: Meta) -> LogSink:
    """Make a sink that writes to `logging.getLogger("graphile_worker")`; the default for programs that embed gw."""
    return _StdlibSink(scope)


class JobLog:
    """Logs a message for each event; subscribe it with `attach`.

    Without `log_startup`, startup messages have the level debug: another process has logged them.
    """

    def __init__(self, logger: Logger, *, log_startup: bool = True) -> None:
        self._core = logger.scope(label="core")
        self._log_startup = self._core.info if log_startup else self._core.debug
        self._worker = logger.scope(label="worker")
        self._cron = logger.scope(label="cron")

    def attach(self, events: e.Events) -> None:
        """Subscribe to all events that are logged."""
        reactions: Sequence[tuple[type[e.Event], Callable[[Any], None]]] = (
            (e.PoolStarted, self._pool_started),
            (e.PoolListening, self._pool_listening),
            (e.PoolConnectionLost, self._connection_lost),
            (e.PoolConnectionRestored, self._connection_restored),
            (e.PoolListenLost, self._listen_lost),
            (e.PoolListenRestored, self._listen_restored),
            (e.PoolerDetected, self._pooler_detected),
            (e.PoolStopping, self._pool_stopping),
            (e.PoolInterrupting, self._pool_interrupting),
            (e.PoolStopped, self._pool_stopped),
            (e.LocksReset, self._locks_reset),
            (e.MaintenanceFailed, self._maintenance_failed),
            (e.RecoveryConfigured, self._recovery_configured),
            (e.HeartbeatFailed, self._heartbeat_failed),
            (e.HeartbeatRestored, self._heartbeat_restored),
            (e.HeartbeatLate, self._heartbeat_late),
            (e.WorkersRecovered, self._workers_recovered),
            (e.RecoveryHookFailed, self._recovery_hook_failed),
            (e.BreakingMigrationDetected, self._breaking_migration),
            (e.TasksReloaded, self._tasks_reloaded),
            (e.JobCancelling, self._job_cancelling),
            (e.JobResultRejected, self._result_rejected),
            (e.JobsSettled, self._jobs_settled),
            (e.SignalReceived, self._signal_received),
            (e.ProbeStarted, self._probe_started),
            (e.RunnerStopped, self._runner_stopped),
            (c.CronFailed, self._cron_failed),
            (c.CronRestored, self._cron_restored),
            (c.CronItemFailed, self._cron_item_failed),
            (c.CronItemsRejected, self._cron_items_rejected),
            (c.CronRunsSkipped, self._cron_runs_skipped),
            (c.CronPrematureTimer, self._cron_premature),
            (c.CronOverdueTimer, self._cron_overdue),
            (c.CronScheduled, self._cron_scheduled),
        )
        for kind, reaction in reactions:
            events.on(kind, reaction)
        events.on_error = self._listener_failed

    # -- pool ------------------------------------------------------------------------------------------------------

    def _pool_started(self, event: e.PoolStarted) -> None:
        names = ", ".join(f"'{task}'" for task in event.tasks) or "none"
        self._log_startup(f"Worker {event.worker_id} started with {event.concurrency} threads; tasks: {names}")

    def _pool_listening(self, event: e.PoolListening) -> None:
        self._core.debug(f"Worker {event.worker_id} listens for new jobs")

    def _connection_lost(self, event: e.PoolConnectionLost) -> None:
        seconds = event.delay.total_seconds()
        self._core.warning(f"Cannot {event.operation}: {event.error}; retrying, first in {seconds:.2f} s")

    def _connection_restored(self, event: e.PoolConnectionRestored) -> None:
        attempts = _counted(event.attempts, "failed attempt")
        self._core.info(f"Database available again: can {event.operation} after {attempts}")

    def _listen_lost(self, event: e.PoolListenLost) -> None:
        self._core.warning(f"LISTEN connection lost; polling until it is restored: {event.error}")

    def _listen_restored(self, event: e.PoolListenRestored) -> None:
        self._core.info("LISTEN connection restored; new jobs start immediately again")

    def _pooler_detected(self, event: e.PoolerDetected) -> None:
        if event.mode is not PoolerMode.TRANSACTION:
            self._core.info("Connected through a pooler in session mode")
            return
        every = format_duration(event.poll_interval)
        discovery = (
            "new jobs arrive over the listen connection"
            if event.listens
            else f"new jobs are found by polling every {every} (pass a direct connection with --listen-connection)"
        )
        self._core.info(f"Connected through a pooler in transaction mode: no prepared statements; {discovery}")

    def _pool_stopping(self, event: e.PoolStopping) -> None:
        self._core.info(f"Stopping ({event.reason}); waiting for {_counted(event.running, 'running job')}")

    def _pool_interrupting(self, event: e.PoolInterrupting) -> None:
        for job in event.jobs:
            self._core.warning(
                f"Returning job {job.id} ({job.task_identifier}) to the queue: it did not finish in time"
            )

    def _pool_stopped(self, event: e.PoolStopped) -> None:
        if event.unsettled:
            self._core.error(
                f"{_counted(event.unsettled, 'outcome')} could not be recorded before the worker stopped; "
                f"release their jobs with: gw unlock {event.worker_id}"
            )

    def _locks_reset(self, event: e.LocksReset) -> None:
        if event.jobs or event.queues:
            jobs, queues = _counted(event.jobs, "job"), _counted(event.queues, "queue")
            self._core.warning(f"Released locks older than four hours: {jobs}, {queues}")

    def _maintenance_failed(self, event: e.MaintenanceFailed) -> None:
        self._core.warning(f"{event.service} failed and will be retried: {event.error}")

    # -- recovery --------------------------------------------------------------------------------------------------

    def _recovery_configured(self, event: e.RecoveryConfigured) -> None:
        if event.recovery is None:
            self._log_startup(
                "Recovery is off: jobs of a crashed worker stay locked for up to four hours, unless a worker "
                "with --recover or gw sweep recovers them"
            )
            return
        threshold = format_duration(event.recovery.threshold)
        delay = format_duration(event.recovery.delay)
        self._log_startup(
            f"Recovery is on: jobs of workers without a heartbeat for {threshold} are recovered, to run {delay} later"
        )

    def _heartbeat_failed(self, event: e.HeartbeatFailed) -> None:
        self._core.warning(f"Heartbeat failed; other workers may presume this worker dead: {event.error}")

    def _heartbeat_restored(self, event: e.HeartbeatRestored) -> None:
        self._core.info(f"Heartbeat restored after {_counted(event.attempts, 'failed attempt')}")

    def _heartbeat_late(self, event: e.HeartbeatLate) -> None:
        lateness = f"This worker sent no heartbeat for {event.heartbeat_age.total_seconds():.1f} s"
        if event.presumed_dead:
            self._core.warning(
                f"{lateness} and was presumed dead; its jobs were recovered, their results are discarded"
            )
        else:
            self._core.warning(f"{lateness}, longer than a sweep tolerates; it loses the jobs that a sweep recovered")

    def _workers_recovered(self, event: e.WorkersRecovered) -> None:
        names = ", ".join(event.workers)
        jobs, queues = _counted(event.jobs, "job"), _counted(event.queues, "queue")
        self._core.warning(f"Recovered {jobs} and released {queues} of dead workers: {names}")

    def _recovery_hook_failed(self, event: e.RecoveryHookFailed) -> None:
        error = event.error
        self._core.error(
            f"A recovery hook raised {type(error).__name__} for job {event.job.id}, which is recovered anyway: {error}",
            {"error": error},
        )

    def _breaking_migration(self, event: e.BreakingMigrationDetected) -> None:
        self._core.warning(
            f"Another process installed schema revision {event.revision}, which needs a newer version of gw; stopping"
        )

    def _tasks_reloaded(self, event: e.TasksReloaded) -> None:
        self._core.info(f"Tasks reloaded: {', '.join(event.tasks)}")
        for error in event.errors:
            self._core.error(error)

    # -- job -------------------------------------------------------------------------------------------------------

    def _job_cancelling(self, event: e.JobCancelling) -> None:
        self._core.info(f"Cancelling job {event.job.id} ({event.job.task_identifier}): {event.message}")

    def _result_rejected(self, event: e.JobResultRejected) -> None:
        job = event.job
        self._worker.error(
            f"The database rejected the outcome of job {job.id} ({job.task_identifier}); the job stays locked, and the "
            f"worker retries: {event.error}"
        )

    def _jobs_settled(self, event: e.JobsSettled) -> None:
        if self._worker.enabled("info"):
            done = [_completed_message(each) for each in event.outcomes if type(each) is Completed]
            if done:
                self._worker.many("info", done)
        for outcome in event.outcomes:
            if type(outcome) is Failed:
                self._worker.error(_failed_message(outcome), {"error": outcome.error})
            elif type(outcome) is Returned and outcome.started:
                self._worker.info(_returned_message(outcome))
        for outcome in event.lost:
            job = outcome.job
            self._worker.warning(
                f"Lost job {job.id} ({job.task_identifier}): it lost its lock while running; the result was discarded"
            )

    # -- cron ------------------------------------------------------------------------------------------------------

    def _cron_failed(self, event: c.CronFailed) -> None:
        seconds = event.delay.total_seconds()
        self._cron.warning(f"Cannot schedule recurring tasks: {event.error}; retrying, first in {seconds:.2f} s")

    def _cron_restored(self, event: c.CronRestored) -> None:
        self._cron.info(f"Scheduling of recurring tasks restored after {_counted(event.attempts, 'failed attempt')}")

    def _cron_item_failed(self, event: c.CronItemFailed) -> None:
        what = f"The run of '{event.item.identifier}' at {event.timestamp:%Y-%m-%d %H:%M} UTC"
        self._cron.warning(f"{what} was not scheduled: {event.error}")

    def _cron_items_rejected(self, event: c.CronItemsRejected) -> None:
        self._cron.warning(f"New cron items rejected; the previous ones stay in use: {event.error}")

    def _cron_runs_skipped(self, event: c.CronRunsSkipped) -> None:
        period = f"{event.first:%Y-%m-%d %H:%M} to {event.last:%Y-%m-%d %H:%M} UTC"
        self._cron.warning(f"Runs from {period} were missed; only items with a long enough fill are backfilled")

    def _cron_premature(self, event: c.CronPrematureTimer) -> None:
        self._cron.debug(f"Clock set back to {event.current}; waiting for {event.expected}")

    def _cron_overdue(self, event: c.CronOverdueTimer) -> None:
        self._cron.debug(f"Scheduler is late: at {event.current}, {event.expected} is not scheduled yet")

    def _cron_scheduled(self, event: c.CronScheduled) -> None:
        if event.jobs:
            self._cron.debug(f"Scheduled {', '.join(event.jobs)} for {event.timestamp:%Y-%m-%d %H:%M} UTC")

    # -- process ---------------------------------------------------------------------------------------------------

    def _signal_received(self, event: e.SignalReceived) -> None:
        self._core.info(_signal_message(event))

    def _probe_started(self, event: e.ProbeStarted) -> None:
        pages = "/live, /ready and /metrics" if event.metrics else "/live and /ready"
        host = f"[{event.host}]" if ":" in event.host else event.host
        self._core.info(f"Probe server listens on http://{host}:{event.port}: {pages}")

    def _runner_stopped(self, event: e.RunnerStopped) -> None:
        self._core.info(f"Stopped: {event.reason}")

    def _listener_failed(self, event: e.Event, error: Exception) -> None:
        self._core.error(f"A listener for '{event.name}' raised {type(error).__name__}: {error}", {"error": error})


def _counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun, singular or plural."""
    return f"1 {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


class SupervisorLog:
    """Logs the events of worker processes; subscribe it with `attach`."""

    def __init__(self, logger: Logger) -> None:
        self._log = logger.scope(label="supervisor")

    def attach(self, events: e.Events) -> None:
        """Subscribe to all events that are logged."""
        reactions: Sequence[tuple[type[e.Event], Callable[[Any], None]]] = (
            (p.SupervisorStarted, self._started),
            (p.ProcessReady, self._ready),
            (p.ProcessEnded, self._ended),
            (p.SupervisorGaveUp, self._gave_up),
            (p.ProcessesKilled, self._killed),
            (p.SupervisorStopped, self._stopped),
            (e.SignalReceived, self._signal_received),
            (e.MaintenanceFailed, self._failed),
        )
        for kind, reaction in reactions:
            events.on(kind, reaction)

    def _started(self, event: p.SupervisorStarted) -> None:
        self._log.info(f"Starting {_counted(event.processes, 'worker process', 'worker processes')}")

    def _ready(self, event: p.ProcessReady) -> None:
        self._log.info(f"Process {event.number} is ready (pid {event.pid})")

    def _ended(self, event: p.ProcessEnded) -> None:
        what = f"Process {event.number} (pid {event.pid}) {event.exit_reason}"
        if event.restart_in is None:
            report = self._log.debug if event.graceful or event.stops_all else self._log.error
            report(f"{what}; it is not restarted")
        elif event.graceful:
            self._log.info(f"{what}; starting a replacement")
        else:
            self._log.warning(f"{what}; restarting in {event.restart_in.total_seconds():g} s")

    def _gave_up(self, event: p.SupervisorGaveUp) -> None:
        self._log.error(f"Process {event.number} cannot run; stopping all processes: {event.reason}")

    def _killed(self, event: p.ProcessesKilled) -> None:
        numbers = ", ".join(map(str, event.numbers))
        self._log.error(f"Killed processes that ran on after the grace period: {numbers}; a sweep recovers their jobs")

    def _stopped(self, event: p.SupervisorStopped) -> None:
        self._log.info(f"All processes exited: {event.reason}")

    def _signal_received(self, event: e.SignalReceived) -> None:
        self._log.info(_signal_message(event))

    def _failed(self, event: e.MaintenanceFailed) -> None:
        self._log.warning(f"{event.service} failed and will be retried: {event.error}")


def _signal_message(event: e.SignalReceived) -> str:
    if event.forced:
        return f"Received {event.signal}; stopping immediately"
    return f"Received {event.signal}; stopping when running jobs finish; repeat it to stop immediately"


def _completed_message(outcome: Completed) -> str:
    job = outcome.job
    attempt = f", attempt {job.attempts} of {job.max_attempts}" if job.attempts > 1 else ""
    return f"Completed task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms{attempt}) with success"


def _failed_message(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)  # noqa: S101 - narrows the type; the caller has checked
    job = outcome.job
    end = "; no attempts left" if job.is_last_attempt else "; it failed permanently" if outcome.permanent else ""
    return (
        f"Failed task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms, "
        f"attempt {job.attempts} of {job.max_attempts}) with error '{outcome.message}'{end}"
    )


def _returned_message(outcome: Returned) -> str:
    job = outcome.job
    return (
        f"Returned task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms) to the queue: {outcome.reason}"
    )
