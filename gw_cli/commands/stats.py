"""`gw stats`: count the jobs by state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import duration
from gw_cli.command import Json, command
from gw_cli.commands import pause
from gw_cli.connect import open_client
from gw_cli.records import count_record
from gw_cli.sanitize import visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.errors import DatabaseUnavailableError, InvalidInputError

if TYPE_CHECKING:
    from datetime import timedelta

    from gw_core.operations import QueueCounts

KEYS: Final = (
    "at",
    "total",
    "states",
    "oldest_due_at",
    "next_due_at",
    "queues",
    "locked_queues",
    "table_bytes",
    "pauses",
    "tasks",
)
COUNT_KEYS: Final = ("count", "quality")
TASK_KEYS: Final = ("task", "states")

COUNTS: Final = output.Shape(
    (
        output.Column("task", "TASK", shrinks=True),
        output.Column("state", "STATE"),
        output.Column("shown", "JOBS", right=True, shown=True),
        output.Column("count"),
        output.Column("quality"),
    )
)
CLEAR: Final = "\x1b[H\x1b[J"
MIN_INTERVAL: Final = 0.2


@command("stats")
@for_each_shard("watch")
def stats(
    configuration: Configuration,
    exact: Annotated[bool, typer.Option("--exact", help="Count exactly, even if it reads a large table")] = False,
    tasks: Annotated[bool, typer.Option("--tasks", help="Count each task too")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until interrupted")] = False,
    interval: Annotated[str, typer.Option("--interval", metavar="DURATION", help="Refresh interval of --watch")] = "2s",
    as_json: Json = False,
) -> None:
    """Count the jobs by state.

    A large table is sampled: such numbers are marked ~, and ~N? when they stand for so few that they may be far off.
    """
    rest = _interval(interval)
    with open_client(configuration) as client:
        found, problem = client.counts(exact=exact), ""
        while True:
            if not problem:
                if watch and output.is_terminal(sys.stdout) and not as_json:
                    output.script(CLEAR)
                _write(found, with_tasks=tasks, as_json=as_json)
                output.flush()
            if not watch:
                return
            Event().wait(rest.total_seconds())
            try:
                found, problem = client.counts(exact=exact), ""
            except DatabaseUnavailableError as error:  # for example while the server restarts
                if not problem:
                    stderr.note(f"{error}; trying again until it is back")
                problem = str(error)


def _interval(text: str) -> timedelta:
    interval = duration("--interval", text)
    if interval.total_seconds() < MIN_INTERVAL:
        raise InvalidInputError(f"--interval: an interval below {MIN_INTERVAL}s slows the workers down")
    return interval


def record_of(found: QueueCounts, *, with_tasks: bool) -> dict[str, object]:
    """Return statistics under the keys we promise."""
    record: dict[str, object] = {
        "at": found.at,
        "total": count_record(found.total),
        "states": _states(found.states),
        "oldest_due_at": found.oldest_due_at,
        "next_due_at": found.next_due_at,
        "queues": found.queues,
        "locked_queues": found.locked_queues,
        "table_bytes": found.table_bytes,
        "pauses": pause.PAUSES.records(found.pauses),
    }
    if with_tasks:
        record["tasks"] = [{"task": name, "states": _states(counts)} for name, counts in found.tasks.items()]
    return record


def _states(counts: Mapping[Any, Any]) -> dict[str, object]:
    return {str(state): count_record(count) for state, count in counts.items()}


def _write(found: QueueCounts, *, with_tasks: bool, as_json: bool) -> None:
    if as_json:
        output.record(record_of(found, with_tasks=with_tasks))
        return
    rows = [*(_row(None, state, count) for state, count in found.states.items()), _row(None, "total", found.total)]
    if with_tasks:
        rows += [_row(task, state, count) for task, each in found.tasks.items() for state, count in each.items()]
    output.records(rows, COUNTS, as_json=False, without=() if with_tasks else ("task",))
    if output.is_terminal(sys.stdout):
        for line in _sentences(found):
            output.line(line)


def _row(task: str | None, state: Any, count: Any) -> dict[str, object]:
    return {"task": task, "state": str(state), "shown": str(count), **count_record(count)}


def _sentences(found: QueueCounts) -> list[str]:
    first, upcoming = (output.cell(each) or "none" for each in (found.oldest_due_at, found.next_due_at))
    return [
        "",
        f"Due for longest: {first}   next to be due: {upcoming}",
        f"Queues: {found.queues:,}, locked: {found.locked_queues:,}   table with indexes: {_size(found.table_bytes)}",
        *(visible(f"Paused: {each.target}, {each.description}") for each in found.pauses),
    ]


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
