"""`gw workers`: list workers, live and stale."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gw_cli import stderr
from gw_cli.command import Printed, command
from gw_cli.connect import open_to_read
from gw_cli.output import Column, Shape
from gw_cli.settings import Configuration, table
from gw_core.operations import format_duration

if TYPE_CHECKING:
    from gw_core import RecoverySettings

WORKERS: Final = Shape(
    (
        Column("id", "WORKER", shrinks=True),
        Column(
            "state",
            "STATE",
            lambda worker: "stale" if worker.is_stale else "running" if worker.has_heartbeat else "no_heartbeat",
        ),
        Column("host", "HOST", shrinks=True, rank=3),
        Column("pid", "PID", right=True, rank=4),
        Column("version", "VERSION", rank=2),
        Column("started_at", "STARTED", rank=5),
        Column("last_heartbeat_at"),
        Column("heartbeat_age_seconds", find=lambda worker: _seconds(worker.heartbeat_age)),
        Column("lock_age", find=lambda worker: _seconds(worker.lock_age)),
        Column("jobs", "JOBS", right=True),
        Column("queues", "QUEUES", right=True),
        Column("heartbeat", "HEARTBEAT", lambda worker: _ago(worker.heartbeat_age), right=True, rank=7, shown=True),
        Column("lock", "LATEST LOCK", lambda worker: _ago(worker.lock_age), right=True, rank=6, shown=True),
    ),
    order="id state jobs queues heartbeat lock host pid version started_at",
)


@command("workers")
def workers(
    configuration: Configuration,
    layout: Printed,
) -> None:
    """List running and stale workers.

    Workers without heartbeats, such as Node.js workers, are listed by the locks they own.
    A sweep with the same options recovers the jobs of stale workers.
    """
    with open_to_read(configuration) as client:
        found = client.workers.list(recovery_settings(configuration))
    layout.show(found, WORKERS)
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


def _seconds(age: timedelta | None) -> float | None:
    return None if age is None else round(age.total_seconds(), 3)


def _ago(age: timedelta | None) -> str | None:
    if age is None:
        return None
    whole = timedelta(seconds=round(max(0.0, age.total_seconds())))
    return f"{format_duration(whole)} ago"
