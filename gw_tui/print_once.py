"""What the console would show first, without a screen: for scripts, pipes, and terminals that can do no better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gw_core import JobState
from gw_core.errors import PermissionDeniedError
from gw_core.front_ends import counted
from gw_tui.data.source import in_time
from gw_tui.rules.alerts import Alert, AlertInput, QueueSample, Severity, alerts, knows_workers
from gw_tui.text import formatting, sanitize, symbols

if TYPE_CHECKING:
    from gw_core.front_ends import Count, LockedQueue, PrioritySummary, QueueSnapshot
    from gw_core.operations import QueueCounts, WorkerInfo
    from gw_tui.data.source import DataSource
    from gw_tui.rules.options import QueueInfo

T = TypeVar("T")
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewData:
    """The answers that one printed overview needs."""

    info: QueueInfo
    snapshot: QueueSnapshot
    statistics: QueueCounts | None
    alerts: list[Alert]
    unknown: Sequence[str]
    """What could not be read, in words."""

    @property
    def priorities(self) -> Sequence[PrioritySummary] | None:
        """The priorities that have waiting jobs; None is unknown."""
        return self.snapshot.priorities if self.snapshot.knows_waiting else None

    @property
    def workers(self) -> Sequence[WorkerInfo] | None:
        """The workers; None is unknown."""
        return self.snapshot.workers if knows_workers(self.snapshot) else None

    @property
    def locked_queues(self) -> Sequence[LockedQueue] | None:
        """The locked queues; None is unknown."""
        return None if "queues" in dict(self.snapshot.errors) else self.snapshot.locked_queues


def read_once(source: DataSource) -> OverviewData:
    """Query everything once; raises what the source raises, except that what takes too long is unknown."""
    snapshot = source.snapshot()
    if snapshot.denied is not None:
        raise PermissionDeniedError(snapshot.denied)
    asked: dict[str, Callable[[], object]] = {
        "statistics": source.statistics,
        "crontabs": source.crontabs,
        "findings": source.findings,
    }
    if any(worker.is_stale for worker in snapshot.workers):
        asked["held"] = partial(source.queues, only_locked=True)
    sample = QueueSample.of({name: in_time(ask) for name, ask in asked.items()})
    for finding in sample.findings or ():
        if finding.check == "row security" and finding.status == "error":
            raise PermissionDeniedError(f"{finding.message}; {finding.fix}")
    found = alerts(AlertInput(snapshot=snapshot, sample=sample))
    unknown = list(dict.fromkeys([*sample.unknown, *(part for part, _ in snapshot.errors)]))
    return OverviewData(
        info=source.info, snapshot=snapshot, statistics=sample.statistics, alerts=found, unknown=unknown
    )


def record_of(data: OverviewData) -> dict[str, object]:
    """Return the data under the keys we promise."""
    snapshot = data.snapshot
    return {
        "at": snapshot.at,
        "target": data.info.where,
        "schema": snapshot.schema.name,
        "server": {
            "version": snapshot.server.version,
            "in_recovery": snapshot.server.in_recovery,
            "read_only": snapshot.server.in_recovery or data.info.is_read_only or not snapshot.server.may_change_jobs,
        },
        "states": {state: None if count is None else _count(count) for state, count in _states(data).items()},
        "priorities": _listed(
            data.priorities,
            lambda head: {
                "priority": head.priority,
                "ready": _count(head.ready),
                "oldest_id": head.oldest_id,
                "oldest_task": head.oldest_task,
                "oldest_due_at": head.oldest_due_at,
                "next_due_at": head.next_due_at,
            },
        ),
        "workers": _listed(
            data.workers,
            lambda worker: {
                "id": worker.id,
                "state": worker_state(worker),
                "jobs": worker.jobs,
                "queues": worker.queues,
            },
        ),
        "locked_queues": _listed(
            data.locked_queues,
            lambda queue: {"queue_name": queue.name, "locked_by": queue.locked_by, "locked_at": queue.locked_at},
        ),
        "unknown": data.unknown,
        "alerts": [
            {
                "severity": alert.severity.name.lower(),
                "message": alert.what,
                "age_seconds": None if alert.age is None else round(alert.age.total_seconds(), 3),
                "screen": alert.place,
                "filter": alert.filter or None,
            }
            for alert in data.alerts
        ],
    }


def _listed(found: Sequence[T] | None, write: Callable[[T], dict[str, object]]) -> list[dict[str, object]] | None:
    return None if found is None else [write(each) for each in found]


def _count(count: Count) -> dict[str, object]:
    return {"count": count.value, "quality": count.quality.value}


def _states(data: OverviewData) -> Mapping[str, Count | None]:
    """Return the best number known of each state; None is unknown."""
    snapshot, counts = data.snapshot, {} if data.statistics is None else data.statistics.states
    found = {state.value: counts.get(state) for state in JobState}
    if snapshot.knows_waiting and (snapshot.ready.quality.value == "exact" or found["ready"] is None):
        found["ready"] = snapshot.ready
    better = {"running": snapshot.running, "failed": snapshot.failed}
    return {**found, **{name: count for name, count in better.items() if count is not None}}


def worker_state(worker: WorkerInfo) -> str:
    """Return what a worker is doing, in the words of `gw workers`."""
    return "stale" if worker.is_stale else "running" if worker.has_heartbeat else "no_heartbeat"


def lines_of(data: OverviewData) -> Iterator[str]:
    """Yield the data as plain lines, fit for any terminal."""
    return (sanitize.line(line) for line in _lines(data))


def _lines(data: OverviewData) -> Iterator[str]:
    snapshot = data.snapshot
    yield f"{data.info.where}  schema {snapshot.schema.name}  {snapshot.at:%Y-%m-%dT%H:%M:%SZ}"
    yield ""
    for state, count in _states(data).items():
        yield f"{symbols.state(state):<12} {UNKNOWN if count is None else formatting.count(count):>8}"
    if (age := snapshot.backlog_age) is not None:
        yield f"oldest ready job: {formatting.duration(age)}"
    yield ""
    yield "Alerts:" if data.alerts else "No alerts" if not data.unknown else "Alerts unknown"
    for alert in data.alerts:
        symbol = symbols.ALARM if alert.severity is Severity.CRITICAL else symbols.WARNING
        yield f"  {symbol.before(alert.what)}" + ("" if alert.age is None else f"  {formatting.duration(alert.age)}")
    if data.unknown:
        yield f"unknown: {', '.join(data.unknown)}"
    if snapshot.priorities:
        yield ""
        yield f"{'priority':>8}  {'ready':>8}  {'oldest':>8}  task"
    for head in snapshot.priorities:
        oldest = None if head.oldest_due_at is None else snapshot.at - head.oldest_due_at
        shown = f"{head.priority:>8}  {formatting.count(head.ready):>8}  {formatting.duration(oldest):>8}"
        yield f"{shown}  {head.oldest_task or ''}".rstrip()
    if snapshot.workers:
        yield ""
        yield "workers"
    for worker in snapshot.workers:
        holds = f"{counted(worker.jobs, 'job')}, {counted(worker.queues, 'queue')}"
        yield f"  {worker.id}  {worker_state(worker).replace('_', ' ')}  {holds}"
