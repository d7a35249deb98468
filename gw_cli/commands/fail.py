"""`gw fail`: fail jobs for good."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import acting, options
from gw_cli.frame import command, new_app
from gw_cli.session import configured, open_to_change

VERB = acting.Verb("fail", "Failed")

app = new_app()


@command(app, "fail")
def fail(
    ids: acting.Ids = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="What their last error is to say.")
    ] = None,
    key: acting.Key = None,
    state: acting.State = None,
    task: acting.Task = None,
    queue: acting.Queue = None,
    worker: acting.Worker = None,
    flag: acting.Flag = None,
    error: acting.Error = None,
    every: acting.All = False,
    dry_run: acting.DryRun = False,
    yes: acting.Yes = False,
    as_json: options.Json = False,
    connection: options.Connection = None,
    schema: options.Schema = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> int:
    """Fail jobs for good, so that they are not tried again.

    Running ones are skipped and named.
    """
    choice = acting.Choice(
        ids=ids, key=key, state=state, task=task, queue=queue, worker=worker, flag=flag, error=error, every=every
    )
    choice.filter()
    configuration = configured(config, connection=connection, schema=schema, pg_bin=pg_bin)
    with open_to_change(configuration) as client:
        care = client.care
        return acting.act(
            care,
            choice,
            VERB,
            lambda jobs: care.fail(jobs, reason),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )
