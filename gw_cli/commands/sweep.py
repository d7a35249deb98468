"""`gw sweep`: recover the jobs of dead workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gw_cli import output, stderr
from gw_cli.command import Json, command
from gw_cli.commands.workers import WORKERS, recovery_settings
from gw_cli.connect import open_to_change
from gw_cli.records import counted
from gw_cli.settings import Configuration

if TYPE_CHECKING:
    from gw_core.operations import SweepReport


@command("sweep")
def sweep(
    configuration: Configuration,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be done")] = False,
    as_json: Json = False,
) -> None:
    """Recover jobs locked by dead workers.

    Their attempts are not counted, their queues are released, and the workers' heartbeats are deleted.
    A worker without heartbeats, such as a Node.js one, is judged by its latest lock.
    """
    with open_to_change(configuration) as client:
        report = client.workers.sweep(recovery_settings(configuration), dry_run=dry_run)
    _show(report, as_json=as_json)


def _show(report: SweepReport, *, as_json: bool) -> None:
    if as_json:
        record = {
            "dry_run": report.dry_run,
            "already_running": report.already_running,
            "jobs": report.jobs,
            "queues": report.queues,
            "skipped": report.skipped,
            "workers": [WORKERS.record(each) for each in report.workers],
        }
        output.line(output.to_json(record))
    else:
        output.Layout().show(report.workers, WORKERS)
    stderr.note(_sentence(report))


def _sentence(report: SweepReport) -> str:
    if report.already_running:
        return "Another sweep is running; nothing was done."
    if not report.workers:
        return "No worker counts as dead."
    jobs, queues = counted(report.jobs), counted(report.queues, "queue")
    if report.dry_run:
        return f"Would recover {jobs} and release {queues}; nothing was changed."
    return f"Recovered {jobs} and released {queues}."
