"""`gw pause`, `gw resume` and `gw pauses`: no further job of a task, queue, flag or cron item, or none at all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import point_in_time
from gw_cli.bulk_command import operator
from gw_cli.command import Json, Printed, command
from gw_cli.connect import open_client, open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_cli.typos import doubt_about
from gw_core.errors import InvalidInputError
from gw_core.front_ends import NameKind, PauseKind, PauseTarget

if TYPE_CHECKING:
    from gw_core import Client
    from gw_core.operations import PauseResult

_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
CHANGED: Final = Shape((Column("target", "TARGET", shrinks=True), Column("result", "RESULT"), Column("unconfirmed")))

Targets = Annotated[
    list[str],
    typer.Argument(metavar="KIND:NAME...", help="task:NAME, queue:NAME, flag:NAME, cron:ID or all"),
]

PAUSES: Final = Shape(
    (
        Column("target", "PAUSED", lambda pause: str(pause.target), shrinks=True),
        Column("since", "SINCE"),
        Column("until", "UNTIL"),
        Column("by", "BY", shrinks=True, rank=3),
        Column("reason", "REASON", shrinks=True, rank=4),
    )
)


@command("pause")
@for_each_shard()
def pause(
    configuration: Configuration,
    targets: Targets,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="When it ends: 14:00 (local time), +90m or ISO 8601")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Reason; shown with the pause")] = None,
    as_json: Json = False,
) -> int:
    """Pause tasks, queues, flags, cron items or everything.

    Workers start no more matching jobs; running jobs finish. A paused queue is locked for workers in every language;
    other pauses bind gw workers only. A paused cron item adds no jobs; the runs that it skips are not backfilled.
    Prints the workers that do not confirm within 2 s, and then exits with 1.
    """
    end = None if until is None else end_time(until, datetime.now().astimezone())
    with open_to_change(configuration) as client:
        doubts = _doubts(client, targets)  # before a pause adds the queue
        result = client.pauses.pause(
            *targets, until=end, reason=None if reason is None else visible(reason), by=operator()
        )
    for each in doubts:
        stderr.note(each)
    return report(dict.fromkeys(targets, "paused"), result, as_json=as_json)


@command("resume")
@for_each_shard()
def resume(configuration: Configuration, targets: Targets, as_json: Json = False) -> int:
    """Resume what is paused.

    Workers claim its jobs again immediately. If a job of the queue is still running, the queue stays locked until that
    job ends.
    """
    with open_to_change(configuration) as client:
        result = client.pauses.resume(*targets, by=operator())
    if not result.changed:
        are = "is" if len(targets) == 1 else "are"
        raise NothingMatchedError(f"{', '.join(map(quoted, targets))} {are} not paused; gw pauses lists what is")
    done = {each: "resumed" if PauseTarget.parse(each) in result.targets else "not_paused" for each in targets}
    return report(done, result, as_json=as_json)


@command("pauses")
@for_each_shard()
def pauses(configuration: Configuration, layout: Printed) -> None:
    """List what is paused.

    Prints when each pause began, when it ends, who made it, and why.
    """
    with open_client(configuration) as client:
        found = client.pauses.list()
    layout.show(found, PAUSES)
    if not found:
        stderr.note("Nothing is paused.")


def _doubts(client: Client, targets: Sequence[str]) -> list[str]:
    """Return a warning for each target whose name is probably misspelled."""
    kinds = {PauseKind.TASK: NameKind.TASKS, PauseKind.QUEUE: NameKind.QUEUES, PauseKind.CRON: NameKind.CRON}
    named = [(kinds[each.kind], each.name) for each in map(PauseTarget.parse, targets) if each.kind in kinds]
    return [doubt for kind, name in named if (doubt := doubt_about(client, kind, name))]


def end_time(text: str, now: datetime) -> datetime | timedelta:
    """Return the end written as `14:00` (the next one, local time), `+90m`, or ISO 8601 with a zone."""
    if clock := _CLOCK.fullmatch(text.strip()):
        at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        if at <= now:
            at += timedelta(days=1)
        # The offset of that day: the clocks may change before it.
        return at.replace(tzinfo=None).astimezone()
    end = point_in_time("--until", text)
    # The database's clock decides whether a time is over.
    if end is None or (isinstance(end, timedelta) and end <= timedelta(0)):
        raise InvalidInputError(f"--until {quoted(text)} is over; give a future time")
    return end


def report(done: Mapping[str, str], result: PauseResult, *, as_json: bool) -> ExitCode:
    """Print what was done to each target, and warn of workers that have not confirmed it."""
    unconfirmed = list(result.unconfirmed)
    rows = [{"target": each, "result": what, "unconfirmed": unconfirmed} for each, what in done.items()]
    output.records(rows, CHANGED, as_json=as_json)
    for each in result.unconfirmed:
        doubt = "it may start further jobs, or may have died"
        stderr.note(f"warning: worker {quoted(each)} has not confirmed it within 2 s; {doubt}")
    return ExitCode.FAILED if result.unconfirmed else ExitCode.OK
