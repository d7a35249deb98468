"""What needs an operator's attention, the worst first: rules over what was looked at, without a database or a clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gw_tui.text import formatting

if TYPE_CHECKING:
    from gw_core import CronItem
    from gw_core.crontab import KnownCronItem
    from gw_core.operations import Count, Finding, QueueSnapshot, QueueStatistics

LONG_WAIT: Final = timedelta(minutes=5)
LONG_ALONE: Final = timedelta(seconds=30)
"""So long jobs may wait while no worker is known at all: one may be starting."""
LONG_HOLD: Final = timedelta(minutes=15)
LONG_LOCK: Final = timedelta(hours=4)
LATE_RUN: Final = timedelta(seconds=90)
"""A recurring task may start this late before it counts as missed."""
FAILING_SHARE: Final = 0.2
MIN_FAILURES: Final = 10
GROWING_FOR: Final = 60
"""Seconds for which the backlog must have grown older to be called diverging."""
DEAD_ROWS: Final = 5
MIN_DEAD_ROWS: Final = 10_000
MAX_OF_A_KIND: Final = 3

JUDGED_HERE: Final = frozenset({"locks", "workers", "backlog", "server"})
"""What the doctor looks at as well; here it is known more freshly."""


class Severity(IntEnum):
    """How bad it is; the lowest is the worst."""

    CRITICAL = 0
    WARNING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing to look at: in words, for how long, and on which screen with which filter."""

    severity: Severity
    what: str
    age: timedelta | None = None
    place: str = "locks"
    filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertInput:
    """What there is to judge by; parts that were not looked at yet are empty."""

    snapshot: QueueSnapshot
    statistics: QueueStatistics | None = None
    crontabs: Sequence[KnownCronItem] = ()
    items: Sequence[CronItem] | None = None
    findings: Sequence[Finding] = ()
    ages: Sequence[float | None] = field(default=())
    """How old the backlog was, second by second."""
    is_listening: bool = True


def alerts(known: AlertInput) -> list[Alert]:
    """Return everything that deserves a look, the worst first."""
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
        yield Alert(severity=Severity.CRITICAL, what=f"row-level security hides jobs from {snapshot.server.user}")
    if snapshot.server.in_recovery:
        yield Alert(severity=Severity.WARNING, what="read-only standby: actions are disabled")
    elif not snapshot.server.may_change_jobs:
        what = "this role may only read: actions are disabled"
        yield Alert(severity=Severity.WARNING, what=what)
    if not known.is_listening:
        yield Alert(severity=Severity.WARNING, what="not listening for new jobs: polling only", place="events")
    for part, why in snapshot.unseen[:MAX_OF_A_KIND]:
        yield Alert(severity=Severity.WARNING, what=f"{part} unavailable: {why}", place="events")


def _workers(known: AlertInput) -> Iterator[Alert]:
    workers = known.snapshot.workers
    dead = [worker for worker in workers if worker.is_stale]
    if dead:
        held = sum(worker.jobs for worker in dead)
        what = f"{formatting.counted(len(dead), 'stale worker')}, {formatting.counted(held, 'job')} locked"
        silence = max(worker.inactive_for for worker in dead)
        yield Alert(severity=Severity.CRITICAL, what=what, age=silence, place="workers")
    old = [worker for worker in workers if not worker.is_stale and (worker.lock_age or timedelta()) > LONG_LOCK]
    for worker in old[:MAX_OF_A_KIND]:
        what = f"lock older than 4 h: {worker.id}"
        yield Alert(severity=Severity.WARNING, what=what, age=worker.lock_age, place="workers")


def _queues(known: AlertInput) -> Iterator[Alert]:
    held = [(known.snapshot.at - queue.held_at, queue) for queue in known.snapshot.held_queues]
    long = sorted((each for each in held if each[0] > LONG_HOLD), key=lambda each: each[0], reverse=True)
    for age, queue in long[:MAX_OF_A_KIND]:
        what = f"queue {queue.name} locked by {queue.held_by}"
        yield Alert(severity=Severity.WARNING, what=what, age=age, place="queues", filter=queue.name)


def _backlog(known: AlertInput) -> Iterator[Alert]:
    snapshot, age = known.snapshot, known.snapshot.backlog_age
    nobody = all(worker.is_stale for worker in snapshot.workers)
    if age is None or age <= (LONG_ALONE if nobody else LONG_WAIT):
        return
    oldest = snapshot.oldest
    task = "" if oldest is None or oldest.oldest_task is None else f" ({oldest.oldest_task})"
    if nobody:
        what = f"jobs are waiting, no live worker{task}"
        yield Alert(severity=Severity.CRITICAL, what=what, age=age, place="workers")
        return
    if _diverges(known.ages):
        yield Alert(
            severity=Severity.CRITICAL,
            what=f"backlog is growing{task}",
            age=age,
            place="jobs",
            filter="state:ready",
        )
    else:
        yield Alert(
            severity=Severity.WARNING,
            what=f"oldest ready job{task}",
            age=age,
            place="jobs",
            filter="state:ready",
        )


def _diverges(ages: Sequence[float | None]) -> bool:
    """Tell whether the backlog has grown older in every step of the last minute."""
    lately = [age for age in ages[-GROWING_FOR:] if age is not None]
    return len(lately) >= GROWING_FOR - 5 and lately[0] > 0 and all(b >= a for a, b in pairwise(lately))


def drain_time(ready: Count, done: float | None) -> timedelta | None:
    """Return how long what is ready will take at the present rate, by Little's law; None where nobody can know."""
    return None if not done or ready.quality.value == "at least" else timedelta(seconds=ready.value / done)


def _tasks(known: AlertInput) -> Iterator[Alert]:
    if known.statistics is None:
        return
    failing = []
    for task, states in known.statistics.tasks.items():
        failed = next((count.value for state, count in states.items() if state.value == "failed"), 0)
        total = sum(count.value for count in states.values())
        if failed >= MIN_FAILURES and failed >= FAILING_SHARE * total:
            failing.append((failed / total, task))
    for share, task in sorted(failing, reverse=True)[:MAX_OF_A_KIND]:
        what = f"{share:.0%} of {task} failed permanently"
        yield Alert(severity=Severity.WARNING, what=what, place="jobs", filter=f"state:failed task:{task}")


def _crontabs(known: AlertInput) -> Iterator[Alert]:
    last = {each.identifier: each.last_execution or each.known_since for each in known.crontabs}
    for item in known.items or ():
        if item.identifier in last and (missed := _missed(item, last[item.identifier], known.snapshot.at)) is not None:
            what = f"{item.identifier} missed {missed:%H:%M}"
            yield Alert(severity=Severity.WARNING, what=what, age=known.snapshot.at - missed, place="cron")


def _missed(item: CronItem, last: datetime, now: datetime) -> datetime | None:
    """Return the first run that should have been and was not."""
    start = last.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return next(iter(item.schedule.between(max(start, now - timedelta(days=2)), now - LATE_RUN)), None)


def _rows(known: AlertInput) -> Iterator[Alert]:
    counters = known.snapshot.counters
    if counters is None or counters.dead_rows < max(MIN_DEAD_ROWS, DEAD_ROWS * counters.live_rows):
        return
    age = None if counters.last_vacuum_at is None else known.snapshot.at - counters.last_vacuum_at
    yield Alert(
        severity=Severity.WARNING, what=f"{formatting.number(counters.dead_rows)} dead rows wait for vacuum", age=age
    )


def _findings(known: AlertInput) -> Iterator[Alert]:
    judged = JUDGED_HERE if known.snapshot.server.may_change_jobs else JUDGED_HERE | {"rights"}
    for finding in known.findings:
        if finding.status.value == "error" and finding.check not in judged:
            yield Alert(severity=Severity.CRITICAL, what=f"{finding.check}: {finding.message}")
