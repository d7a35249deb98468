"""The logger, and every sentence the core logs, each as a reaction to an event."""

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
    """Takes one message. May also have `enabled(level)` and `many(level, messages)`; see `Logger`."""

    def __call__(self, level: Level, message: str, meta: Meta | None) -> object:
        """Write the message wherever this sink writes; must not raise."""


LogFactory = Callable[[Meta], LogSink]
"""Makes the sink for a scope, which may have `label`, `worker_id`, `thread`, `task_identifier` and `job_id`."""


class Logger:
    """What the core and tasks log to; where it goes is decided by the factory.

    A sink may offer `enabled(level) -> bool`, asked before a costly message is built, and
    `many(level, messages)`, which takes a batch at once: a busy pool ends thousands of jobs a second.
    """

    __slots__ = ("_factory", "_scope", "_sink")

    def __init__(self, factory: LogFactory | None = None, scope: Meta | None = None) -> None:
        self._factory: LogFactory = factory or stdlib_factory
        self._scope: Meta = scope or {}
        self._sink = self._factory(self._scope)

    def scope(self, **more: object) -> Logger:
        """Return a logger whose messages carry these keys as well."""
        return Logger(self._factory, {**self._scope, **more})

    def error(self, message: str, meta: Meta | None = None) -> None:
        """Log something that needs somebody's attention."""
        self._sink("error", message, meta)

    def warning(self, message: str, meta: Meta | None = None) -> None:
        """Log something unexpected that was dealt with."""
        self._sink("warning", message, meta)

    def info(self, message: str, meta: Meta | None = None) -> None:
        """Log what is going on."""
        self._sink("info", message, meta)

    def debug(self, message: str, meta: Meta | None = None) -> None:
        """Log what only somebody looking for a fault wants to know."""
        self._sink("debug", message, meta)

    def enabled(self, level: Level) -> bool:
        """False when the sink would throw messages of this level away."""
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
    """Hands messages to the standard library's logger `graphile_worker`; the scope rides along as `extra`."""

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
    """Make a sink that writes to `logging.getLogger("graphile_worker")`; the default in a library."""
    return _StdlibSink(scope)


class JobLog:
    """Turns events into sentences; subscribe it with `attach`.

    Without `log_startup` what it runs is told for those who look for a fault only: another process has said it.
    """

    def __init__(self, logger: Logger, *, log_startup: bool = True) -> None:
        self._core = logger.scope(label="core")
        self._announce = self._core.info if log_startup else self._core.debug
        self._worker = logger.scope(label="worker")
        self._cron = logger.scope(label="cron")

    def attach(self, events: e.Events) -> None:
        """Listen to everything there is a sentence for."""
        reactions: Sequence[tuple[type[e.Event], Callable[[Any], None]]] = (
            (e.PoolStarted, self._pool_started),
            (e.PoolListening, self._pool_listening),
            (e.PoolConnectionLost, self._connection_lost),
            (e.PoolConnectionRestored, self._connection_restored),
            (e.PoolListenLost, self._hearing_lost),
            (e.PoolListenRestored, self._hearing_restored),
            (e.PoolerDetected, self._pooler_noticed),
            (e.PoolStopping, self._pool_stopping),
            (e.PoolInterrupting, self._pool_interrupting),
            (e.PoolStopped, self._pool_stopped),
            (e.LocksReset, self._locks_reset),
            (e.MaintenanceFailed, self._maintenance_failed),
            (e.RecoveryConfigured, self._recovery_announced),
            (e.HeartbeatFailed, self._heartbeat_failed),
            (e.HeartbeatRestored, self._heartbeat_restored),
            (e.HeartbeatLate, self._heartbeat_late),
            (e.WorkersRecovered, self._workers_recovered),
            (e.RecoveryHookFailed, self._recovery_hook_failed),
            (e.BreakingMigrationDetected, self._breaking_migration),
            (e.TasksReloaded, self._tasks_reloaded),
            (e.JobCancelling, self._job_cancelling),
            (e.JobResultRejected, self._result_refused),
            (e.JobsSettled, self._jobs_settled),
            (e.SignalReceived, self._signal_received),
            (e.ProbeStarted, self._probe_started),
            (e.RunnerStopped, self._runner_stopped),
            (c.CronFailed, self._cron_failed),
            (c.CronRestored, self._cron_restored),
            (c.CronItemFailed, self._cron_item_failed),
            (c.CronItemsRejected, self._cron_items_refused),
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
        self._announce(f"Looking for jobs as {event.worker_id} with {event.concurrency} threads (task names: {names})")

    def _pool_listening(self, event: e.PoolListening) -> None:
        self._core.debug(f"Listening for new jobs as {event.worker_id}")

    def _connection_lost(self, event: e.PoolConnectionLost) -> None:
        seconds = event.delay.total_seconds()
        self._core.warning(f"Cannot {event.operation}: {event.error}; trying again, first in {seconds:.2f} s")

    def _connection_restored(self, event: e.PoolConnectionRestored) -> None:
        tries = "1 try" if event.attempts == 1 else f"{event.attempts} tries"
        self._core.info(f"The database is back: can {event.operation} again after {tries}")

    def _hearing_lost(self, event: e.PoolListenLost) -> None:
        self._core.warning(f"Cannot hear of new jobs, which are found by polling meanwhile: {event.error}")

    def _hearing_restored(self, event: e.PoolListenRestored) -> None:
        self._core.info("Hears of new jobs again")

    def _pooler_noticed(self, event: e.PoolerDetected) -> None:
        if event.mode is not PoolerMode.TRANSACTION:
            self._core.info("A pooler that lends connections for whole sessions stands before the database")
            return
        every = format_duration(event.poll_interval)
        news = (
            "new jobs are heard of over the connection that listens"
            if event.listens
            else f"new jobs are found by polling every {every} (--listen-connection takes a direct one to hear of them)"
        )
        self._core.info(
            f"A pooler that lends connections by transaction stands before the database: nothing is prepared, {news}"
        )

    def _pool_stopping(self, event: e.PoolStopping) -> None:
        self._core.info(f"Stopping ({event.reason}); waiting for {_counted(event.running, 'running job')}")

    def _pool_interrupting(self, event: e.PoolInterrupting) -> None:
        for job in event.jobs:
            self._core.warning(f"Giving back job {job.id} ({job.task_identifier}): it did not end in time")

    def _pool_stopped(self, event: e.PoolStopped) -> None:
        if event.unsettled:
            self._core.error(
                f"{_counted(event.unsettled, 'result')} could not be written before the end; "
                f"free their jobs with: gw unlock {event.worker_id}"
            )

    def _locks_reset(self, event: e.LocksReset) -> None:
        if event.jobs or event.queues:
            jobs, queues = _counted(event.jobs, "job"), _counted(event.queues, "queue")
            self._core.warning(f"Freed locks older than four hours: {jobs}, {queues}")

    def _maintenance_failed(self, event: e.MaintenanceFailed) -> None:
        self._core.warning(f"{event.service} failed and will be tried again: {event.error}")

    # -- recovery --------------------------------------------------------------------------------------------------

    def _recovery_announced(self, event: e.RecoveryConfigured) -> None:
        if event.recovery is None:
            self._announce(
                "Recovery is off: jobs of a crashed worker stay locked for up to four hours, unless a worker with "
                "--recover or gw sweep gives them back"
            )
            return
        silence = format_duration(event.recovery.threshold)
        delay = format_duration(event.recovery.delay)
        self._announce(
            f"Recovery is on: jobs of a worker silent for {silence} are given back and may run {delay} later"
        )

    def _heartbeat_failed(self, event: e.HeartbeatFailed) -> None:
        self._core.warning(f"No heartbeat can be written, so others may take this worker for dead: {event.error}")

    def _heartbeat_restored(self, event: e.HeartbeatRestored) -> None:
        self._core.info(f"Heartbeats are written again; tries in vain: {event.attempts}")

    def _heartbeat_late(self, event: e.HeartbeatLate) -> None:
        silence = f"This worker was silent for {event.heartbeat_age.total_seconds():.1f} s"
        if event.presumed_dead:
            self._core.warning(f"{silence} and was taken for dead; its jobs were given back, their results are void")
        else:
            self._core.warning(f"{silence}, longer than a sweep tolerates; jobs taken from it meanwhile will be lost")

    def _workers_recovered(self, event: e.WorkersRecovered) -> None:
        names = ", ".join(event.workers)
        jobs, queues = _counted(event.jobs, "job"), _counted(event.queues, "queue")
        self._core.warning(f"Gave back {jobs} and freed {queues} of silent workers: {names}")

    def _recovery_hook_failed(self, event: e.RecoveryHookFailed) -> None:
        error = event.error
        self._core.error(
            f"A recovery hook raised {type(error).__name__} for job {event.job.id}, which goes back as usual: {error}",
            {"error": error},
        )

    def _breaking_migration(self, event: e.BreakingMigrationDetected) -> None:
        self._core.warning(
            f"Another process installed schema revision {event.revision}, which is breaking and unknown here; stopping"
        )

    def _tasks_reloaded(self, event: e.TasksReloaded) -> None:
        self._core.info(f"Read the tasks again (task names: {', '.join(event.tasks)})")
        for error in event.errors:
            self._core.error(error)

    # -- job -------------------------------------------------------------------------------------------------------

    def _job_cancelling(self, event: e.JobCancelling) -> None:
        self._core.info(f"Stopping job {event.job.id} ({event.job.task_identifier}): {event.message}")

    def _result_refused(self, event: e.JobResultRejected) -> None:
        job = event.job
        self._worker.error(
            f"The database refuses the result of job {job.id} ({job.task_identifier}), which stays locked while it is "
            f"tried again: {event.error}"
        )

    def _jobs_settled(self, event: e.JobsSettled) -> None:
        if self._worker.enabled("info"):
            done = [_completed_sentence(each) for each in event.outcomes if type(each) is Completed]
            if done:
                self._worker.many("info", done)
        for outcome in event.outcomes:
            if type(outcome) is Failed:
                self._worker.error(_failed_sentence(outcome), {"error": outcome.error})
            elif type(outcome) is Returned and outcome.started:
                self._worker.info(_returned_sentence(outcome))
        for outcome in event.lost:
            job = outcome.job
            self._worker.warning(
                f"Lost job {job.id} ({job.task_identifier}): its lock was taken away while it ran; its result is void"
            )

    # -- cron ------------------------------------------------------------------------------------------------------

    def _cron_failed(self, event: c.CronFailed) -> None:
        seconds = event.delay.total_seconds()
        self._cron.warning(f"Cannot schedule recurring tasks: {event.error}; trying again, first in {seconds:.2f} s")

    def _cron_restored(self, event: c.CronRestored) -> None:
        self._cron.info(f"Recurring tasks are scheduled again; tries in vain: {event.attempts}")

    def _cron_item_failed(self, event: c.CronItemFailed) -> None:
        what = f"The run of '{event.item.identifier}' at {event.timestamp:%Y-%m-%d %H:%M} UTC"
        self._cron.warning(f"{what} was not scheduled: {event.error}")

    def _cron_items_refused(self, event: c.CronItemsRejected) -> None:
        self._cron.warning(f"The new recurring tasks cannot be used, the former ones stay: {event.error}")

    def _cron_runs_skipped(self, event: c.CronRunsSkipped) -> None:
        span = f"{event.first:%Y-%m-%d %H:%M} to {event.last:%Y-%m-%d %H:%M} UTC"
        self._cron.warning(f"Runs from {span} lie too far back; only items whose fill reaches them are made up for")

    def _cron_premature(self, event: c.CronPrematureTimer) -> None:
        self._cron.debug(f"The clock was set back to {event.current}; waiting for {event.expected}")

    def _cron_overdue(self, event: c.CronOverdueTimer) -> None:
        self._cron.debug(f"Late: it is {event.current} and {event.expected} is still to be scheduled")

    def _cron_scheduled(self, event: c.CronScheduled) -> None:
        if event.jobs:
            self._cron.debug(f"Scheduled {', '.join(event.jobs)} for {event.timestamp:%Y-%m-%d %H:%M} UTC")

    # -- process ---------------------------------------------------------------------------------------------------

    def _signal_received(self, event: e.SignalReceived) -> None:
        self._core.info(_signal_sentence(event))

    def _probe_started(self, event: e.ProbeStarted) -> None:
        pages = "/live, /ready and /metrics" if event.metrics else "/live and /ready"
        host = f"[{event.host}]" if ":" in event.host else event.host
        self._core.info(f"Answering probes on http://{host}:{event.port}: {pages}")

    def _runner_stopped(self, event: e.RunnerStopped) -> None:
        self._core.info(f"Stopped: {event.reason}")

    def _listener_failed(self, event: e.Event, error: Exception) -> None:
        self._core.error(f"A listener for '{event.name}' raised {type(error).__name__}: {error}", {"error": error})


def _counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun."""
    return f"1 {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


class SupervisorLog:
    """Turns what happens to worker processes into sentences; subscribe it with `attach`."""

    def __init__(self, logger: Logger) -> None:
        self._log = logger.scope(label="supervisor")

    def attach(self, events: e.Events) -> None:
        """Listen to everything there is a sentence for."""
        reactions: Sequence[tuple[type[e.Event], Callable[[Any], None]]] = (
            (p.SupervisorStarted, self._started),
            (p.ProcessReady, self._ready),
            (p.ProcessEnded, self._ended),
            (p.SupervisorGaveUp, self._given_up),
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
            tell = self._log.debug if event.graceful or event.stops_all else self._log.error
            tell(f"{what}; it is not started again")
        elif event.graceful:
            self._log.info(f"{what}; it is replaced")
        else:
            self._log.warning(f"{what}; it is started again in {event.restart_in.total_seconds():g} s")

    def _given_up(self, event: p.SupervisorGaveUp) -> None:
        self._log.error(f"Process {event.number} is of no use, so all are stopped: {event.reason}")

    def _killed(self, event: p.ProcessesKilled) -> None:
        numbers = ", ".join(map(str, event.numbers))
        self._log.error(f"Killed what had not ended long after the grace period: {numbers}; a sweep frees their jobs")

    def _stopped(self, event: p.SupervisorStopped) -> None:
        self._log.info(f"All processes have ended: {event.reason}")

    def _signal_received(self, event: e.SignalReceived) -> None:
        self._log.info(_signal_sentence(event))

    def _failed(self, event: e.MaintenanceFailed) -> None:
        self._log.warning(f"{event.service} failed and will be tried again: {event.error}")


def _signal_sentence(event: e.SignalReceived) -> str:
    how = "stopping at once" if event.forced else "stopping when running jobs have ended; repeat to stop at once"
    return f"Received {event.signal}; {how}"


def _completed_sentence(outcome: Completed) -> str:
    job = outcome.job
    attempt = f", attempt {job.attempts} of {job.max_attempts}" if job.attempts > 1 else ""
    return f"Completed task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms{attempt}) with success"


def _failed_sentence(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)  # noqa: S101 - narrows for the type checker; the caller has looked
    job = outcome.job
    end = "; no attempt is left" if job.is_last_attempt else "; it is not retried" if outcome.permanent else ""
    return (
        f"Failed task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms, "
        f"attempt {job.attempts} of {job.max_attempts}) with error '{outcome.message}'{end}"
    )


def _returned_sentence(outcome: Returned) -> str:
    job = outcome.job
    return f"Gave back task {job.id} ({job.task_identifier}, {outcome.seconds * 1000:.2f}ms): {outcome.reason}"
