"""`gw retry`: let failed jobs run again."""

from __future__ import annotations

from gw_cli import acting
from gw_cli.frame import new_app

app = new_app()


@acting.bulk_command(app, acting.Verb("retry", "Retried"), idle=lambda survey: survey.locked + survey.unfailed)
def retry() -> acting.Act:
    """Let failed jobs run again now.

    One that failed for good has all its attempts before it again; running ones are skipped and named.
    """
    return lambda batches, jobs: batches.retry(jobs)
