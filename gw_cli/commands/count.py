"""`gw count`: count the jobs of a selection."""

from __future__ import annotations

from gw_cli import bulk_command, output
from gw_cli.command import Json, command, new_app
from gw_cli.connect import open_client
from gw_cli.settings import Configuration

app = new_app()


@command(app, "count")
def count(
    configuration: Configuration,
    selection: bulk_command.Selected = None,
    key: bulk_command.Key = None,
    state: bulk_command.State = None,
    task: bulk_command.Task = None,
    queue: bulk_command.Queue = None,
    worker: bulk_command.Worker = None,
    flag: bulk_command.Flag = None,
    error: bulk_command.Error = None,
    as_json: Json = False,
) -> None:
    """Count the jobs of a selection.

    Counts exactly, so it reads every job that can match; gw stats estimates a large queue in milliseconds.
    """
    wanted = bulk_command.selection(
        selection, key=key, state=state, task=task, queue=queue, worker=worker, flag=flag, error=error
    )
    with open_client(configuration) as client:
        found = client.jobs.count(client.jobs.at_server_time(wanted))
    record = {"jobs": found.jobs, "running": found.running}
    output.answer(bulk_command.counted(found.jobs), plain=str(found.jobs), record=record, as_json=as_json)
