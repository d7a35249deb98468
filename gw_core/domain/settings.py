"""The settings of a worker process and what each may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gw_core.domain.errors import InvalidSettingError
from gw_core.domain.recovery import INFRASTRUCTURE_RESILIENT, RecoverySettings
from gw_core.domain.recycle_limits import RecycleLimits

ANCESTORS_STALE_LOCK: Final = timedelta(hours=4)
"""The ancestor's pools free every lock older than this, ours included; it is not for us to choose."""

CLAIM_BYTES: Final = 64 * 1024 * 1024
"""How much memory the payloads of one claim may take by default."""

USUAL_HEARTBEAT: Final = timedelta(seconds=30)
USUAL_SWEEP: Final = timedelta(seconds=60)
USUAL_DELAY: Final = timedelta(seconds=30)
_SHORTEST: Final = timedelta(milliseconds=1)


class PoolerMode(StrEnum):
    """What stands between a worker and the server, and for how long it lends us the server's side."""

    NONE = "none"
    SESSION = "session"
    """A pooler that leaves us one server process for as long as we are connected: all works."""
    TRANSACTION = "transaction"
    """A pooler that leaves it for one transaction: no LISTEN, no settings of the session, no prepared statements."""


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

    claim_bytes: int = CLAIM_BYTES
    """How much memory the payloads of one claim may take, in bytes; a single larger job is still claimed."""

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

    executable_env: Sequence[str] | None = None
    """Which variables of this process executable tasks get, beside PATH, HOME and the like; None hands on all."""

    recover: bool = False
    """Sweep: give back the jobs of workers that went silent. The heartbeat is written in any case."""

    heartbeat_interval: timedelta | None = None
    """How often a lasting worker says that it lives; None is 30 s, or a quarter of the threshold if that is less."""

    sweep_interval: timedelta | None = None
    """How often silent workers are looked for; None is 60 s, or a quarter of the threshold if that is less."""

    sweep_threshold: timedelta = timedelta(minutes=5)
    """How long a worker with a heartbeat may be silent."""

    recovery_delay: timedelta | None = None
    """How long a recovered job waits before it runs; None is 30 s, or a tenth of the threshold if that is less."""

    orphans_after: timedelta = ANCESTORS_STALE_LOCK
    """How old the latest lock of a worker without a heartbeat, such as one of Node.js, must be to be swept."""

    resilient_flags: Sequence[str] = (INFRASTRUCTURE_RESILIENT,)
    """A worker that runs a job with one of these flags may be silent for longer."""

    resilient_multiplier: float = 3.0
    """How many times longer."""

    max_jobs: int | None = None
    """End in order after this many jobs; None never."""

    max_lifetime: timedelta | None = None
    """End in order after this long; None never."""

    max_rss: int | None = None
    """End in order when the process uses this many bytes of memory; None never."""

    @property
    def bounds(self) -> RecycleLimits:
        """When a lasting worker ends by itself."""
        return RecycleLimits(max_jobs=self.max_jobs, max_lifetime=self.max_lifetime, max_rss=self.max_rss)

    @property
    def heartbeat_every(self) -> timedelta:
        """How often a lasting worker says that it lives, given or not."""
        return _or_usual(self.heartbeat_interval, USUAL_HEARTBEAT, self.sweep_threshold / 4)

    @property
    def sweep_every(self) -> timedelta:
        """How often silent workers are looked for, given or not."""
        return _or_usual(self.sweep_interval, USUAL_SWEEP, self.sweep_threshold / 4)

    @property
    def recovery(self) -> RecoverySettings:
        """What a sweep needs to know."""
        return RecoverySettings(
            threshold=self.sweep_threshold,
            delay=_or_usual(self.recovery_delay, USUAL_DELAY, self.sweep_threshold / 10),
            orphans_after=self.orphans_after,
            resilient_flags=self.resilient_flags,
            resilient_multiplier=self.resilient_multiplier,
        )

    def __post_init__(self) -> None:
        _check_count("concurrency", self.concurrency, 1, 10_000)
        _check_count("claim_limit", self.claim_limit, 1, 100_000)
        _check_count("claim_bytes", self.claim_bytes, 1, 2**40)
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, timedelta) and value < timedelta(0):
                raise InvalidSettingError(f"{each.name} must not be negative, got {value}")
        if self.poll_interval < timedelta(milliseconds=1):
            raise InvalidSettingError(f"poll_interval must be at least one millisecond, got {self.poll_interval}")
        if not timedelta(milliseconds=1) <= self.renew_locks_every < ANCESTORS_STALE_LOCK:
            raise InvalidSettingError(
                f"renew_locks_every must be at least one millisecond and less than the {ANCESTORS_STALE_LOCK} after "
                f"which other workers free a lock, got {self.renew_locks_every}"
            )
        soonest, latest = self.stale_lock_sweep
        if not timedelta(0) < soonest <= latest:
            raise InvalidSettingError(f"stale_lock_sweep must be a rising pair of spans, got {soonest} and {latest}")
        if isinstance(self.executable_env, str) or not all(map(_is_variable, self.executable_env or ())):
            raise InvalidSettingError(
                f"executable_env must be a list of names of environment variables, got {self.executable_env!r}"
            )
        self._check_recovery()
        for name in ("max_jobs", "max_rss"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name), 1, 2**62)

    def _check_recovery(self) -> None:
        for name, span in (("heartbeat_interval", self.heartbeat_every), ("sweep_interval", self.sweep_every)):
            if span < _SHORTEST:
                raise InvalidSettingError(f"{name} must be at least one millisecond, got {span}")
        if self.recover and self.sweep_threshold < 2 * self.heartbeat_every:
            raise InvalidSettingError(
                f"sweep_threshold ({self.sweep_threshold}) must be at least twice the heartbeat_interval "
                f"({self.heartbeat_every}), or living workers would be taken for dead"
            )
        _ = self.recovery  # its own rules


def _is_variable(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "=" not in name and "\0" not in name


def _or_usual(given: timedelta | None, usual: timedelta, longest: timedelta) -> timedelta:
    """Return what was given, else what is usual: who asks to find crashes in seconds names the threshold alone."""
    return min(usual, max(_SHORTEST, longest)) if given is None else given


def _check_count(name: str, value: int, smallest: int, largest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise InvalidSettingError(f"{name} must be a whole number from {smallest} to {largest}, got {value!r}")
