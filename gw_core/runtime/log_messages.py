"""Log records for events, through the standard library's `logging`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, get_type_hints

from gw_core.domain.counted import counted
from gw_core.domain.durations import format_duration
from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Completed, Failed, Returned
from gw_core.domain.rules import events as e
from gw_core.domain.rules.event_bus import Event, Events
from gw_core.domain.rules.settings import PoolerMode
from gw_core.domain.rules.stop_signals import REPEAT_SECONDS
from gw_core.runtime.completion_log import CompletionLog
from gw_core.runtime.loggers import get_logger, job_fields

MAX_NAMES: Final = 10
"""How many tasks the line of the start names; `gw tasks` lists all."""

_LOST: Final = "Lost job %s (%s): it lost its lock while running; the result was discarded"
_LOST_UNSTARTED: Final = "Lost job %s (%s): it lost its lock before it started"
_UNKNOWN: Final = (
    "Lost job %s (%s): its outcome is unknown, because the database's answer was lost, and another worker may have "
    "recovered the job before the outcome was sent again"
)
_FAILED: Final = "Failed task %s (%s, %.2fms, attempt %s of %s) with error '%s'%s"


class EventLog:
    """Logs the events for which it has a method: one whose argument `event` is of their type."""

    def __init__(self, core: logging.Logger) -> None:
        self._core = core

    def attach(self, events: Events) -> None:
        """Subscribe to all events that are logged."""
        for name in dir(self):
            method = getattr(self, name)
            if "event" in getattr(method, "__annotations__", ()):
                events.on(get_type_hints(method)["event"], method)


class _ProcessLog(EventLog):
    """Logs the events that each process has."""

    def _signal_received(self, event: e.SignalReceived) -> None:
        if event.forced:
            self._core.info("Received %s; stopping immediately", event.signal)
        elif event.repeated:
            self._core.info("Received %s again; still waiting for running jobs", event.signal)
        else:
            message = "Received %s; stopping when running jobs finish; send it again after %g s to stop immediately"
            self._core.info(message, event.signal, REPEAT_SECONDS)

    def _maintenance_failed(self, event: e.MaintenanceFailed) -> None:
        self._core.warning("%s failed and will be retried: %s", event.service, event.error)


class JobLog(_ProcessLog):
    """Logs each event; subscribe it with `attach`.

    Without `log_startup`, startup messages have the level debug: another process has logged them.
    """

    def __init__(self, logger: logging.Logger | None = None, *, log_startup: bool = True) -> None:
        super().__init__(get_logger("core", logger))
        self._worker = get_logger("worker", logger)
        self._cron = get_logger("cron", logger)
        self._log_startup = self._core.info if log_startup else self._core.debug
        self._warn_at_startup = self._cron.warning if log_startup else self._cron.debug
        self._completions = CompletionLog(self._worker)

    def attach(self, events: Events) -> None:
        """Subscribe to all events that are logged."""
        super().attach(events)
        events.on_error = self._listener_failed

    # -- pool ------------------------------------------------------------------------------------------------------

    def _runner_started(self, event: e.RunnerStarted) -> None:
        self._log_startup("Connected to %s, schema %s", event.database, event.schema)
        if event.crontab_items:
            source = f" from {event.crontab}" if event.crontab else ""
            self._log_startup("%s%s", counted(event.crontab_items, "cron item"), source)
        if event.unknown_tasks:
            self._warn_at_startup(
                "This worker has no task for these cron items; their jobs wait for another worker: %s",
                _quoted(event.unknown_tasks),
            )

    def _pool_started(self, event: e.PoolStarted) -> None:
        self._log_startup(
            "Worker %s started with %s threads; tasks: %s",
            event.worker_id,
            event.concurrency,
            _some(event.tasks) or "none",
            extra={"worker_id": event.worker_id},
        )

    def _pool_listening(self, event: e.PoolListening) -> None:
        self._core.debug("Worker %s listens for new jobs", event.worker_id, extra={"worker_id": event.worker_id})

    def _connection_lost(self, event: e.PoolConnectionLost) -> None:
        seconds = event.delay.total_seconds()
        if event.attempts:
            attempts = counted(event.attempts, "failed attempt")
            self._core.warning("Still cannot %s after %s, now: %s", event.operation, attempts, event.error)
        else:
            self._core.warning("Cannot %s: %s; retrying, first in %.2f s", event.operation, event.error, seconds)

    def _connection_restored(self, event: e.PoolConnectionRestored) -> None:
        attempts = counted(event.attempts, "failed attempt")
        self._core.info("Database available again: can %s after %s", event.operation, attempts)

    def _listen_lost(self, event: e.PoolListenLost) -> None:
        self._core.warning("LISTEN connection lost; polling until it is restored: %s", event.error)

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
        self._core.info("Connected through a pooler in transaction mode: no prepared statements; %s", discovery)

    def _pool_stopping(self, event: e.PoolStopping) -> None:
        level = logging.INFO if event.running else logging.DEBUG
        self._core.log(level, "Stopping (%s); waiting for %s", event.reason, counted(event.running, "running job"))

    def _pool_interrupting(self, event: e.PoolInterrupting) -> None:
        for job in event.jobs:
            message = "Returning job %s (%s) to the queue: it did not finish in time"
            _log_job(self._core.warning, message, job, event.worker_id)

    def _pool_stopped(self, event: e.PoolStopped) -> None:
        self._completions.flush(event.worker_id)
        if event.unsettled:
            self._core.error(
                "%s could not be recorded before the worker stopped; to run their jobs again, release them with: "
                "gw unlock %s",
                counted(event.unsettled, "outcome"),
                event.worker_id,
                extra={"worker_id": event.worker_id},
            )
        if event.has_unknown_claim:
            self._core.warning(
                "A claim was not answered before the worker stopped; if it locked jobs, release them with: "
                "gw unlock %s",
                event.worker_id,
                extra={"worker_id": event.worker_id},
            )

    def _locks_reset(self, event: e.LocksReset) -> None:
        if event.jobs or event.queues:
            jobs, queues = counted(event.jobs, "job"), counted(event.queues, "queue")
            self._core.warning("Released locks older than four hours: %s, %s", jobs, queues)

    def _failed_jobs_deleted(self, event: e.FailedJobsDeleted) -> None:
        self._core.info("Deleted %s kept for long enough", counted(event.jobs, "failed job"))

    def _unknown_locks_released(self, event: e.UnknownLocksReleased) -> None:
        jobs, queues = counted(event.jobs, "job"), counted(event.queues, "queue")
        self._core.info("Released what this worker had locked without knowing: %s, %s", jobs, queues)

    # -- recovery --------------------------------------------------------------------------------------------------

    def _recovery_configured(self, event: e.RecoveryConfigured) -> None:
        if event.recovery is None:
            self._log_startup(
                "Recovery is off in this worker: jobs of a crashed worker stay locked for up to four hours, unless "
                "another worker or gw sweep recovers them"
            )
            return
        self._log_startup(
            "Recovery is on: jobs of workers without a heartbeat for %s are recovered, to run %s later",
            format_duration(event.recovery.sweep_threshold),
            format_duration(event.recovery.effective_recovery_delay),
        )

    def _heartbeat_failed(self, event: e.HeartbeatFailed) -> None:
        self._core.warning("Heartbeat failed; other workers may presume this worker dead: %s", event.error)

    def _heartbeat_restored(self, event: e.HeartbeatRestored) -> None:
        self._core.info("Heartbeat restored after %s", counted(event.attempts, "failed attempt"))

    def _heartbeat_late(self, event: e.HeartbeatLate) -> None:
        consequence = (
            " and was presumed dead; its jobs were recovered, their results are discarded"
            if event.presumed_dead
            else ", longer than a sweep tolerates; it loses the jobs that a sweep recovered"
        )
        age = event.heartbeat_age.total_seconds()
        self._core.warning("This worker sent no heartbeat for %.1f s%s", age, consequence)

    def _workers_recovered(self, event: e.WorkersRecovered) -> None:
        jobs, queues = counted(event.jobs, "job"), counted(event.queues, "queue")
        if event.workers:
            workers = ", ".join(event.workers)
            self._core.warning("Recovered %s and released %s of dead workers: %s", jobs, queues, workers)
        else:
            self._core.warning("Released %s that had a lock and no running job", queues)

    def _recovery_hook_failed(self, event: e.RecoveryHookFailed) -> None:
        self._core.error(
            "A recovery hook raised %s for job %s, which is recovered anyway: %s",
            type(event.error).__name__,
            event.job.id,
            event.error,
            exc_info=event.error,
            extra=job_fields(event.job),
        )

    def _breaking_migration(self, event: e.BreakingMigrationDetected) -> None:
        self._core.warning(
            "Another process installed schema revision %s, which needs a newer version of gw; stopping", event.revision
        )

    def _tasks_reloaded(self, event: e.TasksReloaded) -> None:
        tasks = ", ".join(event.tasks)
        if not event.errors:
            self._core.info("Tasks reloaded: %s", tasks)
            return
        for error in event.errors:
            self._core.error("%s", error)
        self._core.warning("%s in task files; tasks in use: %s", counted(len(event.errors), "error"), tasks or "none")

    # -- job -------------------------------------------------------------------------------------------------------

    def _job_cancelling(self, event: e.JobCancelling) -> None:
        _log_job(self._core.info, "Cancelling job %s (%s): %s", event.job, event.worker_id, event.message)

    def _job_overran(self, event: e.JobOverran) -> None:
        why = "its timeout has passed" if event.reason is StopReason.TIMEOUT else "it was cancelled"
        message = "Job %s (%s) still runs although %s; it keeps thread %s and its lock until its task returns"
        _log_job(self._worker.warning, message, event.job, event.worker_id, why, event.thread)

    def _result_rejected(self, event: e.JobResultRejected) -> None:
        message = "The database rejected the outcome of job %s (%s); the job stays locked, and the worker retries: %s"
        _log_job(self._worker.error, message, event.job, event.worker_id, event.error, error=event.error)

    def _jobs_settled(self, event: e.JobsSettled) -> None:
        worker_id = event.worker_id
        if self._worker.isEnabledFor(logging.INFO):
            self._completions.log([each for each in event.outcomes if type(each) is Completed], worker_id)
        for outcome in event.outcomes:
            if type(outcome) is Failed:
                self._job_failed(outcome, worker_id)
            elif type(outcome) is Returned and outcome.started:
                self._job_returned(outcome, worker_id)
            elif type(outcome) is Completed and outcome.result_error is not None:
                message = "Completed task %s (%s), but %s"
                _log_job(self._worker.warning, message, outcome.job, worker_id, outcome.result_error)
        for outcome in event.lost:
            is_unstarted = type(outcome) is Returned and not outcome.started
            message = _UNKNOWN if event.in_doubt else _LOST_UNSTARTED if is_unstarted else _LOST
            _log_job(self._worker.warning, message, outcome.job, worker_id)

    def _job_failed(self, outcome: Failed, worker_id: str) -> None:
        job = outcome.job
        end = "; no attempts left" if job.is_last_attempt else "; it failed permanently" if outcome.permanent else ""
        values = (job.attempts, job.max_attempts, outcome.message, end)
        _log_run(self._worker.error, _FAILED, outcome, worker_id, *values, error=outcome.error)

    def _job_returned(self, outcome: Returned, worker_id: str) -> None:
        message = "Returned task %s (%s, %.2fms) to the queue: %s"
        _log_run(self._worker.info, message, outcome, worker_id, outcome.reason)

    # -- process ---------------------------------------------------------------------------------------------------

    def _probe_started(self, event: e.ProbeStarted) -> None:
        pages = "/live, /ready and /metrics" if event.metrics else "/live and /ready"
        host = f"[{event.host}]" if ":" in event.host else event.host
        self._core.info("Probe server listens on http://%s:%s: %s", host, event.port, pages)

    def _runner_stopped(self, event: e.RunnerStopped) -> None:
        self._core.info("Stopped: %s", event.reason)

    def _listener_failed(self, failed: Event, error: Exception) -> None:
        self._core.error("A listener for '%s' raised %s: %s", failed.name, type(error).__name__, error, exc_info=error)


class SupervisorLog(_ProcessLog):
    """Logs the events of worker processes; subscribe it with `attach`."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(get_logger("supervisor", logger))

    def _started(self, event: e.SupervisorStarted) -> None:
        self._core.info("Starting %s", counted(event.processes, "worker process", "worker processes"))

    def _ready(self, event: e.ProcessReady) -> None:
        self._core.info("Process %s is ready (pid %s)", event.number, event.pid)

    def _ended(self, event: e.ProcessEnded) -> None:
        level, consequence = logging.WARNING, f"restarting in {(event.restart_in or timedelta()).total_seconds():g} s"
        if event.restart_in is None:
            level = logging.DEBUG if event.graceful or event.stops_all else logging.ERROR
            consequence = "it is not restarted"
        elif event.graceful:
            level, consequence = logging.INFO, "starting a replacement"
        self._core.log(level, "Process %s (pid %s) %s; %s", event.number, event.pid, event.exit_reason, consequence)

    def _gave_up(self, event: e.SupervisorGaveUp) -> None:
        self._core.error("Process %s cannot run; stopping all processes: %s", event.number, event.reason)

    def _killed(self, event: e.ProcessesKilled) -> None:
        numbers = ", ".join(map(str, event.numbers))
        self._core.error(
            "Killed processes that ran on after the grace period: %s; a sweep recovers their jobs", numbers
        )

    def _stopped(self, event: e.SupervisorStopped) -> None:
        self._core.info("All processes exited: %s", event.reason)


def _log_job(
    log: Callable[..., None],
    message: str,
    job: Job,
    worker_id: str,
    *values: object,
    error: BaseException | None = None,
    **fields: object,
) -> None:
    """Log a message about a job, whose first values are its id and its task."""
    extra = {**job_fields(job, worker_id), **fields}
    log(message, job.id, job.task, *values, exc_info=error, extra=extra)


def _log_run(
    log: Callable[..., None],
    message: str,
    outcome: Failed | Returned,
    worker_id: str,
    *values: object,
    error: BaseException | None = None,
) -> None:
    """Log a message about a run, whose third value is its duration."""
    duration = _milliseconds(outcome.seconds)
    _log_job(log, message, outcome.job, worker_id, duration, *values, error=error, duration_ms=duration)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _some(names: Sequence[str]) -> str:
    rest = len(names) - MAX_NAMES
    return _quoted(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
