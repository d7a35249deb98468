"""Alerts for the operator, the most severe first: rules over query results, without a database or a clock.

`CAUSES` is the table of them: each rests on one fact in the database, and ends with it.
"""

# Long: each cause of an alert is a function, and one table has all of them.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gw_core import JobState
from gw_core.front_ends import MIN_FAILURES, PauseKind, ReasonCode, counted, why_task_waits, written
from gw_tui.rules.task_info import TaskInfo, tasks_of
from gw_tui.text import formatting
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core import CronItem
    from gw_core.front_ends import Blocker, Count, FoundJob, LockWaits, QueueSize, QueueSnapshot, Reason
    from gw_core.operations import Finding, Pause, QueueCounts, QueueReport, RunSeries, TaskLimit, WorkerInfo
    from gw_tui.rules.recurring import Crontabs

LONG_WAIT: Final = timedelta(minutes=5)
LONG_ALONE: Final = timedelta(seconds=30)
"""So long jobs may wait while no worker is known at all: one may be starting."""
LONG_HOLD: Final = timedelta(minutes=15)
LONG_LOCK: Final = timedelta(hours=4)
LATE_RUN: Final = timedelta(seconds=90)
"""A recurring task may start this late before it counts as missed."""
DEAD_ROWS: Final = 5
MIN_DEAD_ROWS: Final = 10_000
MAX_OF_A_KIND: Final = 3
MOST_FAIL: Final = 0.5
"""From this share on, failures are critical."""
MANY_ATTEMPTS: Final = 5
"""A job that failed so often is unlikely to succeed without help."""
MIN_LARGE: Final = 1_000
"""A queue with fewer due jobs is not large."""
LARGE_SHARE: Final = 0.5
"""Nor is one with a smaller share of the due jobs of all queues."""

WORKER_PARTS: Final = frozenset({"workers", "rust workers", "locks", "queues"})
"""The parts of a snapshot that name workers."""

JUDGED_HERE: Final = frozenset({"locks", "workers", "backlog", "server", "failed", "blocked"})
"""Checks of the doctor that the console evaluates on fresher data."""


class Severity(IntEnum):
    """How bad it is; the lowest is the worst."""

    CRITICAL = 0
    WARNING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition that needs action: its message, its age, and the screen and filter that show it."""

    severity: Severity
    what: str
    age: timedelta | None = None
    place: str = "locks"
    filter: str = ""
    subject: str = ""
    """What it is about, the same however its wording changes; its wording when empty."""
    because: str = ""
    """The fact that it rests on."""
    act: str = ""
    """The command that ends it here; empty if none does."""
    target: str = ""
    """What that command acts on: a task or queue as `task:NAME`, a worker, or the number of a session."""
    remedy: str = ""
    """What ends it, as a command of `gw` or in words."""
    task: str = ""
    """The task whose last error shows why."""

    @property
    def key(self) -> str:
        """What distinguishes it from the others."""
        return f"{self.place}/{self.subject or self.what}"


_critical = partial(Alert, severity=Severity.CRITICAL)
_warning = partial(Alert, severity=Severity.WARNING)


PARTS: Final = {
    "waits": "lock waits",
    "statistics": "counts",
    "findings": "findings",
    "held": "locked queues",
    "sizes": "queue sizes",
    "errors": "errors",
    "crontabs": "recurring tasks",
}
"""The parts of a sample that alerts rest on, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSample:
    """What the overview asks beside the snapshot. None is unknown: not asked, not answered yet, or not in time."""

    asked: Collection[str] = ()
    """The parts that were asked for."""
    statistics: QueueCounts | None = None
    held: Sequence[QueueReport] | None = None
    """The locked queues with their due jobs; asked for while a worker is gone."""
    crontabs: Crontabs | None = None
    findings: Sequence[Finding] | None = None
    runs: RunSeries | None = None
    """What workers recorded for each minute."""
    sizes: Sequence[QueueSize] | None = None
    """The named queues with waiting jobs, the most due jobs first."""
    errors: Sequence[FoundJob] | None = None
    """Some jobs with errors."""
    waits: LockWaits | None = None
    """Who blocks whom; asked for while a session waits for a lock."""

    @classmethod
    def of(cls, answers: Mapping[str, Any]) -> QueueSample:
        """Return the sample with these answers, None for each that is missing."""
        return cls(asked=tuple(answers), **answers)

    def with_missing_of(self, before: QueueSample) -> QueueSample:
        """Return this sample with its unknown parts as they were."""
        missing = {name: getattr(before, name) for name in self.asked if getattr(self, name) is None}
        return replace(self, **missing)

    @property
    def unknown(self) -> Sequence[str]:
        """The parts that alerts rest on and that could not be read, in words."""
        return [words for name, words in PARTS.items() if name in self.asked and getattr(self, name) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertInput:
    """The facts that alerts are derived from."""

    snapshot: QueueSnapshot
    sample: QueueSample
    is_listening: bool = True

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """The tasks that have jobs."""
        statistics = self.sample.statistics
        return () if statistics is None else tuple(tasks_of(statistics, self.snapshot))

    @property
    def pauses(self) -> Mapping[str, Pause]:
        """What is paused, by its target, such as `task:mail`."""
        statistics = self.sample.statistics
        return {} if statistics is None else {str(each.target): each for each in statistics.pauses}

    @property
    def limits(self) -> Mapping[str, TaskLimit]:
        """The limits, by task."""
        statistics = self.sample.statistics
        return {} if statistics is None else {each.task: each for each in statistics.limits}


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that is wrong: the fact in the database that it rests on, and the alerts while the fact holds."""

    fact: str
    alerts: Callable[[AlertInput], Iterator[Alert]]


def alerts(known: AlertInput) -> list[Alert]:
    """Return all alerts, the most severe first: what blocks the queue stands above everything else."""
    found = [
        (place, replace(alert, because=alert.because or cause.fact))
        for place, cause in enumerate(CAUSES)
        for alert in cause.alerts(known)
    ]

    def weight(each: tuple[int, Alert]) -> tuple[int, bool, float]:
        place, alert = each
        return alert.severity, place > 0, -(alert.age or timedelta()).total_seconds()

    return [alert for _, alert in sorted(found, key=weight)]


# -- the database ------------------------------------------------------------------------------------------------------


def _blocked(known: AlertInput) -> Iterator[Alert]:
    for blocker in blockers(known)[:MAX_OF_A_KIND]:
        pid = str(blocker.session.pid)
        yield _critical(
            what=blocker.description,
            subject=f"blocker {pid}",
            age=blocker.age,
            filter=f"blocker {pid}",
            act="end_session",
            target=pid,
            remedy=f"select pg_terminate_backend({pid})",
        )


def blockers(known: AlertInput) -> list[Blocker]:
    """Return the sessions that keep sessions of the queue waiting, the most harmful first."""
    waits = known.sample.waits
    return [] if waits is None or not known.snapshot.blocked else waits.blockers_of(known.snapshot.schema.name)


def _server(known: AlertInput) -> Iterator[Alert]:
    snapshot = known.snapshot
    if snapshot.schema.rows_hidden:
        yield _critical(what=f"row-level security hides jobs from {snapshot.server.user}", remedy="gw doctor")
    if snapshot.server.in_recovery:
        yield _warning(what="read-only standby: actions are disabled")
    elif not snapshot.server.may_change_jobs:
        yield _warning(what="this role may only read: actions are disabled")
    if not known.is_listening:
        yield _warning(what="not listening for new jobs: polling only", place="events")
    if blockers(known):
        return  # the cause is named
    for part, why in snapshot.errors[:MAX_OF_A_KIND]:
        place = "locks" if snapshot.blocked else "events"
        yield _warning(what=f"{part} unavailable: {why}", subject=part, place=place)


# -- workers and queues ------------------------------------------------------------------------------------------------


def _workers(known: AlertInput) -> Iterator[Alert]:
    workers = known.snapshot.workers
    gone = [each for each in workers if each.is_stale and (each.jobs or each.queues)]
    dead = sorted(gone, key=lambda each: (-each.queues, -each.jobs, each.id))
    for worker in dead[:MAX_OF_A_KIND]:
        yield _critical(
            what=f"{_behind(known, worker)}: worker {worker.id} is gone",
            subject=worker.id,
            age=worker.inactive_for,
            place="workers",
            filter=worker.id,
            act="unlock",
            target=worker.id,
            remedy=f"gw unlock {worker.id}",
        )
    if (more := len(dead) - MAX_OF_A_KIND) > 0:
        words = f"{counted(more, 'more worker')} gone"
        yield _critical(what=words, subject="more", place="workers", remedy="gw sweep")


def _old_locks(known: AlertInput) -> Iterator[Alert]:
    workers = known.snapshot.live_workers
    old = [worker for worker in workers if (worker.lock_age or timedelta()) > LONG_LOCK]
    for worker in old[:MAX_OF_A_KIND]:
        what = f"lock older than 4 h: {worker.id}"
        yield _warning(what=what, age=worker.lock_age, place="workers", filter=worker.id)


def _behind(known: AlertInput, worker: WorkerInfo) -> str:
    """Return what a dead worker holds up: its queues with their due jobs, or else its own jobs."""
    names = {each.name for each in known.snapshot.locked_queues if each.locked_by == worker.id}
    if not names:
        return f"{counted(worker.jobs, 'job')} locked"
    queues = counted(len(names), "queue")
    reports = [each for each in known.sample.held or () if each.name in names]
    due = sum(each.due.value for each in reports)
    if len(reports) < len(names) or not due:  # not counted, or not all of them; or nothing waits
        return f"{queues} locked"
    bound = "+" if any(each.due.quality.value == "at_least" for each in reports) else ""
    waits = "waits" if due == 1 and not bound else "wait"
    return f"{due:,}{bound} due {'job' if due == 1 else 'jobs'} in {queues} {waits}"


def _queues(known: AlertInput) -> Iterator[Alert]:
    dead = {worker.id for worker in known.snapshot.workers if worker.is_stale}
    alive = [queue for queue in known.snapshot.locked_queues if queue.locked_by not in dead and not queue.is_paused]
    held = [(known.snapshot.at - queue.locked_at, queue) for queue in alive]
    long = sorted((each for each in held if each[0] > LONG_HOLD), key=lambda each: each[0], reverse=True)
    for age, queue in long[:MAX_OF_A_KIND]:
        what = f"queue {queue.name} locked by {queue.locked_by}"
        yield _warning(what=what, subject=f"queue {queue.name}", age=age, place="queues", filter=queue.name)


def _large_queues(known: AlertInput) -> Iterator[Alert]:
    """Name a queue that has most of the due jobs."""
    sizes = known.sample.sizes or ()
    due = sum(each.due for each in sizes)
    for queue in sizes[:1]:
        if queue.due >= MIN_LARGE and queue.due > LARGE_SHARE * due and len(sizes) > 1:
            others = len(sizes) - 1
            yield _warning(
                what=f"queue {queue.name}: {queue.due:,} due jobs, {due - queue.due:,} in {counted(others, 'other')}",
                subject=f"large {queue.name}",
                place="queues",
                filter=queue.name,
                act="pause",
                target=f"queue:{queue.name}",
                remedy=f"gw list 'queue:{queue.name}'",
            )


def _pauses(known: AlertInput) -> Iterator[Alert]:
    """Name what an operator has paused for so long that it may have been forgotten, or that keeps jobs waiting."""
    ready = {each.name: each.jobs[JobState.READY] for each in known.tasks}
    for target, pause in known.pauses.items():
        waiting = ready.get(pause.target.name) if pause.target.kind is PauseKind.TASK else None
        age = known.snapshot.at - pause.since
        if age <= LONG_HOLD and not (waiting is not None and waiting.value) and pause.target.kind is not PauseKind.ALL:
            continue
        places = {PauseKind.TASK: "tasks", PauseKind.QUEUE: "queues", PauseKind.CRON: "cron"}
        place = places.get(pause.target.kind, "locks")
        reason = "" if pause.reason is None else f": {pause.reason}"
        jobs = "" if waiting is None or not waiting.value else f", {formatting.count(waiting)} ready"
        what = "everything" if pause.target.kind is PauseKind.ALL else f"{pause.target.kind} {pause.target.name}"
        yield _warning(
            what=f"{what} is paused by {pause.by}{reason}{jobs}",
            subject=target,
            age=age,
            place=place,
            filter=pause.target.name if place != "locks" else "pauses",
            act="pause",
            target=target,
            remedy=f"gw resume {target}",
        )


# -- jobs that wait ----------------------------------------------------------------------------------------------------


def _backlog(known: AlertInput) -> Iterator[Alert]:
    snapshot = known.snapshot
    task, age = _oldest_that_can_run(known)
    if age is None or "all" in known.pauses:
        return
    words = "" if task is None else f" ({task})"
    if not _alive(snapshot) and knows_workers(snapshot):
        if age > LONG_ALONE:
            what = f"jobs are waiting, no live worker{words}{_may_live(snapshot)}"
            yield _critical(what=what, subject="backlog", age=age, place="workers", remedy="gw run")
    elif age > LONG_WAIT:
        is_oldest = snapshot.oldest is None or task == snapshot.oldest.oldest_task
        oldest = "oldest ready job" if is_oldest else "oldest ready job of a task without another cause"
        limit = known.limits.get(task or "")
        by_field = "" if limit is None or limit.field is None else f", limited for each {limit.field}"
        yield _warning(
            what=f"{oldest}{words}{by_field}",
            subject="backlog",
            age=age,
            place="jobs",
            filter="state:ready" if task is None else f"state:ready task:{written(task)}",
            remedy="more workers, or a higher --concurrency",
        )


def _alive(snapshot: QueueSnapshot) -> bool:
    """Return whether any worker has sent a heartbeat, or taken or renewed a lock, lately."""
    return any(each.has_heartbeat or each.inactive_for <= LONG_WAIT for each in snapshot.live_workers)


def knows_workers(snapshot: QueueSnapshot) -> bool:
    """Return whether heartbeats and locks could be read: none is known then from none being there."""
    return not snapshot.schema.rows_hidden and WORKER_PARTS.isdisjoint(dict(snapshot.errors))


def _may_live(snapshot: QueueSnapshot) -> str:
    found = [each for each in snapshot.live_workers if not each.has_heartbeat]
    return "".join(f"; {each.id} last took a lock {formatting.duration(each.lock_age)} ago" for each in found[:1])


def _oldest_that_can_run(known: AlertInput) -> tuple[str | None, timedelta | None]:
    """Return the task whose job has been due for longest, and for how long; tasks with a cause of their own aside."""
    snapshot = known.snapshot
    explained = {each.name for each in known.tasks if _is_explained(known, each)}
    oldest = snapshot.oldest
    if oldest is None or oldest.oldest_task not in explained:
        return (None if oldest is None else oldest.oldest_task), snapshot.backlog_age
    due = [(each.activity.due_since, each.name) for each in known.tasks if each.name not in explained]
    since, task = min(((at, name) for at, name in due if at is not None), default=(None, None))
    return task, None if since is None else snapshot.at - since


def _is_explained(known: AlertInput, task: TaskInfo) -> bool:
    """Return whether another cause keeps the jobs of a task waiting."""
    return _lacks_worker(known, task) or _why(known, task) is not None


def _why(known: AlertInput, task: TaskInfo) -> Reason | None:
    """Return the pause or the full limit that keeps a task waiting; the doctor judges by the same rule."""
    return why_task_waits(task.name, known.pauses.values(), known.limits.values())


def _limits(known: AlertInput) -> Iterator[Alert]:
    limited = [each for each in known.tasks if (why := _why(known, each)) and why.code is ReasonCode.LIMITED]
    long = [each for each in limited if (_due_for(known, each) or timedelta()) > LONG_WAIT]
    for task in _most(long, lambda each: each.jobs[JobState.READY].value):
        limit = known.limits[task.name]
        yield _warning(
            what=f"{task.name}: {formatting.count(task.jobs[JobState.READY])} ready, limited: {limit.description}",
            subject=f"limit {task.name}",
            age=_due_for(known, task),
            place="tasks",
            filter=task.name,
            act="limit",
            target=task.name,
            remedy=f"gw limit {task.name}",
        )


def _due_for(known: AlertInput, task: TaskInfo) -> timedelta | None:
    since = task.activity.due_since
    return None if since is None else known.snapshot.at - since


def drain_time(ready: Count, done: float | None) -> timedelta | None:
    """Return how long the ready jobs will take at the current rate, by Little's law; None if that is unknown."""
    return None if not done or ready.quality.value == "at_least" else timedelta(seconds=ready.value / done)


# -- tasks -------------------------------------------------------------------------------------------------------------


def _unknown_tasks(known: AlertInput) -> Iterator[Alert]:
    found = [each for each in known.tasks if _lacks_worker(known, each) and each.jobs[JobState.READY].value]
    for task in _most(found, lambda each: each.jobs[JobState.READY].value):
        others = [each for each in known.snapshot.live_workers if each.tasks is None]
        who = "no live worker knows it"
        if not task.is_unknown:
            who = f"no gw worker knows it; {others[0].id} may" if others else "no gw worker that was read knows it"
        yield Alert(
            severity=Severity.CRITICAL if task.is_unknown else Severity.WARNING,
            what=f"{task.name}: {formatting.count(task.jobs[JobState.READY])} ready, {who}",
            subject=task.name,
            age=_due_for(known, task),
            place="jobs",
            filter=f"state:ready task:{written(task.name)}",
            remedy="start a worker that has the task",
        )


def _lacks_worker(known: AlertInput, task: TaskInfo) -> bool:
    """Return whether gw workers are alive, and none of them reports a task."""
    return not task.known_by and any(each.tasks is not None for each in known.snapshot.live_workers)


def _failing(known: AlertInput) -> Iterator[Alert]:
    now = known.snapshot.at
    for task in _most((each for each in known.tasks if is_failing(each, now)), _failures):
        pause = known.pauses.get(f"task:{task.name}")
        since, recorded = task.activity.failing_since, task.activity.recorded
        rate, is_most = f"{formatting.count(task.activity.failed_lately)} jobs in 10 min", True
        if recorded is not None and recorded.is_going_on(now):
            rate = f"{formatting.number(recorded.per_minute)} failures/min ({recorded.share:.0%})"
            is_most = recorded.share >= MOST_FAIL
        waiting = f"{formatting.count(task.jobs[JobState.BACKOFF])} in backoff"
        yield Alert(
            severity=Severity.CRITICAL if pause is None and is_most else Severity.WARNING,
            what=f"{task.name} keeps failing: {rate}, {waiting}{'' if pause is None else ', paused'}",
            subject=task.name,
            age=None if since is None else now - since,
            place="jobs",
            filter=f"state:backoff,failed task:{written(task.name)}",
            act="pause",
            target=f"task:{task.name}",
            remedy=f"gw pause task:{task.name}",
            task=task.name,
        )


def is_failing(task: TaskInfo, now: datetime) -> bool:
    """Return whether attempts of a task keep failing: as recorded, or inferred from jobs that wait for a retry."""
    recorded, inferred = task.activity.recorded, task.activity.failed_lately.value
    if recorded is not None and recorded.is_going_on(now):
        return True
    # The minute that has not ended, and workers of other languages, are not recorded.
    return inferred >= MIN_FAILURES and (recorded is None or inferred > recorded.failed)


def _failures(task: TaskInfo) -> int:
    recorded = task.activity.recorded
    return max(task.activity.failed_lately.value, 0 if recorded is None else recorded.failed)


def _failed(known: AlertInput) -> Iterator[Alert]:
    now = known.snapshot.at
    found = [
        each for each in known.tasks if each.jobs[JobState.FAILED].value >= MIN_FAILURES and not is_failing(each, now)
    ]
    for task in _most(found, lambda each: each.jobs[JobState.FAILED].value):
        yield _warning(
            what=f"{task.name}: {formatting.count(task.jobs[JobState.FAILED])} jobs failed permanently",
            subject=f"failed {task.name}",
            place="jobs",
            filter=f"state:failed task:{written(task.name)}",
            remedy=f"gw retry 'state:failed task:{task.name}'",
            task=task.name,
        )


def _poisoned(known: AlertInput) -> Iterator[Alert]:
    """Name single jobs that fail again and again, of tasks that do not."""
    failing = {each.name for each in known.tasks if is_failing(each, known.snapshot.at)}
    waiting = [each.job for each in known.sample.errors or () if each.state is JobState.BACKOFF]
    often = [job for job in waiting if job.attempts >= MANY_ATTEMPTS and job.task not in failing]
    for job in sorted(often, key=lambda each: (-each.attempts, each.id))[:MAX_OF_A_KIND]:
        error = next((line for line in (job.last_error or "").splitlines() if line.strip()), "")
        yield _warning(
            what=f"job {job.id} of {job.task} failed {job.attempts} times: {masked(error)}",
            subject=f"job {job.id}",
            age=known.snapshot.at - job.created_at,
            place="jobs",
            filter=f"id:{job.id}",
            remedy=f"gw fail {job.id}",
            task=job.task,
        )


def _most(tasks: Iterable[TaskInfo], size: Callable[[TaskInfo], int]) -> Sequence[TaskInfo]:
    return sorted(tasks, key=lambda each: (-size(each), each.name))[:MAX_OF_A_KIND]


# -- the rest ----------------------------------------------------------------------------------------------------------


def _crontabs(known: AlertInput) -> Iterator[Alert]:
    if (crontabs := known.sample.crontabs) is None:
        return
    since = {each.identifier: each.missed_from for each in crontabs.known}
    for item in crontabs.items or ():
        start = since.get(item.identifier)
        if start is not None and (missed := _missed(item, start, known.snapshot.at)) is not None:
            yield _warning(
                what=f"{item.identifier} missed {missed:%H:%M}",
                subject=item.identifier,
                age=known.snapshot.at - missed,
                place="cron",
                filter=item.identifier,
                remedy="start a worker with this crontab",
            )


def _missed(item: CronItem, since: datetime, now: datetime) -> datetime | None:
    """Return the first run that should have been and was not."""
    return next(iter(item.schedule.between(max(since, now - timedelta(days=2)), now - LATE_RUN)), None)


def _rows(known: AlertInput) -> Iterator[Alert]:
    counters = known.snapshot.counters
    if counters is None or counters.dead_rows < max(MIN_DEAD_ROWS, DEAD_ROWS * counters.live_rows):
        return
    age = None if counters.last_vacuum_at is None else known.snapshot.at - counters.last_vacuum_at
    what = f"{formatting.number(counters.dead_rows)} dead rows wait for vacuum"
    yield _warning(what=what, subject="dead rows", age=age, filter="vacuum", remedy="gw doctor")


def _findings(known: AlertInput) -> Iterator[Alert]:
    judged = JUDGED_HERE if known.snapshot.server.may_change_jobs else JUDGED_HERE | {"rights"}
    for finding in known.sample.findings or ():
        if finding.status.value == "error" and finding.check not in judged:
            yield _critical(
                what=f"{finding.check}: {finding.message}",
                subject=finding.check,
                filter=finding.check,
                remedy=finding.fix or "",
            )


CAUSES: Final = (
    Cause("a session of the queue waits for a lock (pg_stat_activity, pg_blocking_pids)", _blocked),
    Cause("the server, its role and its notifications", _server),
    Cause("a worker without a recent heartbeat has jobs or queues locked", _workers),
    Cause("a lock older than four hours", _old_locks),
    Cause("a queue is locked for more than 15 minutes, and not by a pause", _queues),
    Cause("due jobs of each named queue, counted", _large_queues),
    Cause("a row of _private_gw_pauses, older than 15 minutes or with ready jobs", _pauses),
    Cause("the first due job of the table, by priority", _backlog),
    Cause("a row of _private_gw_limits, and jobs of its task that are due for five minutes", _limits),
    Cause("due jobs of a task that no live gw worker reports", _unknown_tasks),
    Cause("failed attempts in _private_gw_statistics, or jobs that wait for a retry since then", _failing),
    Cause("jobs without attempts left", _failed),
    Cause("a job that waits for a retry after five attempts or more", _poisoned),
    Cause("a due run of the crontab that _private_known_crontabs has not recorded", _crontabs),
    Cause("dead rows of the jobs table (pg_stat_user_tables)", _rows),
    Cause("an error that gw doctor reports", _findings),
)
"""The table of causes: what stands in an alert is a fact in the database, and ends with it."""
