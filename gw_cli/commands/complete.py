"""`gw complete`: delete jobs as if they had been completed."""

from __future__ import annotations

from gw_cli import acting
from gw_cli.frame import new_app

app = new_app()


@acting.bulk_command(app, acting.Verb("complete", "Completed"))
def complete() -> acting.Act:
    """Delete jobs as if they had been completed.

    Running ones are skipped and named.
    """
    return lambda batches, jobs: batches.complete(jobs)
