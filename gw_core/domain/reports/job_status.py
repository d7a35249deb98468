"""Derive what one job's row does not show: why it is not running, and when it is retried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final

import msgspec

from gw_core.domain.durations import format_duration
from gw_core.domain.job.cancellation import Overrun, StopReason
from gw_core.domain.job.expiry import has_expired, has_started
from gw_core.domain.job.group import GROUP_FLAG, WaitingGroup
from gw_core.domain.job.job import Job
from gw_core.domain.job.job_state import JobState
from gw_core.domain.rules.backoff import retry_delay
from gw_core.domain.rules.pause import PAUSE_LOCK, Pause, PauseKind, PauseTarget
from gw_core.domain.rules.settings import LOCK_EXPIRY
from gw_core.domain.rules.sweep_rules import WorkerInfo, known_by
from gw_core.domain.rules.task_limit import TaskLimit

MAX_PLANNED_ATTEMPTS: Final = 100
"""The number of attempts that are projected at most."""

STALE_AFTER: Final = timedelta(minutes=5)
"""A worker whose last heartbeat is older than this is presumed dead."""


class PlannedAttempt(msgspec.Struct, frozen=True):
    """One upcoming attempt, if those before it fail immediately.

    `inferred` is false for a time that is stored in the database.
    """

    number: int
    at: datetime
    inferred: bool


class ReasonCode(StrEnum):
    """Why a job is in its state, as a code."""

    CLAIMABLE = "claimable"
    EXPIRED = "expired"
    EXPIRES = "expires"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    BACKOFF = "backoff"
    RUNNING = "running"
    FAILED = "failed"
    QUEUE_LOCKED = "queue_locked"
    BEHIND_IN_QUEUE = "behind_in_queue"
    NO_WORKER_FOR_TASK = "no_worker_for_task"
    NO_HEARTBEAT = "no_heartbeat"
    FLAGGED = "flagged"
    WORKER_STALE = "worker_stale"
    LOCK_EXPIRED = "lock_expired"
    OVERRAN = "overran"
    RETIRED = "retired"
    PAUSED = "paused"
    LIMITED = "limited"


class Reason(msgspec.Struct, frozen=True):
    """Why a job is in its state; `inferred` if the database does not store it."""

    code: ReasonCode
    message: str
    inferred: bool = False


def is_live(worker: WorkerInfo) -> bool:
    """Return whether the worker's last heartbeat is recent."""
    return worker.heartbeat_age is not None and worker.heartbeat_age <= STALE_AFTER


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a job, read at `now` of the database's clock.

    `ahead` counts the jobs of its queue that come first, up to a limit; None where counting them would cost too much.
    `workers` are those that send heartbeats. `locked_with_value` counts the locked jobs with its value of the field by
    which its task has a limit.
    """

    now: datetime
    queue_held_by: str | None = None
    queue_held_at: datetime | None = None
    ahead: int | None = None
    ahead_is_bound: bool = False
    workers: Sequence[WorkerInfo] = ()
    pauses: Sequence[Pause] = ()
    limit: TaskLimit | None = None
    locked_with_value: int | None = None
    waiting: WaitingGroup | None = None
    """What it waits for."""


# -- when it will be tried -------------------------------------------------------------------------------------------


def retry_schedule(job: Job, state: JobState, now: datetime) -> tuple[PlannedAttempt, ...]:
    """Return the upcoming attempts; those of a running job follow the current attempt."""
    if state in (JobState.FAILED, JobState.WAITING):
        return ()
    return tuple(islice(_attempts(job, state, now), MAX_PLANNED_ATTEMPTS))


def _attempts(job: Job, state: JobState, now: datetime) -> Iterator[PlannedAttempt]:
    number, at, inferred = job.attempts + 1, max(job.run_at, now), job.run_at <= now
    try:
        if state is JobState.RUNNING:
            at, inferred = at + retry_delay(job.attempts), True
        while number <= job.max_attempts:
            yield PlannedAttempt(number, at, inferred)
            at, number, inferred = at + retry_delay(number), number + 1, True
    except OverflowError:  # the calendar ends; a job scheduled for infinity is not retried
        return


# -- why it is not running -------------------------------------------------------------------------------------------


def reasons(job: Job, state: JobState, around: JobFacts) -> tuple[Reason, ...]:
    """Return why the job is in its state, most important first; messages contain raw data, unsafe for a terminal."""
    match state:
        case JobState.RUNNING:
            return tuple(_of_running(job, around))
        case JobState.FAILED if has_expired(job):
            message = "it expired: no worker started it in time; a retry runs it, whatever the time"
            return (Reason(ReasonCode.EXPIRED, message),)
        case JobState.FAILED:
            most = job.max_attempts
            tries = "its only attempt is used up" if most == 1 else f"all {most} attempts are used up"
            return (Reason(ReasonCode.FAILED, f"it failed permanently: {tries}"),)
        case JobState.SCHEDULED:
            first = Reason(ReasonCode.SCHEDULED, f"it is scheduled for later: {_in(job.run_at, around.now)}")
        case JobState.WAITING:
            waiting = around.waiting
            message = "its time is infinity, and it waits for no job" if waiting is None else waiting.sentence
            first = Reason(ReasonCode.WAITING, message)
        case JobState.BACKOFF:
            message = f"attempt {job.attempts} failed, the next is due later: {_in(job.run_at, around.now)}"
            first = Reason(ReasonCode.BACKOFF, message)
        case JobState.READY:
            found = (
                *_of_pauses(job, around),
                *_of_limit(around),
                *_of_queue(job, around),
                *_of_workers(job, around),
            )
            claimable = Reason(ReasonCode.CLAIMABLE, "nothing prevents a claim: a worker can claim it now")
            return (*(found or (claimable,)), *_of_expiry(job, around))
    return (first, *_of_pauses(job, around), *_of_workers(job, around), *_of_expiry(job, around))


def _of_expiry(job: Job, around: JobFacts) -> Iterator[Reason]:
    if job.expires_at is not None and not has_started(job):
        yield Reason(ReasonCode.EXPIRES, f"it expires unless it starts in time: {_in(job.expires_at, around.now)}")


def _of_running(job: Job, around: JobFacts) -> Iterator[Reason]:
    since = around.now - job.started_at if job.started_at is not None else timedelta()
    renewed = around.now - job.locked_at if job.locked_at is not None else timedelta()
    worker = next((each for each in around.workers if each.id == job.locked_by), None)
    # A worker that was killed seconds ago looks like a live one, so the reader has to know the age of the heartbeat.
    age = "" if worker is None else _rounded(worker.heartbeat_age or timedelta())
    last = f"; its last heartbeat was {age} ago" if worker else ""
    yield Reason(ReasonCode.RUNNING, f"{job.locked_by} runs attempt {job.attempts}, for {_rounded(since)}{last}")
    for overrun in () if worker is None else worker.overruns:
        if overrun.job_id == job.id and overrun.age <= since:  # else of an earlier attempt
            yield Reason(ReasonCode.OVERRAN, _of_overrun(overrun, job))
    if worker is not None and not is_live(worker):
        yield Reason(ReasonCode.WORKER_STALE, f"{job.locked_by} has sent no heartbeat for {age}: it may be dead", True)
    if renewed > LOCK_EXPIRY:
        yield Reason(
            ReasonCode.LOCK_EXPIRED, f"its lock was not renewed for {_rounded(renewed)}: its worker may be dead", True
        )
    if job.job_key is None and job.attempts >= job.max_attempts and job._updated_at > (job._started or 0):
        yield Reason(ReasonCode.RETIRED, "it was removed or superseded while running: it will not be retried", True)


def _of_overrun(overrun: Overrun, job: Job) -> str:
    """Return what became of a task that was stopped and still runs."""
    age = _rounded(overrun.age)
    happened = (
        f"it was cancelled {age} ago" if overrun.reason is StopReason.CANCELLED else f"its timeout passed {age} ago"
    )
    return f"{happened}, but its task still runs and holds thread {overrun.thread}; it fails when the task returns"


def _of_pauses(job: Job, around: JobFacts) -> Iterator[Reason]:
    for pause in around.pauses:
        if pause.applies_to(job):
            what = (
                "everything" if pause.target.kind is PauseKind.ALL else f"its {pause.target.kind} {pause.target.name}"
            )
            yield Reason(ReasonCode.PAUSED, f"{what} is {pause.description}")


def why_task_waits(task: str, pauses: Iterable[Pause], limits: Iterable[TaskLimit]) -> Reason | None:
    """Return the pause or the full limit that keeps all due jobs of a task waiting; None if nothing of the two does."""
    for pause in pauses:
        if pause.target in (PauseTarget(PauseKind.ALL), PauseTarget(PauseKind.TASK, task)):
            return Reason(ReasonCode.PAUSED, f"{pause.target} is {pause.description}")
    for limit in limits:
        if limit.task == task and (limit.is_full or not limit.has_index):
            what = "its limit is reached" if limit.has_index else f"the index of {limit.field} for its limit is missing"
            return Reason(ReasonCode.LIMITED, f"{what}: {limit.description}")
    return None


def _of_limit(around: JobFacts) -> Iterator[Reason]:
    limit, locked = around.limit, around.locked_with_value
    if limit is None:
        return
    if not limit.has_index:
        message = f"its task has a limit by {limit.field} without an index, so none of its jobs is claimed"
        yield Reason(ReasonCode.LIMITED, message)
    elif locked is not None and limit.running is not None and locked >= limit.running:
        message = (
            f"its task has a limit by {limit.field}: {locked} of at most {limit.running} with the same value are locked"
        )
        yield Reason(ReasonCode.LIMITED, message)
    elif limit.is_full or limit.per_period is not None:
        yield Reason(ReasonCode.LIMITED, f"its task has a limit: {limit.description}", not limit.is_full)


def _of_queue(job: Job, around: JobFacts) -> Iterator[Reason]:
    if around.queue_held_at is not None and not (around.queue_held_by or "").startswith(PAUSE_LOCK):
        since = _rounded(around.now - around.queue_held_at)
        yield Reason(
            ReasonCode.QUEUE_LOCKED, f"its queue {job.queue_name} is locked by {around.queue_held_by}, for {since}"
        )
    if around.ahead:
        jobs = "1 job is" if around.ahead == 1 else f"{around.ahead}{' or more' * around.ahead_is_bound} jobs are"
        yield Reason(ReasonCode.BEHIND_IN_QUEUE, f"{jobs} ahead of it in its queue {job.queue_name}")


def _of_workers(job: Job, around: JobFacts) -> Iterator[Reason]:
    alive = [each for each in around.workers if is_live(each)]
    if not alive:
        message = "no worker sends heartbeats here, so there may be none; workers in other languages send none"
        yield Reason(ReasonCode.NO_HEARTBEAT, message, True)
    elif known_by(job.task, alive) == ():
        who = "the only worker that sends heartbeats does not know"
        if len(alive) > 1:
            who = f"none of {len(alive)} workers that send heartbeats knows"
        message = f"{who} the task {job.task}; workers in other languages send none"
        yield Reason(ReasonCode.NO_WORKER_FOR_TASK, message, True)
    if flags := ", ".join(name for name in job.flags if name != GROUP_FLAG):
        yield Reason(ReasonCode.FLAGGED, f"workers that forbid one of its flags skip it: {flags}", True)


def _in(at: datetime, now: datetime) -> str:
    return f"in {_rounded(at - now)}"


def _rounded(duration: timedelta) -> str:
    """Return a duration rounded to its two largest units."""
    whole = timedelta(seconds=max(0, round(duration.total_seconds())))
    if whole >= timedelta(days=1):
        whole -= whole % timedelta(hours=1)
    elif whole >= timedelta(hours=1):
        whole -= whole % timedelta(minutes=1)
    return format_duration(whole)
