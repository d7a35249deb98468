"""How the core's values look when they are printed: stable keys, and the columns of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_cli.output import Column, JsonText, Shape

if TYPE_CHECKING:
    from datetime import datetime

    from gw_core import Job
    from gw_core.front_ends import Count


def _run_at(job: Job) -> datetime | None:
    """Return when a job may run; None while it waits for others."""
    from gw_core.front_ends import END_OF_TIME

    return None if job.run_at == END_OF_TIME else job.run_at


JOBS: Final = Shape(
    (
        Column("id", "ID", right=True),
        Column("state", "STATE", lambda job: None),  # depends on the database's clock
        Column("task", "TASK", shrinks=True),
        Column("queue_name", "QUEUE", shrinks=True, rank=5),
        Column("priority"),
        # Nearly every job has priority zero; a column of zeros has no information.
        Column("prio", "PRIO", lambda job: job.priority or None, right=True, rank=2, shown=True),
        Column("run_at", "RUN AT", _run_at, rank=7),
        Column("expires_at"),
        Column("attempts"),
        Column("max_attempts"),
        Column("tries", "TRIES", lambda job: f"{job.attempts}/{job.max_attempts}", right=True, rank=6, shown=True),
        Column("job_key", "KEY", shrinks=True, rank=3),
        Column("flags", "FLAGS", lambda job: list(job.flags), shrinks=True, rank=1),
        Column("last_error", "LAST ERROR", shrinks=True, rank=8),
        Column("locked_at"),
        Column("started_at"),
        Column("locked_by", "LOCKED BY", shrinks=True, rank=4),
        Column("revision"),
        Column("created_at"),
        Column("updated_at"),
    ),
    order="id state task queue_name prio run_at tries job_key flags locked_by last_error",
)
PAYLOAD: Final = Column("payload", "PAYLOAD", lambda job: JsonText(job.payload_json), shrinks=True, rank=8)
"""Follows where it was asked for."""


def job_record(job: Job, state: str | None = None) -> dict[str, object]:
    """Return a job under the keys we promise."""
    return {**JOBS.record(job), "state": state}


def count_record(count: Count) -> dict[str, object]:
    """Return a count under the keys we promise."""
    return {"count": count.value, "quality": count.quality.value}
