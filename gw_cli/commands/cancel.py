"""`gw cancel`: stop running jobs, and drop jobs that wait for others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import bulk_command, output
from gw_cli.command import Json, command
from gw_cli.confirmation import Question, Steps, Verb
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core import Selection
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FrontEnd, parse_duration

if TYPE_CHECKING:
    from gw_core import Client
    from gw_core.operations import CancelledJob

CANCELLED: Final = output.Shape(
    (
        output.Column("id", "ID", right=True),
        output.Column("task", "TASK", shrinks=True),
        output.Column("result", "RESULT", lambda job: str(job.result)),
        output.Column("worker", "WORKER", shrinks=True),
    )
)
MAX_REASON_LENGTH: Final = 1_000
MAX_WAIT: Final = timedelta(hours=1)


@command("cancel")
@for_each_shard(ids="wanted")
def cancel(
    configuration: Configuration,
    wanted: Annotated[
        Selection, bulk_command.selected_by("job_key", "state", "task", "queue", "worker", "flag", "every")
    ],
    yes: bulk_command.Yes = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason; recorded in their last error")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Retry them later, as after any failure")] = False,
    wait: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long to wait for the jobs to stop")
    ] = "10s",
    as_json: Json = False,
) -> Steps:
    """Cancel running jobs, and drop jobs that wait for others.

    Prints the result of each job. Conditions mean running jobs, or waiting ones with state:waiting: those are dropped
    with the jobs that wait for them. With --retry running jobs are retried, as after any failure. A task that does not
    react loses its job after 5 s, although its thread continues; a job of a named queue ends with its task.
    """
    timeout = _timeout(wait)
    if reason is not None and len(reason) > MAX_REASON_LENGTH:
        raise InvalidInputError(f"--reason has {len(reason)} characters; give at most {MAX_REASON_LENGTH}")
    with open_to_change(configuration) as client:
        meant = yield from _confirmed(client, wanted, yes=yes)
        jobs = client.jobs.cancel(
            meant,
            reason=None if reason is None else visible(reason),
            by=bulk_command.operator(),
            retry=retry,
            timeout=timeout,
        )
    output.records(jobs, CANCELLED, as_json=as_json)
    return _verdict(jobs)


def _confirmed(client: Client, selection: Selection, *, yes: bool) -> Generator[Question, None, Selection]:
    """Return the jobs to cancel, after the question how many they are; raises `NothingMatchedError` for none."""
    wanted = FrontEnd(client).at_server_time(selection)
    if wanted.ids is not None:
        return wanted
    meant = FrontEnd(client).cancellable(wanted)
    jobs = client.jobs.count(meant).jobs
    if not jobs:
        doubts = bulk_command.doubts(client, meant)
        raise NothingMatchedError(f"no job matches {quoted(str(meant))}; nothing was cancelled{doubts}")
    if not (yes or wanted.is_by_name):
        yield bulk_command.question(client, meant, jobs, Verb("cancel", "Cancelled"))
    return meant


def _timeout(text: str) -> timedelta:
    timeout: timedelta = parse_duration(text)
    if timeout > MAX_WAIT:
        raise InvalidInputError(f"--timeout {quoted(text)}: give at most 1h")
    return timeout


def _verdict(jobs: Sequence[CancelledJob]) -> ExitCode:
    if all(str(each.result) == "not_found" for each in jobs):
        return ExitCode.NOT_FOUND
    return ExitCode.OK if all(each.result.is_over for each in jobs) else ExitCode.FAILED
