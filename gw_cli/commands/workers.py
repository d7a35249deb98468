"""`gw workers`: list workers, live and stale."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from gw_cli import output, stderr
from gw_cli.command import Printed, command
from gw_cli.connect import open_to_read
from gw_cli.records import Fields, fields_of
from gw_cli.settings import Configuration, table
from gw_core.operations import format_duration

if TYPE_CHECKING:
    from gw_core import RecoverySettings
    from gw_core.operations import WorkerInfo

FIELDS: Final[Fields] = {
    "id": attrgetter("id"),
    "state": lambda worker: "stale" if worker.is_stale else "running" if worker.has_heartbeat else "no_heartbeat",
    "host": attrgetter("host"),
    "pid": attrgetter("pid"),
    "version": attrgetter("version"),
    "started_at": attrgetter("started_at"),
    "last_heartbeat_at": attrgetter("last_heartbeat_at"),
    "heartbeat_age_seconds": lambda worker: _seconds(worker.heartbeat_age),
    "lock_age": lambda worker: _seconds(worker.lock_age),
    "jobs": attrgetter("jobs"),
    "queues": attrgetter("queues"),
}
SHOWN: Final[Fields] = {
    "heartbeat": lambda worker: _ago(worker.heartbeat_age),
    "lock": lambda worker: _ago(worker.lock_age),
}
KEYS: Final = tuple(FIELDS)
COLUMNS: Final = (
    output.Column("id", "WORKER", shrinks=True),
    output.Column("state", "STATE"),
    output.Column("jobs", "JOBS", right=True),
    output.Column("queues", "QUEUES", right=True),
    output.Column("heartbeat", "HEARTBEAT", right=True, rank=7),
    output.Column("lock", "LATEST LOCK", right=True, rank=6),
    output.Column("host", "HOST", shrinks=True, rank=3),
    output.Column("pid", "PID", right=True, rank=4),
    output.Column("version", "VERSION", rank=2),
    output.Column("started_at", "STARTED", rank=5),
)


@command("workers")
def workers(
    configuration: Configuration,
    layout: Printed,
) -> None:
    """List running and stale workers.

    One without a heartbeat, such as one of Node.js, is known by the locks it holds.
    A sweep with the same options would take the jobs of those that are stale.
    """
    with open_to_read(configuration) as client:
        found = client.workers.list(recovery_settings(configuration))
    layout.print([worker_record(each) for each in found], keys=KEYS, columns=COLUMNS)
    if not found:
        stderr.note("No workers are known.")


def recovery_settings(configuration: Configuration) -> RecoverySettings:
    """Return which workers count as dead, and how their jobs go back."""
    from gw_core import RecoverySettings

    return RecoverySettings(
        sweep_threshold=configuration[table.SWEEP_THRESHOLD],
        recovery_delay=configuration[table.RECOVERY_DELAY],
        orphans_after=configuration[table.ORPHANS_AFTER],
        resilient_flags=configuration[table.RESILIENT_FLAG],
        resilient_multiplier=configuration[table.RESILIENT_MULTIPLIER],
    )


def worker_record(worker: WorkerInfo) -> dict[str, object]:
    """Return a worker under the keys we promise; ages are seconds."""
    return fields_of(worker, {**FIELDS, **SHOWN})


def _seconds(age: timedelta | None) -> float | None:
    return None if age is None else round(age.total_seconds(), 3)


def _ago(age: timedelta | None) -> str | None:
    if age is None:
        return None
    whole = timedelta(seconds=round(max(0.0, age.total_seconds())))
    return f"{format_duration(whole)} ago"
