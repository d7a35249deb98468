"""`gw count`: count the jobs of a selection."""

from __future__ import annotations

from gw_cli import bulk_command, output
from gw_cli.command import Json, command
from gw_cli.connect import open_client
from gw_cli.records import counted
from gw_cli.settings import Configuration
from gw_core import Selection


@command("count")
@bulk_command.with_selection()
def count(
    configuration: Configuration,
    wanted: Selection,
    as_json: Json = False,
) -> None:
    """Count the jobs of a selection.

    Counts exactly, so it reads every job that can match; gw stats estimates a large queue in milliseconds.
    """
    with open_client(configuration) as client:
        found = client.jobs.count(client.jobs.at_server_time(wanted))
    record = {"jobs": found.jobs, "running": found.running}
    output.answer(counted(found.jobs), plain=str(found.jobs), record=record, as_json=as_json)
