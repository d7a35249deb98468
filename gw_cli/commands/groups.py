"""`gw groups`: list the jobs that wait for others, and cancel them."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import positive_number
from gw_cli.bulk_command import operator
from gw_cli.command import Json, Printed, command
from gw_cli.connect import open_client, open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.output import Column, Shape
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard

MAX_ID: Final = 2**63 - 1
MAX_GROUPS: Final = 100_000

GROUPS: Final = Shape(
    (
        Column("id", "ID", right=True),
        Column("task", "TASK", shrinks=True),
        Column("job_key", "KEY", shrinks=True, rank=1),
        Column("members", "MEMBERS", right=True, rank=4),
        Column("open", "OPEN", right=True),
        Column("failed", "FAILED", right=True),
        Column("on_failure", "ON FAILURE", lambda group: str(group.on_failure), rank=3),
        Column("since", "SINCE", "created_at", rank=2),
    )
)
CANCELLED: Final = Shape((Column("id", "JOB", right=True), Column("result", "RESULT")))


@command("groups list")
@for_each_shard()
def list_groups(configuration: Configuration, layout: Printed) -> None:
    """List the jobs that wait for others.

    Prints the oldest first, and for each how many of the other jobs have not ended, and how many failed permanently.
    """
    with open_client(configuration) as client:
        found = client.groups.list(limit=MAX_GROUPS)
    layout.show(found, GROUPS)
    if not found:
        stderr.note("No job waits for others.")


@command("groups cancel")
@for_each_shard(ids="ids")
def cancel(
    configuration: Configuration,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Jobs that wait, by the ids that gw groups list shows")
    ],
    as_json: Json = False,
) -> ExitCode:
    """Drop jobs that wait for others, and the jobs that wait for them.

    The jobs that they wait for stay in the queue and run as usual; gw complete and gw fail end them.
    """
    wanted = [positive_number("ID", each, MAX_ID) for each in dict.fromkeys(ids)]
    with open_to_change(configuration) as client:
        cancelled = set(client.groups.cancel(*wanted, by=operator()))
    if not cancelled:
        raise NothingMatchedError(f"no job {', '.join(map(str, wanted))} waits; gw groups list shows those that do")
    rows = [{"id": each, "result": "cancelled" if each in cancelled else "not_found"} for each in wanted]
    output.records(rows, CANCELLED, as_json=as_json)
    return ExitCode.OK if len(cancelled) == len(wanted) else ExitCode.FAILED
