"""The settings of a worker process and what each may be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import InvalidSettingError

ANCESTORS_STALE_LOCK: Final = timedelta(hours=4)
"""The ancestor's pools free every lock older than this, ours included; it is not for us to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a pool claims, runs and stops. Raises `InvalidSettingError` naming the setting."""

    concurrency: int = 10
    """Worker threads; one of them also serves as the place where a named queue's jobs follow each other."""

    poll_interval: timedelta = timedelta(seconds=2)
    """How often to look for scheduled jobs and retries when no notification comes."""

    look_ahead: timedelta = timedelta(milliseconds=50)
    """How much work, measured in time, a pool claims beyond its free threads."""

    claim_limit: int = 500
    """The most jobs one claim takes."""

    grace_period: timedelta = timedelta(seconds=25)
    """How long running jobs may take to end after the first signal."""

    tell_tasks_after: timedelta = timedelta(seconds=5)
    """How long after the first signal `context.should_stop` is set."""

    interrupted_delay: timedelta = timedelta(seconds=30)
    """How long a job interrupted by the end of the grace period waits before it may run again."""

    stale_lock_sweep: tuple[timedelta, timedelta] = (timedelta(minutes=8), timedelta(minutes=10))
    """Between which spans, at random, locks older than four hours are freed."""

    renew_locks_every: timedelta = timedelta(minutes=10)
    """How often the locks of jobs still running are renewed."""

    use_client_time: bool = False
    """Compare `run_at` with this machine's clock instead of the database's."""

    listen: bool = True
    """LISTEN for new jobs; off, they are found by polling alone."""

    strict: bool = False
    """`run_once` reports failure when any job failed."""

    def __post_init__(self) -> None:
        _check_count("concurrency", self.concurrency, 1, 10_000)
        _check_count("claim_limit", self.claim_limit, 1, 100_000)
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, timedelta) and value < timedelta(0):
                raise InvalidSettingError(f"{each.name} must not be negative, got {value}")
        if self.poll_interval < timedelta(milliseconds=1):
            raise InvalidSettingError(f"poll_interval must be at least one millisecond, got {self.poll_interval}")
        soonest, latest = self.stale_lock_sweep
        if not timedelta(0) < soonest <= latest:
            raise InvalidSettingError(f"stale_lock_sweep must be a rising pair of spans, got {soonest} and {latest}")


def _check_count(name: str, value: int, smallest: int, largest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise InvalidSettingError(f"{name} must be a whole number from {smallest} to {largest}, got {value!r}")
