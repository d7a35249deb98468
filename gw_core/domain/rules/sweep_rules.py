"""Decide which workers are dead, and what happens to their jobs: from durations, without a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import structs

from gw_core.domain.durations import DurationField, settings
from gw_core.domain.errors import InvalidSettingError
from gw_core.domain.job.cancellation import Overrun
from gw_core.domain.job.job import Job, check_count

RECOVERED_MESSAGE: Final = "Job recovered after worker interruption"
"""The `last_error` of a recovered job; the same text as graphile_worker_rs."""

WORKER_CRASHED: Final = "WorkerCrashed"
"""Why a job was interrupted, for recovery hooks; and the error of an attempt they let fail."""

INFRASTRUCTURE_RESILIENT: Final = "infrastructure_resilient"
"""The flag of jobs that keep their worker from sending heartbeats for long."""

DEFAULT_DELAY: Final = timedelta(seconds=30)


@settings
class RecoverySettings:
    """When a worker counts as dead, and how its jobs go back. Raises `InvalidSettingError` naming the setting.

    Example: docs/api/gw_core.md
    """

    sweep_threshold: DurationField[timedelta] = DurationField(timedelta(minutes=5))
    """The age of the last heartbeat after which a worker is presumed dead."""

    recovery_delay: DurationField[timedelta | None] = DurationField(None)
    """The delay before a recovered job may run; None is 30 s, or a tenth of the threshold if that is less."""

    orphans_after: DurationField[timedelta] = DurationField(timedelta(hours=4))
    """The age of the newest lock after which a worker without heartbeats, such as a Node.js one, is presumed dead."""

    resilient_flags: Sequence[str] = (INFRASTRUCTURE_RESILIENT,)
    """A worker that runs a job with one of these flags gets a longer threshold."""

    resilient_multiplier: float = 3.0
    """The factor for that threshold."""

    @property
    def effective_recovery_delay(self) -> timedelta:
        """The delay, given or default."""
        return min(DEFAULT_DELAY, self.sweep_threshold / 10) if self.recovery_delay is None else self.recovery_delay

    def allowed_inactivity(self, worker: WorkerInfo) -> timedelta:
        """Return how long a worker may be inactive before it is presumed dead."""
        if not worker.has_heartbeat:
            return self.orphans_after
        return self.sweep_threshold * (self.resilient_multiplier if worker.is_resilient else 1)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, timedelta) and value < timedelta(0):
                raise InvalidSettingError(f"{each.name} must not be negative, got {value}")
        if isinstance(self.resilient_flags, str):
            raise InvalidSettingError(f"resilient_flags must be a list of names, got {self.resilient_flags!r}")
        if not 1 <= self.resilient_multiplier <= 1_000_000:
            raise InvalidSettingError(
                f"resilient_multiplier must be a number from 1 to 1000000, got {self.resilient_multiplier!r}"
            )


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process as the database knows it: by its heartbeat, by the locks it holds, or by both.

    Example: docs/api/parts.md
    """

    id: str
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    started_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    heartbeat_age: timedelta | None = None
    """How long ago the last heartbeat was; None for a worker that has none."""
    lock_age: timedelta | None = None
    """How long ago it last took or renewed a lock it holds; None when it holds none."""
    oldest_lock_age: timedelta | None = None
    """How long ago it took or renewed the oldest of its locks; None where that was not read."""
    jobs: int = 0
    """How many jobs it holds."""
    queues: int = 0
    """How many named queues it holds."""
    is_resilient: bool = False
    """Whether one of its jobs has a flag that gives it the longer timeout."""
    is_stale: bool = False
    """Whether it counts as dead."""
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def has_heartbeat(self) -> bool:
        """False for a worker known by its locks alone, such as one of Node.js."""
        return self.heartbeat_age is not None

    @property
    def tasks(self) -> frozenset[str] | None:
        """The tasks it reports; None if it reports none."""
        tasks = self.metadata.get("tasks")
        return frozenset(each for each in tasks if isinstance(each, str)) if isinstance(tasks, list) else None

    @property
    def overruns(self) -> tuple[Overrun, ...]:
        """The tasks that its last heartbeat reports as still running although they were stopped."""
        passed = self.heartbeat_age or timedelta(0)
        try:
            found = msgspec.convert(self.metadata.get("overruns", ()), tuple[Overrun, ...])
            return tuple(structs.replace(each, age=each.age + passed) for each in found)
        except (msgspec.ValidationError, OverflowError):  # not what a worker of this version writes
            return ()

    @property
    def inactive_for(self) -> timedelta:
        """How long ago the last activity was: a heartbeat, or a lock taken or renewed."""
        signs = [age for age in (self.heartbeat_age, self.lock_age) if age is not None]
        return max(timedelta(0), min(signs, default=timedelta(0)))


def is_dead(worker: WorkerInfo, settings: RecoverySettings, *, possible_for: timedelta | None = None) -> bool:
    """Return whether a worker is presumed dead; one with a fresh lock is alive, whatever its heartbeat is.

    `possible_for` is how long heartbeats were possible at all: a server that was down received none.
    """
    inactivity = worker.inactive_for if possible_for is None else min(worker.inactive_for, possible_for)
    return inactivity >= settings.allowed_inactivity(worker)


def overdue_after(every: timedelta, tolerated: timedelta) -> timedelta:
    """Return how old a worker's own last heartbeat may be before it reckons with being presumed dead."""
    return max(1.5 * every, tolerated / 2)


# -- what hooks decide ---------------------------------------------------------------------------------------------


class Reschedule(msgspec.Struct, frozen=True):
    """Return the job to run at this time, with this many attempts counted (None: do not count this one).

    Example: docs/guide/troubleshooting.md
    """

    run_at: datetime
    attempts: int | None = None

    def __post_init__(self) -> None:
        if self.run_at.tzinfo is None:
            raise InvalidSettingError("run_at has no time zone; give an aware datetime")
        check_count("attempts", self.attempts, 0)


class FailWithBackoff(msgspec.Struct, frozen=True):
    """Fail the attempt as if the task had raised: it stays counted, and the usual backoff applies.

    Example: docs/guide/troubleshooting.md
    """


class SkipRecovery(msgspec.Struct, frozen=True):
    """Leave the job locked; the next sweep asks again.

    Example: docs/guide/troubleshooting.md
    """


Decision = Reschedule | FailWithBackoff | SkipRecovery
"""A decision about the job of a dead worker.

Example: docs/guide/troubleshooting.md
"""
RecoveryHook = Callable[[Job, str, str, str | None], Decision | None]
"""Called with the job, the id of the dead worker, the reason and the id of the sweeping worker; None is the default."""


def decide(
    hooks: Sequence[RecoveryHook],
    job: Job,
    dead_worker: str,
    recovered_by: str | None,
    on_error: Callable[[Job, Exception], None],
) -> Decision | None:
    """Ask the hooks in order and return the first decision; None is the default.

    One that raises, or answers something else, is reported and counts as the default.
    """
    for hook in hooks:
        try:
            answer = hook(job, dead_worker, WORKER_CRASHED, recovered_by)
            if answer is not None and not isinstance(answer, Decision):
                raise TypeError(f"on_recovery returned {type(answer).__name__}, which is not a decision")
        except Exception as error:  # noqa: BLE001 - user code; one bad hook must not keep jobs locked
            on_error(job, error)
            continue
        if answer is not None:
            return answer
    return None


# -- what a sweep did ----------------------------------------------------------------------------------------------


class SweepReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep, or with `dry_run` the result that it would have.

    Example: docs/api/parts.md
    """

    dry_run: bool = False
    workers: tuple[WorkerInfo, ...] = ()
    """The workers that counted as dead."""
    jobs: int = 0
    """How many jobs were returned to the queue."""
    queues: int = 0
    """How many named queues were released: those of dead workers, and those that were locked without a job."""
    skipped: int = 0
    """How many jobs a hook left locked."""


class OrphanedQueue(msgspec.Struct, frozen=True):
    """A named queue that is locked although none of its jobs is, so that they all wait."""

    name: str
    worker_id: str
    locked_for: timedelta


# -- lists of workers ----------------------------------------------------------------------------------------------


def known_by(task: str, live: Sequence[WorkerInfo]) -> tuple[str, ...] | None:
    """Return the ids of the live workers that report a task.

    None, unknown, if none does and one of them, such as a Node.js worker, does not report its tasks; or without any.
    """
    known = tuple(each.id for each in live if task in (each.tasks or ()))
    return None if not known and tasks_of(live) is None else known


def tasks_of(live: Sequence[WorkerInfo]) -> frozenset[str] | None:
    """Return the tasks that these workers know; None, unknown, without any, and unless all of them report theirs."""
    if not live or any(each.tasks is None for each in live):
        return None
    return frozenset().union(*(each.tasks or () for each in live))


def merged(heartbeats: Sequence[WorkerInfo], holders: Sequence[WorkerInfo]) -> list[WorkerInfo]:
    """Return one entry for each worker: those with a heartbeat in their order, then holders of locks without one."""
    held = {holder.id: holder for holder in holders}
    living: dict[str, WorkerInfo] = {}
    for heartbeat in heartbeats:
        # A worker may be in gw's table and in graphile_worker_rs's; the later heartbeat counts.
        living[heartbeat.id] = _fresher(living[heartbeat.id], heartbeat) if heartbeat.id in living else heartbeat
    with_locks = [_with_locks(worker, held.pop(worker.id, None)) for worker in living.values()]
    return [*with_locks, *held.values()]


def _fresher(known: WorkerInfo, other: WorkerInfo) -> WorkerInfo:
    mine, theirs = known.heartbeat_age, other.heartbeat_age
    if mine is None or theirs is None or mine <= theirs:
        return known
    return structs.replace(known, heartbeat_age=theirs, last_heartbeat_at=other.last_heartbeat_at)


def _with_locks(worker: WorkerInfo, holder: WorkerInfo | None) -> WorkerInfo:
    if holder is None:
        return worker
    return structs.replace(
        worker, jobs=holder.jobs, queues=holder.queues, lock_age=holder.lock_age, is_resilient=holder.is_resilient
    )
