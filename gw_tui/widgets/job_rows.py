"""Jobs as rows of a table: which columns there are room for, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gw_core import Job, JobState
from gw_core.front_ends import END_OF_TIME, FoundJob, QueueSnapshot
from gw_tui.text import formatting, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, duration_cell

NORMAL, WIDE = 100, 140
LOCK_IS_OLD: Final = timedelta(hours=4)
MAX_ERROR: Final = 300

_ID: Final = TableColumn("id", "id", 10, right=True)
_STATE: Final = TableColumn("state", "state", 13)
_TASK: Final = TableColumn("task", "task", least=14, rank=8)
_ATTEMPTS: Final = TableColumn("attempts", "att", 5, right=True, rank=6)
_RUN_AT: Final = TableColumn("run_at", "when", 10, right=True, rank=7)
_ERROR: Final = TableColumn("error", "last error", least=14, rank=5, share=3)
_WIDE_ERROR: Final = TableColumn("error", "last error", least=26, rank=5, share=3)
_QUEUE: Final = TableColumn("queue", "queue", 14, rank=4)
_PRIORITY: Final = TableColumn("priority", "prio", 5, right=True, rank=3)
_WORKER: Final = TableColumn("worker", "worker", 20, rank=3)
_KEY: Final = TableColumn("key", "key", 16, rank=2)
_CREATED: Final = TableColumn("created", "created", 10, right=True, rank=1)
_FLAGS: Final = TableColumn("flags", "flags", 10, rank=0)


def columns_for(width: int) -> tuple[TableColumn, ...]:
    """Return the columns worth showing at a width; the table leaves out more where they do not fit."""
    if width < NORMAL:
        return (_ID, _STATE, _TASK, _ATTEMPTS, _RUN_AT, _ERROR)
    if width < WIDE:
        return (_ID, _STATE, _TASK, _QUEUE, _PRIORITY, _ATTEMPTS, _RUN_AT, _ERROR)
    return (_ID, _STATE, _TASK, _QUEUE, _PRIORITY, _ATTEMPTS, _RUN_AT, _CREATED, _WORKER, _KEY, _FLAGS, _WIDE_ERROR)


@dataclass(frozen=True, slots=True)
class RowContext:
    """What stands around jobs: the queues that are held, and the workers that count as dead."""

    locked_queues: frozenset[str] = field(default=frozenset())
    dead_workers: frozenset[str] = field(default=frozenset())

    @classmethod
    def from_snapshot(cls, snapshot: QueueSnapshot | None) -> RowContext:
        """Return the context of a snapshot."""
        if snapshot is None:
            return cls()
        return cls(
            frozenset(queue.name for queue in snapshot.locked_queues),
            frozenset(worker.id for worker in snapshot.workers if worker.is_stale),
        )


def row_of(found: FoundJob, now: datetime, around: RowContext, *, unmask: bool = False) -> TableRow:
    """Return a job as a row."""
    job = found.job
    error = (job.last_error or "")[:MAX_ERROR]
    return TableRow(
        str(job.id),
        {
            "id": str(job.id),
            "state": state_cell(found, now, around),
            "task": job.task,
            "attempts": Cell(f"{job.attempts}/{job.max_attempts}", "", job.attempts),
            "run_at": _time_of(found, now),
            "error": error if unmask else masked(error),
            "queue": job.queue_name or "",
            "priority": Cell(str(job.priority) if job.priority else "", "", job.priority),
            "worker": job.locked_by or "",
            "key": job.job_key or "",
            "created": when_cell(job.created_at, now),
            "flags": ", ".join(job.flags),
        },
    )


def facts_of(found: FoundJob, now: datetime, *, is_gone: bool) -> Iterator[tuple[str, str]]:
    """Yield everything about a job but its payload and its error."""
    job = found.job
    yield "job", f"{job.id}  {job.task}"
    state = f"{symbols.GONE}: completed or removed" if is_gone else symbols.state(found.state)
    yield "state", f"{state}, attempt {job.attempts} of {job.max_attempts}"
    due = None if job.run_at == END_OF_TIME else job.run_at
    for name, time in (("created", job.created_at), ("due", due), ("started", job.started_at)):
        if time is not None:
            yield name, f"{formatting.day(time, now)} ({when(time, now)})"
    yield "queue", job.queue_name or ""
    yield "priority", str(job.priority or "")
    yield "key", job.job_key or ""
    yield "flags", ", ".join(job.flags)
    yield "worker", job.locked_by or ""


def _time_of(found: FoundJob, now: datetime) -> Cell:
    """Return when a job is due, or for how long it has run; one that waits for others has no time."""
    if found.job.run_at == END_OF_TIME:
        return Cell(formatting.NOTHING, "quiet")
    since = found.job.started_at if found.state is JobState.RUNNING else None
    if since is None:
        return when_cell(found.job.run_at, now)
    return duration_cell(since - now, "quiet", f"for {formatting.duration(now - since)}")


def when_cell(time: datetime, now: datetime) -> Cell:
    """Return how far away a time is, which sorts by the time."""
    return duration_cell(time - now, "quiet", when(time, now))


def when(time: datetime, now: datetime) -> str:
    """Return how far away a time is, short enough for a column: `in 54s`, `-2m07s`."""
    away = time - now
    return f"in {formatting.duration(away)}" if away > timedelta() else f"-{formatting.duration(-away)}"


def state_cell(found: FoundJob, now: datetime, around: RowContext) -> Cell:
    """Return a state with its sign, with `q` if a locked queue blocks the job, or `▲` if its worker is dead."""
    text = symbols.state(found.state)
    if found.state is JobState.RUNNING and is_stuck(found.job, now, around):
        return Cell(f"{text} {symbols.ALARM.sign}", symbols.ALARM.role)
    if found.state is JobState.READY and found.job.queue_name in around.locked_queues:
        return Cell(f"{text} q", found.state.value)
    return Cell(text, found.state.value)


def is_stuck(job: Job, now: datetime, around: RowContext) -> bool:
    """Return whether a locked job is no longer running."""
    since = None if job.locked_at is None else now - job.locked_at
    return job.locked_by in around.dead_workers or (since is not None and since > LOCK_IS_OLD)
