"""`gw complete`: delete jobs as if they had been completed."""

from __future__ import annotations

from gw_cli import bulk_command


@bulk_command.bulk_command(bulk_command.Verb("complete", "Completed"))
def complete() -> bulk_command.Act:
    """Complete jobs without running them.

    Running ones are skipped and named.
    """
    return lambda batches, jobs: batches.complete(jobs)
