"""`gw remove`: remove the job with a key."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import options, output
from gw_cli.command import command, new_app
from gw_cli.connect import configured, open_to_change
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.sanitize import quoted

app = new_app()


@command(app, "remove")
def remove(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key the job was added with.")],
    as_json: options.Json = False,
    connection: options.Connection = None,
    schema: options.Schema = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> None:
    """Remove the job with a key.

    One that is running runs on to its end, but will not be tried again; the answer says which of the two happened.
    """
    configuration = configured(config, connection=connection, schema=schema, pg_bin=pg_bin)
    with open_to_change(configuration) as client:
        removed = client.remove(key)
    if removed is None:
        raise NothingMatchedError(f"no job has the key {quoted(key)}; nothing was removed")
    job, result = removed.job, "running" if removed.was_running else "removed"
    sentence = (
        f"Job {job.id} ({job.task_identifier}) is running; it will not be tried again"
        if removed.was_running
        else f"Removed job {job.id} ({job.task_identifier})"
    )
    record = {"id": job.id, "task": job.task_identifier, "result": result}
    output.answer(sentence, plain=f"{result} {job.id}", record=record, as_json=as_json)
