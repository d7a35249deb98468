"""How the core's values look when they are printed: stable keys, and the columns of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gw_cli.output import Column, JsonText

if TYPE_CHECKING:
    from gw_core import Job
    from gw_core.operations import Count

KEYS: Final = (
    "id",
    "state",
    "task",
    "queue",
    "priority",
    "run_at",
    "attempts",
    "max_attempts",
    "key",
    "flags",
    "last_error",
    "locked_at",
    "started_at",
    "locked_by",
    "revision",
    "created_at",
    "updated_at",
)
"""The keys of a job in JSON, and the columns in a pipe; `payload` follows where it was asked for."""

COLUMNS: Final = (
    Column("id", "ID", right=True),
    Column("state", "STATE"),
    Column("task", "TASK", shrinks=True),
    Column("queue", "QUEUE", shrinks=True, rank=5),
    Column("prio", "PRIO", right=True, rank=2),
    Column("run_at", "RUN AT", rank=7),
    Column("tries", "TRIES", right=True, rank=6),
    Column("key", "KEY", shrinks=True, rank=3),
    Column("flags", "FLAGS", shrinks=True, rank=1),
    Column("locked_by", "LOCKED BY", shrinks=True, rank=4),
    Column("last_error", "LAST ERROR", shrinks=True, rank=8),
    Column("payload", "PAYLOAD", shrinks=True, rank=8),
)


def job_record(job: Job, state: str | None = None, *, with_payload: bool = False) -> dict[str, object]:
    """Return a job under the keys we promise."""
    record: dict[str, object] = {
        "id": job.id,
        "state": state,
        "task": job.task_identifier,
        "queue": job.queue_name,
        "priority": job.priority,
        "run_at": job.run_at,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "key": job.key,
        "flags": list(job.flag_names),
        "last_error": job.last_error,
        "locked_at": job.locked_at,
        "started_at": job.started_at,
        "locked_by": job.locked_by,
        "revision": job.revision,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }
    return {**record, "payload": JsonText(job.payload)} if with_payload else record


def for_table(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the record with what a table shows in other words."""
    return {
        **record,
        "tries": f"{record['attempts']}/{record['max_attempts']}",
        # Nearly every job has priority zero; a column of zeros has no information.
        "prio": record["priority"] or None,
    }


def count_text(count: Count) -> str:
    """Return a count for people: `1,234` is exact, `~1,234` an estimate, `~1,234?` a rough one, `1,000+` at least."""
    before, after = {"exact": ("", ""), "at least": ("", "+"), "estimate": ("~", ""), "rough": ("~", "?")}[
        count.quality.value
    ]
    return f"{before}{count.value:,}{after}"


def count_record(count: Count) -> dict[str, object]:
    """Return a count under the keys we promise."""
    return {"count": count.value, "quality": count.quality.value}
