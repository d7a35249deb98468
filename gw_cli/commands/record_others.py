"""`gw record-others`: record in history the jobs that other programs end."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from gw_cli.command import Printed, command
from gw_cli.connect import open_to_change
from gw_cli.output import Column
from gw_cli.settings import Configuration
from gw_core.operations import format_duration, parse_duration

KEYS: Final = ("records_others", "keep_seconds")
COLUMNS: Final = (Column("records_others_shown", "JOBS ENDED BY OTHERS"),)


@command("record-others")
def record_others(
    configuration: Configuration,
    layout: Printed,
    period: Annotated[
        str | None, typer.Argument(metavar="[PERIOD]", help="How long to keep them, such as 7d, or off")
    ] = None,
) -> None:
    """Record jobs that other programs end.

    Adds a trigger to the jobs table, which records each job that Node.js or Rust workers complete and each job that is
    removed; off removes it. Only the owner of the queue may do that. Without PERIOD, shows whether they are recorded.
    """
    with open_to_change(configuration) as client:
        if period is not None:
            client.history.record_others(None if period == "off" else parse_duration(period))
        kept = client.history.status().records_others
    row = {
        "records_others": kept is not None,
        "keep_seconds": None if kept is None else kept.total_seconds(),
        "records_others_shown": "not recorded" if kept is None else f"recorded and kept for {format_duration(kept)}",
    }
    layout.print([row], keys=KEYS, columns=COLUMNS)
