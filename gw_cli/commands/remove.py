"""`gw remove`: remove the job with a key."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import output
from gw_cli.command import Json, command
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration


@command("remove")
def remove(
    configuration: Configuration,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the job")],
    as_json: Json = False,
) -> None:
    """Remove the job with a key.

    A running job finishes, but is not retried; the output reports which of the two happened.
    """
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
