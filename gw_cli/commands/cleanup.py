"""`gw cleanup`: delete failed jobs, unused tasks and unused queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import bulk_command, output, project, stderr
from gw_cli.arguments import duration, task_name
from gw_cli.command import Json, command
from gw_cli.confirmation import Question, Steps, Verb
from gw_cli.connect import open_to_change
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FrontEnd

if TYPE_CHECKING:
    from gw_core import Client

HISTORY: Final = "expired-history"
WHAT: Final = ("failed-jobs", "unused-tasks", "unused-queues", HISTORY)
GRAPHILE_WORKER_NAMES: Final = {
    "DELETE_PERMAFAILED_JOBS": "failed-jobs",
    "GC_TASK_IDENTIFIERS": "unused-tasks",
    "GC_JOB_QUEUES": "unused-queues",
}
DELETED: Final = Shape((Column("target", "TARGET"), Column("count", "COUNT", right=True), Column("dry_run")))


@command("cleanup")
@for_each_shard()
def cleanup(
    configuration: Configuration,
    what: Annotated[list[str], typer.Argument(metavar="TARGET...", help=f"{', '.join(WHAT)}, or Node.js names")],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="TASK", help="Task to keep (repeatable)"),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DURATION", help="Only jobs that failed so long ago, such as 30d"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted")] = False,
    yes: bulk_command.Yes = False,
    as_json: Json = False,
) -> Steps:
    """Delete failed jobs, unused tasks and unused queues.

    With --older-than, only jobs that failed longer ago; a delay before their next attempt counts from its end.
    Keeps the tasks found here, those named with --keep, and those of workers with heartbeats. Other workers cache the
    ids of their tasks and do not find jobs of a deleted one: restart them, or name their tasks with --keep.
    expired-history drops the partitions of history whose rows are expired, and counts them; workers do that too.
    """
    chosen = _chosen(what)
    age = None if older_than is None else _age(older_than, chosen)
    kept = {*map(task_name, keep or ()), *(_own_tasks(configuration) if "unused-tasks" in chosen else ())}
    with open_to_change(configuration) as client:
        if "failed-jobs" in chosen and not (dry_run or yes):
            yield _question(client, age)
        rows = (_counts if dry_run else _clear)(client, chosen, sorted(kept), age)
    output.records(rows, DELETED, as_json=as_json)


def _own_tasks(configuration: Configuration) -> Sequence[str]:
    return project.registry(configuration, is_required=True).identifiers


def _chosen(what: Sequence[str]) -> list[str]:
    """Return what was named in the order in which it is done; commas separate as well."""
    named = [GRAPHILE_WORKER_NAMES.get(each.strip(), each.strip()) for text in what for each in text.split(",")]
    for each in named:
        if each not in WHAT:
            raise InvalidInputError(f"{quoted(each)} is not a cleanup target; give {', '.join(WHAT)}")
    return [each for each in WHAT if each in named]


def _age(text: str, chosen: Sequence[str]) -> timedelta:
    """Return the age in `--older-than`, which is for failed jobs alone."""
    if chosen != ["failed-jobs"]:
        raise InvalidInputError("--older-than is for failed-jobs; clean up the others with a command of their own")
    return duration("--older-than", text)


def _question(client: Client, age: timedelta | None) -> Question:
    from gw_core.front_ends import CleanupTarget

    count = client.cleanup.count(CleanupTarget.FAILED_JOBS, older_than=age)
    place = visible(FrontEnd(client).place)
    return Question(
        verb=Verb("delete", "Deleted"), counts={"job": count}, condition=" that failed permanently", place=place
    )


def _counts(
    client: Client, chosen: Sequence[str], keep: Sequence[str], age: timedelta | None
) -> list[dict[str, object]]:
    """Count what a run would delete, each kind after those before it are gone."""
    from gw_core.front_ends import CleanupTarget

    kinds = [CleanupTarget(each) for each in chosen if each != HISTORY]
    counts = {
        each.value: client.cleanup.count(each, keep, after=kinds[:place], older_than=age)
        for place, each in enumerate(kinds)
    }
    if HISTORY in chosen:
        counts[HISTORY] = client.history.status().expired_partitions
    return [{"target": target, "count": count, "dry_run": True} for target, count in counts.items()]


def _clear(
    client: Client, chosen: Sequence[str], keep: Sequence[str], age: timedelta | None
) -> list[dict[str, object]]:
    from gw_core.front_ends import CleanupTarget

    counts, by = dict.fromkeys(chosen, 0), bulk_command.operator()
    with bulk_command.interruptions() as interrupted:
        try:
            for what in chosen:
                if what == HISTORY:
                    counts[what] = len(client.history.expire())
                    continue
                for deleted in client.cleanup.delete_in_batches(CleanupTarget(what), keep, older_than=age, by=by):
                    counts[what] += deleted
                    if interrupted():
                        raise KeyboardInterrupt
        except BaseException as error:
            done = ", ".join(f"{count} of {what}" for what, count in counts.items() if count)
            if done:
                rest = bulk_command.rest_of(error, "rows of the batch that was under way")
                stderr.note(f"Deleted {done} before this ended; {rest}.")
            raise
    return [{"target": what, "count": count, "dry_run": False} for what, count in counts.items()]
