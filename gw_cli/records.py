"""How the core's values look when they are printed: stable keys, and the columns of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from gw_cli.output import Column, JsonText

if TYPE_CHECKING:
    from gw_core import Job
    from gw_core.operations import Count

Fields = Mapping[str, Callable[[Any], object]]
"""The keys of one kind of record, and where their values are found."""

JOB: Final[Fields] = {
    "id": attrgetter("id"),
    "state": lambda job: None,  # depends on the database's clock
    "task": attrgetter("task_identifier"),
    "queue": attrgetter("queue_name"),
    "priority": attrgetter("priority"),
    "run_at": attrgetter("run_at"),
    "attempts": attrgetter("attempts"),
    "max_attempts": attrgetter("max_attempts"),
    "key": attrgetter("key"),
    "flags": lambda job: list(job.flag_names),
    "last_error": attrgetter("last_error"),
    "locked_at": attrgetter("locked_at"),
    "started_at": attrgetter("started_at"),
    "locked_by": attrgetter("locked_by"),
    "revision": attrgetter("revision"),
    "created_at": attrgetter("created_at"),
    "updated_at": attrgetter("updated_at"),
}
KEYS: Final = tuple(JOB)
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


def fields_of(value: object, fields: Fields) -> dict[str, object]:
    """Return what the fields find in a value."""
    return {key: find(value) for key, find in fields.items()}


def job_record(job: Job, state: str | None = None, *, with_payload: bool = False) -> dict[str, object]:
    """Return a job under the keys we promise."""
    found = {**fields_of(job, JOB), "state": state}
    return {**found, "payload": JsonText(job.payload)} if with_payload else found


def for_table(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the record with what a table shows in other words."""
    return {
        **record,
        "tries": f"{record['attempts']}/{record['max_attempts']}",
        # Nearly every job has priority zero; a column of zeros has no information.
        "prio": record["priority"] or None,
    }


def counted(number: int, what: str = "job") -> str:
    """Return a number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def count_text(count: Count) -> str:
    """Return a count for people: `1,234` is exact, `~1,234` an estimate, `~1,234?` a rough one, `1,000+` at least."""
    before, after = {"exact": ("", ""), "at least": ("", "+"), "estimate": ("~", ""), "rough": ("~", "?")}[
        count.quality.value
    ]
    return f"{before}{count.value:,}{after}"


def count_record(count: Count) -> dict[str, object]:
    """Return a count under the keys we promise."""
    return {"count": count.value, "quality": count.quality.value}
