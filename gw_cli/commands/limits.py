"""`gw limits`: list the limits of tasks."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from gw_cli import output, stderr
from gw_cli.command import command, with_layout
from gw_cli.connect import open_client
from gw_cli.output import AUTOMATIC, Layout
from gw_cli.records import Fields, fields_of
from gw_cli.settings import Configuration
from gw_core.operations import format_duration

FIELDS: Final[Fields] = {
    "task": attrgetter("task"),
    "running": attrgetter("running"),
    "locked": attrgetter("locked"),
    "per_period": attrgetter("per_period"),
    "period_seconds": lambda limit: None if limit.period is None else limit.period.total_seconds(),
    "burst": attrgetter("burst"),
    "field": attrgetter("field"),
    "by": attrgetter("set_by"),
    "since": attrgetter("set_at"),
}
SHOWN: Final[Fields] = {
    "rate": lambda limit: None if limit.period is None else f"{limit.per_period}/{format_duration(limit.period)}",
}
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


@command("limits")
@with_layout
def limits(configuration: Configuration, layout: Layout = AUTOMATIC) -> None:
    """List the limits of tasks.

    With how many of their jobs are locked now. Only gw workers obey these limits.
    """
    with open_client(configuration) as client:
        found = client.limits.list()
    layout.print([fields_of(each, {**FIELDS, **SHOWN}) for each in found], keys=tuple(FIELDS), columns=COLUMNS)
    if not found:
        stderr.note("No task has a limit.")
