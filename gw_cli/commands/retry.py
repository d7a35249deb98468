"""`gw retry`: let failed jobs run again."""

from __future__ import annotations

from gw_cli import bulk_command


@bulk_command.bulk_command(bulk_command.Verb("retry", "Retried"), idle=lambda survey: survey.locked + survey.unfailed)
def retry() -> bulk_command.Act:
    """Retry failed jobs now.

    Permanently failed jobs get all their attempts again. Running jobs are skipped and listed.
    """
    return lambda batches, jobs: batches.retry(jobs)
