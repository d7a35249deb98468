"""`gw sweep`: give back the jobs of workers that went silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gw_cli import options, output, stderr
from gw_cli.command import command, new_app
from gw_cli.commands.workers import COLUMNS, KEYS, recovery_settings, worker_record
from gw_cli.connect import configured, open_to_change

if TYPE_CHECKING:
    from gw_core.operations import SweepReport

app = new_app()


@command(app, "sweep")
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    sweep_threshold: options.SweepThreshold = None,
    recovery_delay: options.RecoveryDelay = None,
    orphans_after: options.OrphansAfter = None,
    resilient_flag: options.ResilientFlag = None,
    resilient_multiplier: options.ResilientMultiplier = None,
    as_json: options.Json = False,
    connection: options.Connection = None,
    schema: options.Schema = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> None:
    """Give back the jobs of workers that went silent.

    Their attempts are uncounted, their queues freed, and the workers forgotten.
    A worker without a heartbeat, such as one of Node.js, is judged by its latest lock.
    """
    configuration = configured(
        config,
        connection=connection,
        schema=schema,
        pg_bin=pg_bin,
        sweep_threshold=sweep_threshold,
        recovery_delay=recovery_delay,
        orphans_after=orphans_after,
        resilient_flag=resilient_flag,
        resilient_multiplier=resilient_multiplier,
    )
    with open_to_change(configuration) as client:
        report = client.sweep(recovery_settings(configuration), dry_run=dry_run)
    _show(report, as_json=as_json)


def _show(report: SweepReport, *, as_json: bool) -> None:
    workers = [worker_record(worker) for worker in report.workers]
    if as_json:
        record = {
            "dry_run": report.dry_run,
            "was_busy": report.was_busy,
            "jobs": report.jobs,
            "queues": report.queues,
            "skipped": report.skipped,
            "workers": [{key: worker[key] for key in KEYS} for worker in workers],
        }
        output.line(output.to_json(record))
    else:
        output.records(workers, keys=KEYS, columns=COLUMNS, as_json=False)
    stderr.note(_sentence(report))


def _sentence(report: SweepReport) -> str:
    if report.was_busy:
        return "Somebody else is sweeping; nothing was done."
    if not report.workers:
        return "No worker counts as dead."
    jobs = "1 job" if report.jobs == 1 else f"{report.jobs} jobs"
    queues = "1 queue" if report.queues == 1 else f"{report.queues} queues"
    if report.dry_run:
        return f"Would give back {jobs} and free {queues}; nothing was changed."
    return f"Recovered {jobs} and released {queues}."
