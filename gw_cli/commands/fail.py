"""`gw fail`: fail jobs permanently."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import bulk_command


@bulk_command.bulk_command(bulk_command.Verb("fail", "Failed"))
def fail(
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Text of the last error")] = None,
) -> bulk_command.Act:
    """Fail jobs permanently.

    Running ones are skipped and named.
    """
    return lambda batches, jobs: batches.fail(jobs, reason)
