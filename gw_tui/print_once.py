"""What the console would show first, without a screen: for scripts, pipes, and terminals that can do no better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gw_tui.rules.alerts import Alert, AlertInput, Severity, worries
from gw_tui.text import formatting, sanitize, symbols

if TYPE_CHECKING:
    from gw_core.operations import Count, QueueSnapshot, QueueStatistics, WorkerInfo
    from gw_tui.data.source import Source, Target

KEYS: Final = ("at", "target", "schema", "server", "states", "heads", "workers", "held_queues", "attention")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One look at the queue."""

    target: Target
    glance: QueueSnapshot
    statistics: QueueStatistics
    worries: list[Alert]


def look(source: Source) -> Facts:
    """Look at everything once; raises what the source raises."""
    glance, statistics, crontabs = source.glance(), source.statistics(), source.crontabs()
    known = AlertInput(
        glance=glance,
        statistics=statistics,
        crontabs=crontabs.known,
        items=crontabs.items,
        findings=source.findings(),
    )
    return Facts(target=source.target, glance=glance, statistics=statistics, worries=worries(known))


# -- for programs ----------------------------------------------------------------------------------------------------


def record_of(facts: Facts) -> dict[str, object]:
    """Return the facts under the keys we promise."""
    glance = facts.glance
    return {
        "at": glance.at,
        "target": facts.target.where,
        "schema": glance.schema.name,
        "server": {
            "version": glance.server.version,
            "in_recovery": glance.server.in_recovery,
            "read_only": glance.server.in_recovery or facts.target.is_read_only,
        },
        "states": {state: _count(count) for state, count in _states(facts).items()},
        "heads": [
            {
                "priority": head.priority,
                "ready": _count(head.ready),
                "oldest_id": head.oldest_id,
                "oldest_task": head.oldest_task,
                "oldest_due_at": head.oldest_due_at,
                "next_due_at": head.next_due_at,
            }
            for head in glance.heads
        ],
        "workers": [
            {"id": worker.id, "state": worker_state(worker), "jobs": worker.jobs, "queues": worker.queues}
            for worker in glance.workers
        ],
        "held_queues": [
            {"queue": queue.name, "held_by": queue.held_by, "held_at": queue.held_at} for queue in glance.held_queues
        ],
        "attention": [
            {
                "grade": worry.grade.name.lower(),
                "what": worry.what,
                "seconds": None if worry.age is None else round(worry.age.total_seconds(), 3),
                "screen": worry.place,
                "filter": worry.filter or None,
            }
            for worry in facts.worries
        ],
    }


def _count(count: Count) -> dict[str, object]:
    return {"count": count.value, "quality": count.quality.value}


def _states(facts: Facts) -> Mapping[str, Count]:
    """Return the best number known of each state."""
    found = {state.value: count for state, count in facts.statistics.states.items()}
    glance = facts.glance
    if glance.ready.quality.value == "exact":
        found["ready"] = glance.ready
    better = {"running": glance.running, "failed": glance.failed}
    return {**found, **{name: count for name, count in better.items() if count is not None}}


def worker_state(worker: WorkerInfo) -> str:
    """Return what a worker is doing, in the words of `gw workers`."""
    return "stale" if worker.is_stale else "running" if worker.has_heartbeat else "no heartbeat"


# -- for people ------------------------------------------------------------------------------------------------------


def lines_of(facts: Facts) -> Iterator[str]:
    """Yield the facts as plain lines, fit for any terminal."""
    return (sanitize.line(line) for line in _lines(facts))


def _lines(facts: Facts) -> Iterator[str]:
    glance = facts.glance
    yield f"{facts.target.where}  schema {glance.schema.name}  {glance.at:%Y-%m-%dT%H:%M:%SZ}"
    yield ""
    for state, count in _states(facts).items():
        yield f"{symbols.state(state):<12} {formatting.count(count):>8}"
    if (age := glance.backlog_age) is not None:
        yield f"oldest ready job: {formatting.span(age)}"
    yield ""
    yield "Needs attention:" if facts.worries else "Nothing needs attention."
    for worry in facts.worries:
        sign = symbols.STATE_GLYPHS["failed"] if worry.grade is Severity.BAD else symbols.WARNING
        yield f"  {sign} {worry.what}" + ("" if worry.age is None else f"  {formatting.span(worry.age)}")
    if glance.heads:
        yield ""
        yield f"{'priority':>8}  {'ready':>8}  {'oldest':>8}  task"
    for head in glance.heads:
        oldest = None if head.oldest_due_at is None else glance.at - head.oldest_due_at
        shown = f"{head.priority:>8}  {formatting.count(head.ready):>8}  {formatting.span(oldest):>8}"
        yield f"{shown}  {head.oldest_task or ''}".rstrip()
    if glance.workers:
        yield ""
        yield "workers"
    for worker in glance.workers:
        holds = f"{formatting.counted(worker.jobs, 'job')}, {formatting.counted(worker.queues, 'queue')}"
        yield f"  {worker.id}  {worker_state(worker)}  {holds}"
