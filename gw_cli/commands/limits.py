"""`gw limits`: list the limits of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_cli import output, stderr
from gw_cli.command import command, new_app
from gw_cli.connect import open_client
from gw_cli.layout import with_layout
from gw_cli.output import AUTOMATIC, Layout
from gw_cli.settings import Configuration
from gw_core.operations import format_duration

if TYPE_CHECKING:
    from gw_core.operations import TaskLimit

KEYS: Final = ("task", "running", "locked", "per_period", "period_seconds", "burst", "field", "by", "since")
COLUMNS: Final = (
    output.Column("task", "TASK", shrinks=True),
    output.Column("running", "RUNNING", right=True),
    output.Column("locked", "NOW", right=True),
    output.Column("rate", "RATE", right=True),
    output.Column("burst", "BURST", right=True, rank=2),
    output.Column("field", "FOR EACH", shrinks=True, rank=5),
    output.Column("by", "BY", shrinks=True, rank=4),
    output.Column("since", "SINCE", rank=3),
)

app = new_app()


@command(app, "limits")
@with_layout
def limits(configuration: Configuration, layout: Layout = AUTOMATIC) -> None:
    """List the limits of tasks.

    With how many of their jobs are locked now. Only gw workers obey these limits.
    """
    with open_client(configuration) as client:
        found = client.limits.list()
    layout.print([limit_record(each) for each in found], keys=KEYS, columns=COLUMNS)
    if not found:
        stderr.note("No task has a limit.")


def limit_record(limit: TaskLimit) -> dict[str, object]:
    """Return a limit under the keys we promise, and the rate as a table shows it."""
    period = limit.period
    return {
        "task": limit.task,
        "running": limit.running,
        "locked": limit.locked,
        "per_period": limit.per_period,
        "period_seconds": None if period is None else period.total_seconds(),
        "burst": limit.burst,
        "field": limit.field,
        "by": limit.set_by,
        "since": limit.set_at,
        "rate": None if period is None else f"{limit.per_period}/{format_duration(period)}",
    }
