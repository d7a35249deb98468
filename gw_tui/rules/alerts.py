"""Alerts for the operator, the most severe first: rules over query results, without a database or a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gw_core import JobState
from gw_core.front_ends import written
from gw_tui.rules.recurring import Crontabs
from gw_tui.rules.task_info import TaskInfo, tasks_of
from gw_tui.text import formatting

if TYPE_CHECKING:
    from gw_core import CronItem
    from gw_core.front_ends import Count, QueueSnapshot
    from gw_core.operations import Finding, QueueCounts, QueueReport, RunSeries, WorkerInfo

LONG_WAIT: Final = timedelta(minutes=5)
LONG_ALONE: Final = timedelta(seconds=30)
"""So long jobs may wait while no worker is known at all: one may be starting."""
LONG_HOLD: Final = timedelta(minutes=15)
LONG_LOCK: Final = timedelta(hours=4)
LATE_RUN: Final = timedelta(seconds=90)
"""A recurring task may start this late before it counts as missed."""
MIN_FAILURES: Final = 10
"""So few failures are not worth an alert."""
GROWING_FOR: Final = 60
"""Seconds for which the backlog must have grown older to be called diverging."""
DEAD_ROWS: Final = 5
MIN_DEAD_ROWS: Final = 10_000
MAX_OF_A_KIND: Final = 3

JUDGED_HERE: Final = frozenset({"locks", "workers", "backlog", "server"})
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

    @property
    def key(self) -> str:
        """What distinguishes it from the others."""
        return f"{self.place}/{self.subject or self.what}"


_critical = partial(Alert, severity=Severity.CRITICAL)
_warning = partial(Alert, severity=Severity.WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSample:
    """What the overview asks beside the snapshot; empty until it is answered."""

    statistics: QueueCounts | None = None
    held: Sequence[QueueReport] = ()
    """The locked queues with their due jobs; asked for while a worker is gone."""
    crontabs: Crontabs = field(default_factory=Crontabs)
    findings: Sequence[Finding] = ()
    runs: RunSeries | None = None
    """What workers recorded for each minute; None when it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertInput:
    """The facts that alerts are derived from."""

    snapshot: QueueSnapshot
    sample: QueueSample
    ages: Sequence[float | None] = field(default=())
    """How old the backlog was, second by second."""
    is_listening: bool = True

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """The tasks that have jobs."""
        statistics = self.sample.statistics
        return () if statistics is None else tuple(tasks_of(statistics, self.snapshot))


def alerts(known: AlertInput) -> list[Alert]:
    """Return all alerts, the most severe first."""
    found = [
        *_server(known),
        *_workers(known),
        *_queues(known),
        *_backlog(known),
        *_tasks(known),
        *_crontabs(known),
        *_rows(known),
        *_findings(known),
    ]
    return sorted(found, key=lambda alert: (alert.severity, -(alert.age or timedelta()).total_seconds()))


def _server(known: AlertInput) -> Iterator[Alert]:
    snapshot = known.snapshot
    if snapshot.schema.rows_hidden:
        yield _critical(what=f"row-level security hides jobs from {snapshot.server.user}")
    if snapshot.server.in_recovery:
        yield _warning(what="read-only standby: actions are disabled")
    elif not snapshot.server.may_change_jobs:
        yield _warning(what="this role may only read: actions are disabled")
    if not known.is_listening:
        yield _warning(what="not listening for new jobs: polling only", place="events")
    for part, why in snapshot.errors[:MAX_OF_A_KIND]:
        yield _warning(what=f"{part} unavailable: {why}", subject=part, place="events")


def _workers(known: AlertInput) -> Iterator[Alert]:
    workers = known.snapshot.workers
    dead = sorted((each for each in workers if each.is_stale), key=lambda each: (-each.queues, -each.jobs, each.id))
    for worker in dead[:MAX_OF_A_KIND]:
        yield _critical(
            what=f"{_behind(known, worker)}: worker {worker.id} is gone",
            subject=worker.id,
            age=worker.inactive_for,
            place="workers",
            filter=worker.id,
        )
    if (more := len(dead) - MAX_OF_A_KIND) > 0:
        words = f"{formatting.counted(more, 'more worker')} gone"
        yield _critical(what=words, subject="more", place="workers")
    old = [worker for worker in workers if not worker.is_stale and (worker.lock_age or timedelta()) > LONG_LOCK]
    for worker in old[:MAX_OF_A_KIND]:
        yield _warning(what=f"lock older than 4 h: {worker.id}", age=worker.lock_age, place="workers")


def _behind(known: AlertInput, worker: WorkerInfo) -> str:
    """Return what a dead worker holds up: its queues with their due jobs, or else its own jobs."""
    names = {each.name for each in known.snapshot.locked_queues if each.locked_by == worker.id}
    if not names:
        return f"{formatting.counted(worker.jobs, 'job')} locked"
    queues = formatting.counted(len(names), "queue")
    reports = [each for each in known.sample.held if each.name in names]
    if len(reports) < len(names):  # not counted, or not all of them
        return f"{queues} locked"
    due = sum(each.due.value for each in reports)
    bound = "+" if any(each.due.quality.value == "at_least" for each in reports) else ""
    waits = "waits" if due == 1 and not bound else "wait"
    return f"{due:,}{bound} due {'job' if due == 1 else 'jobs'} in {queues} {waits}"


def _queues(known: AlertInput) -> Iterator[Alert]:
    dead = {worker.id for worker in known.snapshot.workers if worker.is_stale}
    alive = [queue for queue in known.snapshot.locked_queues if queue.locked_by not in dead]
    held = [(known.snapshot.at - queue.locked_at, queue) for queue in alive]
    long = sorted((each for each in held if each[0] > LONG_HOLD), key=lambda each: each[0], reverse=True)
    for age, queue in long[:MAX_OF_A_KIND]:
        what = f"queue {queue.name} locked by {queue.locked_by}"
        yield _warning(what=what, age=age, place="queues", filter=queue.name)


def _backlog(known: AlertInput) -> Iterator[Alert]:
    snapshot = known.snapshot
    has_no_worker = all(worker.is_stale for worker in snapshot.workers)
    task, age = _oldest_that_can_run(known)
    if age is None or age <= (LONG_ALONE if has_no_worker else LONG_WAIT):
        return
    words = "" if task is None else f" ({task})"
    if has_no_worker:
        what = f"jobs are waiting, no live worker{words}"
        yield _critical(what=what, subject="backlog", age=age, place="workers")
        return
    diverges = _diverges(known.ages)
    is_oldest = snapshot.oldest is None or task == snapshot.oldest.oldest_task
    oldest = "oldest ready job" if is_oldest else "oldest ready job of a known task"
    yield Alert(
        severity=Severity.CRITICAL if diverges else Severity.WARNING,
        what=f"{'backlog is growing' if diverges else oldest}{words}",
        subject="backlog",
        age=age,
        place="jobs",
        filter="state:ready" if task is None else f"state:ready task:{written(task)}",
    )


def _oldest_that_can_run(known: AlertInput) -> tuple[str | None, timedelta | None]:
    """Return the task whose job has been due for longest, and for how long; tasks that no worker knows aside."""
    snapshot = known.snapshot
    oldest, unknown = snapshot.oldest, {each.name for each in known.tasks if each.is_unknown}
    if oldest is None or oldest.oldest_task not in unknown:
        return (None if oldest is None else oldest.oldest_task), snapshot.backlog_age
    due = [(each.activity.due_since, each.name) for each in known.tasks if not each.is_unknown]
    since, task = min(((at, name) for at, name in due if at is not None), default=(None, None))
    return task, None if since is None else snapshot.at - since


def _diverges(ages: Sequence[float | None]) -> bool:
    """Return whether the backlog has grown older in every step of the last minute."""
    lately = [age for age in ages[-GROWING_FOR:] if age is not None]
    return len(lately) >= GROWING_FOR - 5 and lately[0] > 0 and all(b >= a for a, b in pairwise(lately))


def drain_time(ready: Count, done: float | None) -> timedelta | None:
    """Return how long the ready jobs will take at the current rate, by Little's law; None if that is unknown."""
    return None if not done or ready.quality.value == "at_least" else timedelta(seconds=ready.value / done)


def _tasks(known: AlertInput) -> Iterator[Alert]:
    unknown = [each for each in known.tasks if each.is_unknown and each.jobs[JobState.READY].value]
    failing = [each for each in known.tasks if each.activity.failed_lately.value >= MIN_FAILURES]
    failed = [each for each in known.tasks if each.jobs[JobState.FAILED].value >= MIN_FAILURES and each not in failing]
    yield from map(partial(_unknown, known), _most(unknown, lambda each: each.jobs[JobState.READY].value))
    yield from map(partial(_failing, known), _most(failing, lambda each: each.activity.failed_lately.value))
    yield from map(_failed, _most(failed, lambda each: each.jobs[JobState.FAILED].value))


def _most(tasks: Iterable[TaskInfo], size: Callable[[TaskInfo], int]) -> Sequence[TaskInfo]:
    return sorted(tasks, key=lambda each: (-size(each), each.name))[:MAX_OF_A_KIND]


def _unknown(known: AlertInput, task: TaskInfo) -> Alert:
    since = task.activity.due_since
    return _critical(
        what=f"{task.name}: {formatting.count(task.jobs[JobState.READY])} ready, no live worker knows it",
        subject=task.name,
        age=None if since is None else known.snapshot.at - since,
        place="jobs",
        filter=f"state:ready task:{written(task.name)}",
    )


def _failing(known: AlertInput, task: TaskInfo) -> Alert:
    """Report failures per period: completed jobs leave the table, so a share of its rows would be meaningless."""
    since, lately = task.activity.failing_since, formatting.count(task.activity.failed_lately)
    waiting = f"{formatting.count(task.jobs[JobState.BACKOFF])} in backoff"
    return _critical(
        what=f"{task.name} keeps failing: {lately} jobs in 10 min, {waiting}",
        subject=task.name,
        age=None if since is None else known.snapshot.at - since,
        place="jobs",
        filter=f"state:backoff,failed task:{written(task.name)}",
    )


def _failed(task: TaskInfo) -> Alert:
    return _warning(
        what=f"{task.name}: {formatting.count(task.jobs[JobState.FAILED])} jobs failed permanently",
        subject=task.name,
        place="jobs",
        filter=f"state:failed task:{written(task.name)}",
    )


def _crontabs(known: AlertInput) -> Iterator[Alert]:
    last = {each.identifier: each.last_execution or each.known_since for each in known.sample.crontabs.known}
    for item in known.sample.crontabs.items or ():
        if item.identifier in last and (missed := _missed(item, last[item.identifier], known.snapshot.at)) is not None:
            what = f"{item.identifier} missed {missed:%H:%M}"
            age = known.snapshot.at - missed
            yield _warning(what=what, subject=item.identifier, age=age, place="cron")


def _missed(item: CronItem, last: datetime, now: datetime) -> datetime | None:
    """Return the first run that should have been and was not."""
    start = last.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return next(iter(item.schedule.between(max(start, now - timedelta(days=2)), now - LATE_RUN)), None)


def _rows(known: AlertInput) -> Iterator[Alert]:
    counters = known.snapshot.counters
    if counters is None or counters.dead_rows < max(MIN_DEAD_ROWS, DEAD_ROWS * counters.live_rows):
        return
    age = None if counters.last_vacuum_at is None else known.snapshot.at - counters.last_vacuum_at
    what = f"{formatting.number(counters.dead_rows)} dead rows wait for vacuum"
    yield _warning(what=what, subject="dead rows", age=age)


def _findings(known: AlertInput) -> Iterator[Alert]:
    judged = JUDGED_HERE if known.snapshot.server.may_change_jobs else JUDGED_HERE | {"rights"}
    for finding in known.sample.findings:
        if finding.status.value == "error" and finding.check not in judged:
            yield _critical(what=f"{finding.check}: {finding.message}", subject=finding.check)
