"""`gw complete`: delete jobs as if they had been completed."""

from __future__ import annotations

from gw_cli import acting, options
from gw_cli.frame import command, new_app
from gw_cli.session import configured, open_to_change

VERB = acting.Verb("complete", "Completed")

app = new_app()


@command(app, "complete")
def complete(
    ids: acting.Ids = None,
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
    """Delete jobs as if they had been completed.

    Running ones are skipped and named.
    """
    choice = acting.Choice(
        ids=ids, key=key, state=state, task=task, queue=queue, worker=worker, flag=flag, error=error, every=every
    )
    choice.filter()
    configuration = configured(config, connection=connection, schema=schema, pg_bin=pg_bin)
    with open_to_change(configuration) as client:
        return acting.act(client.care, choice, VERB, client.care.complete, dry_run=dry_run, yes=yes, as_json=as_json)
