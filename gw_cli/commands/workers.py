"""`gw workers`, `gw sweep` and `gw unlock`: list workers, and recover what dead ones hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import bulk_command, output, stderr
from gw_cli.command import Json, Printed, command
from gw_cli.confirmation import Question, Steps, Verb
from gw_cli.connect import open_client, open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration, table
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FrontEnd, counted, format_duration

if TYPE_CHECKING:
    from gw_core import RecoverySettings
    from gw_core.operations import SweepReport, WorkerInfo

WORKERS: Final = Shape(
    (
        Column("id", "WORKER", shrinks=True),
        Column(
            "state",
            "STATE",
            lambda worker: "stale" if worker.is_stale else "running" if worker.has_heartbeat else "no_heartbeat",
        ),
        Column("host", "HOST", shrinks=True, rank=3),
        Column("pid", "PID", right=True, rank=4),
        Column("version", "VERSION", rank=2),
        Column("started_at", "STARTED", rank=5),
        Column("last_heartbeat_at"),
        Column("heartbeat_age_seconds", find=lambda worker: _seconds(worker.heartbeat_age)),
        Column("lock_age_seconds", find=lambda worker: _seconds(worker.lock_age)),
        Column("jobs", "JOBS", right=True),
        Column("queues", "QUEUES", right=True),
        Column("heartbeat", "HEARTBEAT", lambda worker: _ago(worker.heartbeat_age), right=True, rank=7, shown=True),
        Column("lock", "LATEST LOCK", lambda worker: _ago(worker.lock_age), right=True, rank=6, shown=True),
    ),
    order="id state jobs queues heartbeat lock host pid version started_at",
)


@command("workers")
@for_each_shard()
def workers(
    configuration: Configuration,
    layout: Printed,
) -> None:
    """List running and stale workers.

    Workers without heartbeats, such as Node.js workers, are listed by the locks they own.
    A sweep with the same options recovers the jobs of stale workers.
    """
    with open_client(configuration) as client:
        found = client.workers.list(recovery_settings(configuration))
    layout.show(found, WORKERS)
    if not found:
        stderr.note("No workers are known.")


def recovery_settings(configuration: Configuration) -> RecoverySettings:
    """Return which workers count as dead, and how their jobs go back."""
    from gw_core import RecoverySettings

    return RecoverySettings(
        sweep_threshold=configuration[table.SWEEP_THRESHOLD],
        recovery_delay=configuration[table.RECOVERY_DELAY],
        orphans_after=configuration[table.ORPHANS_AFTER],
        resilient_flags=configuration[table.RESILIENT_FLAG],
        resilient_multiplier=configuration[table.RESILIENT_MULTIPLIER],
    )


def _seconds(age: timedelta | None) -> float | None:
    return None if age is None else round(age.total_seconds(), 3)


def _ago(age: timedelta | None) -> str | None:
    if age is None:
        return None
    whole = timedelta(seconds=round(max(0.0, age.total_seconds())))
    return f"{format_duration(whole)} ago"


# -- sweep -------------------------------------------------------------------------------------------------------------


@command("sweep")
@for_each_shard()
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
        by = bulk_command.operator()
        report = client.workers.sweep(recovery_settings(configuration), dry_run=dry_run, by=by)
    _show_sweep(report, as_json=as_json)


def _show_sweep(report: SweepReport, *, as_json: bool) -> None:
    if as_json:
        record = {
            "dry_run": report.dry_run,
            "jobs": report.jobs,
            "queues": report.queues,
            "skipped": report.skipped,
            "workers": WORKERS.records(report.workers),
        }
        output.record(record)
    else:
        output.records(report.workers, WORKERS, as_json=False)
    stderr.note(_sentence(report))


def _sentence(report: SweepReport) -> str:
    if not report.workers and not report.queues:
        return "No worker counts as dead."
    jobs, queues = counted(report.jobs, "job"), counted(report.queues, "queue")
    if report.dry_run:
        return f"Would recover {jobs} and release {queues}; nothing was changed."
    return f"Recovered {jobs} and released {queues}."


# -- unlock ------------------------------------------------------------------------------------------------------------


ALIVE_SECONDS: Final = 300.0
"""A worker whose last heartbeat is more recent than this may still be alive."""

LOCKS: Final = Shape(
    (
        Column("worker", "WORKER", shrinks=True),
        Column("result", "RESULT"),
        Column("jobs", "JOBS", right=True),
        Column("queues", "QUEUES", right=True),
        Column("heartbeat_age_seconds"),
    )
)


@command("unlock")
@for_each_shard()
def unlock(
    configuration: Configuration,
    workers: Annotated[list[str], typer.Argument(metavar="WORKER...", help="Workers, as 'gw list' shows them")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be unlocked")] = False,
    yes: bulk_command.Yes = False,
    as_json: Json = False,
) -> Steps:
    """Release all locks of dead workers.

    If the worker is alive, its jobs run twice. So the command asks for confirmation, and warns if the last heartbeat is
    recent.
    """
    names = sorted(set(workers))
    if any(not name or "\x00" in name for name in names):
        raise InvalidInputError("a worker's id is empty or holds a NUL; give it as 'gw list' shows it")
    with open_to_change(configuration) as client:
        held = client.workers.locks(names)
        jobs, queues = sum(each.jobs for each in held), sum(each.queues for each in held)
        if not jobs + queues:
            raise NothingMatchedError(
                f"{', '.join(map(quoted, names))} holds no job and no queue; nothing was unlocked"
            )
        _warn(held)
        if not (dry_run or yes):
            place = visible(FrontEnd(client).place)
            yield Question(verb=Verb("unlock", "Unlocked"), counts={"job": jobs, "queue": queues}, place=place)
        freed = held if dry_run else client.workers.unlock(names, by=bulk_command.operator())
    rows = [_lock_record(each, dry_run=dry_run) for each in freed]
    output.records(rows, LOCKS, as_json=as_json)
    return ExitCode.OK if all(each.jobs + each.queues for each in freed) else ExitCode.FAILED


def _warn(held: Sequence[WorkerInfo]) -> None:
    for each in held:
        if each.heartbeat_age is not None and each.heartbeat_age.total_seconds() < ALIVE_SECONDS:
            age = f"its last heartbeat was {each.heartbeat_age.total_seconds():.0f} s ago"
            stderr.note(f"warning: {quoted(each.id)} may be alive: {age}; if it is, its current jobs run a second time")


def _lock_record(each: WorkerInfo, *, dry_run: bool) -> dict[str, object]:
    result = "no_locks" if not each.jobs + each.queues else "would_unlock" if dry_run else "unlocked"
    age = None if each.heartbeat_age is None else round(each.heartbeat_age.total_seconds(), 1)
    return {
        "worker": each.id,
        "result": result,
        "jobs": each.jobs,
        "queues": each.queues,
        "heartbeat_age_seconds": age,
    }
