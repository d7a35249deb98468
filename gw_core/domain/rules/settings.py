"""The settings of a worker and their limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gw_core.domain.counted import counted
from gw_core.domain.durations import DurationField, DurationRangeField, format_duration, settings
from gw_core.domain.errors import InvalidSettingError
from gw_core.domain.job.history import MAX_KEEP
from gw_core.domain.rules.only import Only
from gw_core.domain.rules.sweep_rules import RecoverySettings, overdue_after

LOCK_EXPIRY: Final = timedelta(hours=4)
"""The age at which a lock expires. Graphile Worker fixes it: its workers release every older lock, gw's included."""

CLAIM_BYTES: Final = 64 * 1024 * 1024
"""The default limit for the memory that the payloads of one claim take."""

DEFAULT_HEARTBEAT_INTERVAL: Final = timedelta(seconds=30)
DEFAULT_SWEEP_INTERVAL: Final = timedelta(seconds=60)
MAX_HEARTBEAT_TIMEOUT: Final = timedelta(seconds=10)
MIN_HEARTBEAT_TIMEOUT: Final = timedelta(seconds=1)
"""For a threshold below four seconds; with less, an answer that is only slow would count as lost."""

DEFAULT_NOTIFY_DELAY: Final = timedelta(seconds=5)
_MIN_INTERVAL: Final = timedelta(milliseconds=1)


class PoolerMode(StrEnum):
    """The mode of the pooler between a worker and the server, if there is one."""

    NONE = "none"
    SESSION = "session"
    """One server connection for each client connection; everything works."""
    TRANSACTION = "transaction"
    """A server connection for each transaction: no LISTEN, no session settings, no prepared statements."""


MEGABYTE: Final = 1024 * 1024


@settings
class WorkerSettings(RecoverySettings):
    """How a worker claims, runs and stops. An invalid value raises `InvalidSettingError`, which names the setting.

    Example: docs/api/index.md
    """

    concurrency: int = 10
    """The number of worker threads, and so of jobs that run at the same time."""

    poll_interval: DurationField[timedelta] = DurationField(timedelta(seconds=2))
    """How often to poll for scheduled jobs and retries, which send no notification."""

    prefetch: DurationField[timedelta] = DurationField(timedelta(milliseconds=50))
    """How much work, measured in time, to claim beyond idle threads."""

    claim_limit: int = 1000
    """The maximum number of jobs in one claim; above 500 only of jobs that take microseconds."""

    claim_bytes: int = CLAIM_BYTES
    """The maximum memory for the payloads of one claim, in bytes; a single larger job is still claimed."""

    grace_period: DurationField[timedelta] = DurationField(timedelta(seconds=25))
    """How long running jobs may take to finish after the first signal."""

    notify_tasks_after: DurationField[timedelta | None] = DurationField(None)
    """The delay between the first signal and `context.should_stop`; None is 5 s, or half of a shorter grace period."""

    interrupted_delay: DurationField[timedelta] = DurationField(timedelta(seconds=30))
    """The delay before a job that the end of the grace period interrupted may run again."""

    expired_lock_interval: DurationRangeField = DurationRangeField(timedelta(minutes=8), timedelta(minutes=10))
    """The range of the random interval at which locks older than four hours are released."""

    lock_renewal_interval: DurationField[timedelta] = DurationField(timedelta(minutes=10))
    """How often to renew the locks of running jobs."""

    use_client_time: bool = False
    """Compare `run_at` with this machine's clock instead of the database's."""

    listen: bool = True
    """Use LISTEN/NOTIFY for new jobs; when off, only poll."""

    strict: bool = False
    """`run_once` reports failure when any job failed."""

    history: DurationField[timedelta | None] = DurationField(None)
    """How long history keeps the jobs of tasks that do not say it themselves; None keeps none of them."""

    statistics: DurationField[timedelta] = DurationField(timedelta(days=1))
    """How long to keep the statistics of each task and minute, which the console's charts show; 0 records none."""

    keep_failed: DurationField[timedelta | None] = DurationField(None)
    """How long jobs stay that failed permanently, before workers delete them; None keeps them."""

    timeout: DurationField[timedelta | None] = DurationField(None)
    """How long a run of a task may take that has no `timeout` of its own; None for no limit."""

    executable_env: Sequence[str] | None = ()
    """The environment variables that executable tasks get besides PATH, HOME and the like; None passes all."""

    only: Sequence[str] = ()
    """The tasks and queues whose jobs the worker claims, such as `task:mail` and `queue:billing`; all unless given."""

    recover: bool = True
    """Recover the jobs of dead workers. The worker sends heartbeats whether this is on or off."""

    heartbeat_interval: DurationField[timedelta | None] = DurationField(None)
    """The heartbeat interval, at most half of the threshold; None is 30 s, or a quarter of the threshold if less."""

    sweep_interval: DurationField[timedelta | None] = DurationField(None)
    """How often to sweep, at least once per threshold; None is 60 s, or a quarter of the threshold if that is less."""

    max_jobs: int | None = None
    """Shut down gracefully after this many jobs; None for no limit."""

    max_lifetime: DurationField[timedelta | None] = DurationField(None)
    """Shut down gracefully after this long; None for no limit."""

    max_rss: int | None = None
    """Shut down gracefully when the process uses this many bytes of memory; None for no limit."""

    @property
    def recycles(self) -> bool:
        """True when the worker shuts down at a limit, for its supervisor to restart it."""
        return (self.max_jobs, self.max_lifetime, self.max_rss) != (None, None, None)

    def limit_reached(self, *, ended: int, lived: timedelta, rss: int | None) -> str | None:
        """Return why the worker should end now, or None; `ended` counts the attempts that were settled."""
        if self.max_jobs is not None and ended >= self.max_jobs:
            return f"{counted(ended, 'job has', 'jobs have')} run, the limit is {self.max_jobs}"
        if self.max_lifetime is not None and lived >= self.max_lifetime:
            return f"its lifetime of {format_duration(self.max_lifetime)} has ended"
        if self.max_rss is not None and rss is not None and rss >= self.max_rss:
            return f"it uses {rss // MEGABYTE} MB of memory, of at most {self.max_rss // MEGABYTE} MB"
        return None

    @property
    def effective_heartbeat_interval(self) -> timedelta:
        """The heartbeat interval, given or default."""
        return _or_default(self.heartbeat_interval, DEFAULT_HEARTBEAT_INTERVAL, self.sweep_threshold / 4)

    @property
    def lease(self) -> timedelta:
        """How old its last heartbeat may be for a worker to start jobs; after that, others may recover its jobs."""
        return overdue_after(self.effective_heartbeat_interval, self.sweep_threshold)

    @property
    def heartbeat_timeout(self) -> timedelta:
        """How long a heartbeat may take: another one can follow before the worker is presumed dead."""
        return min(MAX_HEARTBEAT_TIMEOUT, max(MIN_HEARTBEAT_TIMEOUT, self.sweep_threshold / 4))

    @property
    def effective_notify_delay(self) -> timedelta:
        """The delay until tasks are notified of a stop, given or default."""
        if self.notify_tasks_after is not None:
            return self.notify_tasks_after
        return min(DEFAULT_NOTIFY_DELAY, self.grace_period / 2)

    @property
    def effective_sweep_interval(self) -> timedelta:
        """The sweep interval, given or default."""
        return _or_default(self.sweep_interval, DEFAULT_SWEEP_INTERVAL, self.sweep_threshold / 4)

    def __post_init__(self) -> None:
        _check_count("concurrency", self.concurrency, 10_000)
        _check_count("claim_limit", self.claim_limit, 100_000)
        _check_count("claim_bytes", self.claim_bytes, 2**40)
        for name in ("max_jobs", "max_rss"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name), 2**62)
        super().__post_init__()
        for name, interval in (
            ("poll_interval", self.poll_interval),
            ("heartbeat_interval", self.effective_heartbeat_interval),
            ("sweep_interval", self.effective_sweep_interval),
        ):
            if interval < _MIN_INTERVAL:
                raise InvalidSettingError(f"{name} must be at least one millisecond, got {interval}")
        if self.timeout is not None and self.timeout < _MIN_INTERVAL:
            raise InvalidSettingError(f"timeout must be at least one millisecond, got {self.timeout}")
        if not _MIN_INTERVAL <= self.lock_renewal_interval < LOCK_EXPIRY:
            raise InvalidSettingError(
                f"lock_renewal_interval must be at least one millisecond and less than the {LOCK_EXPIRY} after "
                f"which other workers release a lock, got {self.lock_renewal_interval}"
            )
        shortest, longest = self.expired_lock_interval
        if not timedelta(0) < shortest <= longest:
            raise InvalidSettingError(
                f"expired_lock_interval must be a rising pair of durations, got {shortest} and {longest}"
            )
        if isinstance(self.executable_env, str) or not all(map(_is_variable, self.executable_env or ())):
            raise InvalidSettingError(
                f"executable_env must be a list of environment variable names, got {self.executable_env!r}"
            )
        Only.parse(self.only)
        kept = {"history": self.history, "statistics": self.statistics, "keep_failed": self.keep_failed}
        for name, period in kept.items():
            if period is not None and period > MAX_KEEP:
                raise InvalidSettingError(f"{name} must be at most {MAX_KEEP.days} days, got {period}")
        if self.recover and self.sweep_threshold < 2 * self.effective_heartbeat_interval:
            raise InvalidSettingError(
                f"sweep_threshold ({format_duration(self.sweep_threshold)}) must be at least twice heartbeat_interval "
                f"({format_duration(self.effective_heartbeat_interval)}), or live workers would be presumed dead"
            )
        if self.recover and self.effective_sweep_interval > self.sweep_threshold:
            raise InvalidSettingError(
                f"sweep_interval ({format_duration(self.effective_sweep_interval)}) must be at most sweep_threshold "
                f"({format_duration(self.sweep_threshold)}), or dead workers would be found long after it"
            )


def _is_variable(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "=" not in name and "\0" not in name


def _or_default(given: timedelta | None, default: timedelta, longest: timedelta) -> timedelta:
    """Return the given value, or a default limited by the threshold, so that setting the threshold is enough."""
    return min(default, max(_MIN_INTERVAL, longest)) if given is None else given


def _check_count(name: str, value: int, largest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise InvalidSettingError(f"{name} must be a whole number from 1 to {largest}, got {value!r}")
