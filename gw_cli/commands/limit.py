"""`gw limit` and `gw limits`: limit how many jobs of a task run at a time or start per period."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final

import typer

from gw_cli import stderr
from gw_cli.arguments import positive_number, task_name
from gw_cli.bulk_command import operator
from gw_cli.command import Json, Printed, command
from gw_cli.commands.pause import report
from gw_cli.connect import open_client, open_to_change
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_cli.typos import doubt_about
from gw_core.errors import InvalidInputError
from gw_core.front_ends import NameKind, format_duration, parse_duration

MAX_COUNT: Final = 1_000_000
_RATE: Final = re.compile(r"([0-9]{1,7})/([0-9]*)([a-z]+)")

LIMITS: Final = Shape(
    (
        Column("task", "TASK", shrinks=True),
        Column("running", "RUNNING", right=True),
        Column("locked", "NOW", right=True),
        Column("per_period"),
        Column("period_seconds", find=lambda limit: None if limit.period is None else limit.period.total_seconds()),
        Column("rate", "RATE", lambda limit: _written(limit.per_period, limit.period), right=True, shown=True),
        Column("burst", "BURST", right=True, rank=2),
        Column("field", "FOR EACH", shrinks=True, rank=5),
        Column("by", "BY", "set_by", shrinks=True, rank=4),
        Column("since", "SINCE", "set_at", rank=3),
    )
)


@command("limit")
@for_each_shard()
def limit(
    configuration: Configuration,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task identifier, or task:NAME as in gw pause")],
    running: Annotated[
        str | None, typer.Option("--running", metavar="N", help="At most N jobs at a time, across all workers")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/TIME", help="At most N starts per time: 100/s, 10/m or 500/15m")
    ] = None,
    burst: Annotated[
        str | None, typer.Option("--burst", metavar="N", help="Starts at the same time after an idle time, with --rate")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="FIELD", help="Count for each value of this field of the payload: tenant_id"),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the limit")] = False,
    as_json: Json = False,
) -> int:
    """Limit how many jobs of a task run or start.

    Limits running jobs, starts per period, or both, over all gw workers; Node.js and Rust workers ignore it.
    Replaces the limit of the task. With --field, it counts for each value separately, for example for each
    tenant; this builds an index. Names the workers that have not confirmed it within 2 s, and exits with 1.
    """
    if off and (running or rate or burst or field):
        raise InvalidInputError("--off removes the whole limit; give it alone")
    if burst is not None and rate is None:
        raise InvalidInputError("--burst belongs to --rate; give both")
    task = task_name(task)
    most = None if running is None else positive_number("--running", running, MAX_COUNT)
    count, period = (None, None) if rate is None else _rate(rate)
    together = None if burst is None else positive_number("--burst", burst, MAX_COUNT)
    with open_to_change(configuration) as client:
        if off:
            result = client.limits.remove(task, by=operator())
            if not result.changed:
                raise NothingMatchedError(f"task {quoted(task)} has no limit; gw limits lists those that have")
        else:
            if doubt := doubt_about(client, NameKind.TASKS, task):
                stderr.note(doubt)
            result = client.limits.set(
                task, running=most, per_period=count, period=period, burst=together, field=field, by=operator()
            )
    return report({f"task:{task}": "removed" if off else "limited"}, result, as_json=as_json)


@command("limits")
@for_each_shard()
def limits(configuration: Configuration, layout: Printed) -> None:
    """List the limits of tasks.

    With how many of their jobs are locked now. Only gw workers obey these limits.
    """
    with open_client(configuration) as client:
        found = client.limits.list()
    layout.show(found, LIMITS)
    if not found:
        stderr.note("No task has a limit.")


def _rate(text: str) -> tuple[int, timedelta]:
    """Return the number and the period written as `100/s` or `500/15m`."""
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(f"--rate {quoted(text)}: write it like 100/s, 10/m or 500/15m")
    return positive_number("--rate", found[1], MAX_COUNT), parse_duration(f"{found[2] or 1}{found[3]}")


def _written(count: int | None, period: timedelta | None) -> str | None:
    return None if period is None else f"{count}/{format_duration(period)}"
