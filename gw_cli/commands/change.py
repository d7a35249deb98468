"""`gw complete`, `gw fail`, `gw reschedule`, `gw retry` and `gw remove`: change jobs without running them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from gw_cli import output, stderr
from gw_cli.arguments import point_in_time, whole_number
from gw_cli.bulk_command import Chosen, InManner, act, operator
from gw_cli.command import Json, command
from gw_cli.confirmation import Steps, Verb
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError


@command("complete")
@for_each_shard(ids="wanted")
def complete(configuration: Configuration, wanted: Chosen, manner: InManner) -> Steps:
    """Complete jobs without running them.

    Running ones are skipped and named.
    """
    return act(
        configuration,
        wanted,
        Verb("complete", "Completed"),
        manner,
        lambda batches, jobs: batches.complete(jobs, by=operator()),
    )


@command("fail")
@for_each_shard(ids="wanted")
def fail(
    configuration: Configuration,
    wanted: Chosen,
    manner: InManner,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Text of the last error")] = None,
) -> Steps:
    """Fail jobs permanently.

    Running ones are skipped and named.
    """
    return act(
        configuration,
        wanted,
        Verb("fail", "Failed"),
        manner,
        lambda batches, jobs: batches.fail(jobs, reason, by=operator()),
    )


@command("retry")
@for_each_shard(ids="wanted")
def retry(configuration: Configuration, wanted: Chosen, manner: InManner) -> Steps:
    """Retry failed jobs now.

    Permanently failed jobs get all their attempts again. Running jobs are skipped and listed.
    """
    return act(
        configuration,
        wanted,
        Verb("retry", "Retried"),
        manner,
        lambda batches, jobs: batches.retry(jobs, by=operator()),
        idle=lambda survey: survey.locked + survey.unfailed,
    )


@command("reschedule")
@for_each_shard(ids="wanted")
def reschedule(
    configuration: Configuration,
    wanted: Chosen,
    manner: InManner,
    run_at: Annotated[
        str | None,
        typer.Option("--run-at", metavar="TIME", help="Earliest start: 2026-01-31T08:00:00Z, now or +5m"),
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="N", help="Priority; lower numbers run first")
    ] = None,
    attempts: Annotated[
        str | None, typer.Option("--attempts", metavar="N", help="Number of attempts to record; 0 starts over")
    ] = None,
    max_attempts: Annotated[
        str | None, typer.Option("--max-attempts", metavar="N", help="Maximum number of attempts")
    ] = None,
) -> Steps:
    """Change when and how jobs run.

    Running ones are skipped and named.
    """
    changes = _changes(run_at, priority, attempts, max_attempts)
    verb = Verb("reschedule", "Rescheduled")
    return act(
        configuration, wanted, verb, manner, lambda batches, jobs: batches.reschedule(jobs, by=operator(), **changes)
    )


def _changes(
    run_at: str | None, priority: str | None, attempts: str | None, max_attempts: str | None
) -> dict[str, Any]:
    """Return what is to be changed; raises `InvalidInputError` when that is nothing, or out of range."""
    at = None if run_at is None else point_in_time("--run-at", run_at)
    if run_at is priority is attempts is max_attempts is None:
        raise InvalidInputError("nothing to change; give --run-at, --priority, --attempts or --max-attempts")
    if _is_past(at):
        stderr.note(f"note: {quoted(run_at or '')} is in the past, so the jobs may run immediately")
    return {
        # Here `now` is an explicit value and not the default: a duration of zero from the database's clock.
        "run_at": None if run_at is None else at or timedelta(),
        "priority": whole_number("--priority", priority),
        "attempts": whole_number("--attempts", attempts),
        "max_attempts": whole_number("--max-attempts", max_attempts),
    }


def _is_past(at: datetime | timedelta | None) -> bool:
    return at < timedelta() if isinstance(at, timedelta) else at is not None and at < datetime.now(UTC)


@command("remove")
@for_each_shard()
def remove(
    configuration: Configuration,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the job")],
    as_json: Json = False,
) -> None:
    """Remove the job with a key.

    A running job finishes, but is not retried; the output reports which of the two happened.
    """
    with open_to_change(configuration) as client:
        removed = client.remove(key, by=operator())
    if removed is None:
        raise NothingMatchedError(f"no job has the key {quoted(key)}; nothing was removed")
    job, result = removed.job, "running" if removed.was_running else "removed"
    sentence = (
        f"Job {job.id} ({job.task}) is running; it will not be tried again"
        if removed.was_running
        else f"Removed job {job.id} ({job.task})"
    )
    record = {"id": job.id, "task": job.task, "result": result}
    output.answer(sentence, plain=f"{result} {job.id}", record=record, as_json=as_json)
