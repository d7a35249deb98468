"""`gw list`: list jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import diagnostics, options, output
from gw_cli.arguments import one_of, positive_number
from gw_cli.frame import command, new_app
from gw_cli.session import configured, open_client
from gw_cli.shapes import COLUMNS, KEYS, for_table, job_record

STATES = ("ready", "scheduled", "running", "backoff", "failed")
MOST = 100_000

app = new_app()


@command(app, "list")
def list_jobs(
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help=f"Only jobs that are {', '.join(STATES)}.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only jobs of this task.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="NAME", help="Only jobs of this queue.")] = None,
    key: Annotated[
        str | None, typer.Option("--job-key", "-k", metavar="KEY", help="Only the job with this key.")
    ] = None,
    limit: Annotated[
        str, typer.Option("--limit", "-n", metavar="N", help=f"How many at most, up to {MOST}.", show_default=True)
    ] = "50",
    payload: Annotated[bool, typer.Option("--payload", help="Show the payloads as well.")] = False,
    as_json: options.Json = False,
    connection: options.Connection = None,
    schema: options.Schema = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> None:
    """List jobs.

    The oldest first.
    """
    one_of("--state", state, STATES)
    most = positive_number("--limit", limit, MOST)
    configuration = configured(config, connection=connection, schema=schema, pg_bin=pg_bin)
    with open_client(configuration) as client:
        found = client.list_jobs(state=state, task=task, queue=queue, key=key, limit=most, with_payload=payload)
    rows = [for_table(job_record(each.job, each.state, with_payload=payload)) for each in found]
    keys = (*KEYS, "payload") if payload else KEYS
    output.records(rows, keys=keys, columns=COLUMNS, as_json=as_json)
    if not rows:
        diagnostics.note("No jobs match.")
    elif len(rows) == most:
        diagnostics.note(f"There may be more than these {most}; ask for more with --limit.")
