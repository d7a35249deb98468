"""Jobs as rows of a table: which columns there are room for, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from gw_core import Job, JobState
from gw_core.operations import FoundJob, QueueSnapshot
from gw_tui.text import formatting, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.keyed_table import Cell, TableColumn, TableRow

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

    held_queues: frozenset[str] = field(default=frozenset())
    dead_workers: frozenset[str] = field(default=frozenset())

    @classmethod
    def from_snapshot(cls, snapshot: QueueSnapshot | None) -> RowContext:
        """Return the context of a snapshot."""
        if snapshot is None:
            return cls()
        return cls(
            frozenset(queue.name for queue in snapshot.held_queues),
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
            "task": job.task_identifier,
            "attempts": f"{job.attempts}/{job.max_attempts}",
            "run_at": Cell(_time_of(found, now), "quiet"),
            "error": error if unmask else masked(error),
            "queue": job.queue_name or "",
            "priority": str(job.priority) if job.priority else "",
            "worker": job.locked_by or "",
            "key": job.key or "",
            "created": Cell(when(job.created_at, now), "quiet"),
            "flags": ", ".join(job.flag_names),
        },
    )


def _time_of(found: FoundJob, now: datetime) -> str:
    """Return when a job is due, or for how long it has run."""
    since = found.job.started_at if found.state is JobState.RUNNING else None
    return when(found.job.run_at, now) if since is None else f"for {formatting.duration(now - since)}"


def when(time: datetime, now: datetime) -> str:
    """Return how far away a time is, short enough for a column: `in 54s`, `-2m07s`."""
    away = time - now
    return f"in {formatting.duration(away)}" if away > timedelta() else f"-{formatting.duration(-away)}"


def state_cell(found: FoundJob, now: datetime, around: RowContext) -> Cell:
    """Return a state with its sign, with `q` if a locked queue blocks a ready job, or `!` for a failure."""
    text = symbols.state(found.state)
    if found.state is JobState.RUNNING and is_stuck(found.job, now, around):
        return Cell(f"{text} {symbols.WARNING}", "error")
    if found.state is JobState.READY and found.job.queue_name in around.held_queues:
        return Cell(f"{text} q", found.state.value)
    return Cell(text, found.state.value)


def is_stuck(job: Job, now: datetime, around: RowContext) -> bool:
    """Return whether a locked job is no longer running."""
    since = None if job.locked_at is None else now - job.locked_at
    return job.locked_by in around.dead_workers or (since is not None and since > LOCK_IS_OLD)


# -- orders ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """An order in which to show jobs; one with a `key` is of the page alone."""

    words: str
    key: Callable[[FoundJob], Any] | None = None
    is_newest: bool = False
    """Whether all jobs are looked through from the newest one on."""


ORDERS: Final = (
    Order("as found"),
    Order("newest first", is_newest=True),
    Order("page by id ↓", lambda found: -found.job.id),
    Order("page by run at ↑", lambda found: (found.job.run_at_epoch, found.job.id)),
    Order("page by attempts ↓", lambda found: (-found.job.attempts, found.job.id)),
    Order("page by priority ↑", lambda found: (found.job.priority, found.job.run_at_epoch, found.job.id)),
    Order("page by task", lambda found: (found.job.task_identifier, found.job.id)),
    Order("page by lock age ↓", lambda found: (found.job.started_epoch or float("inf"), found.job.id)),
)
