"""`gw complete`: delete jobs as if they had been completed."""

from __future__ import annotations

from gw_cli import bulk_command
from gw_cli.command import new_app

app = new_app()


@bulk_command.bulk_command(app, bulk_command.Verb("complete", "Completed"))
def complete() -> bulk_command.Act:
    """Complete jobs without running them.

    Running ones are skipped and named.
    """
    return lambda batches, jobs: batches.complete(jobs)
