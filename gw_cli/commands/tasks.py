"""`gw tasks`: list the tasks the database knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.command import Printed, command
from gw_cli.commands.workers import recovery_settings
from gw_cli.connect import open_client
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core import JobState

if TYPE_CHECKING:
    from gw_core.operations import TaskReport

TASKS: Final = output.Shape(
    (
        output.Column("task", "TASK", shrinks=True),
        *(output.Column(state) for state in JobState),
        *(output.Column(f"{state}_shown", state.upper(), right=True, rank=5, shown=True) for state in JobState),
        output.Column("quality"),
        output.Column("known_by"),
        output.Column("known_by_shown", "KNOWN BY", shrinks=True, rank=4, shown=True),
        output.Column("workers"),
    )
)


@command("tasks")
@for_each_shard()
def tasks(
    configuration: Configuration,
    layout: Printed,
    exact: Annotated[bool, typer.Option("--exact", help="Count exactly, even if it reads a large table")] = False,
) -> None:
    """List the tasks in the database.

    With their jobs by state, estimated for a large table, and the live workers that know them. These are unknown if a
    live worker, such as a Node.js worker, does not report its tasks.
    """
    with open_client(configuration) as client:
        found = client.tasks.list(recovery_settings(configuration), exact=exact)
    layout.show([record_of(each) for each in found], TASKS)
    if not found:
        stderr.note("The database knows no task yet.")


def record_of(found: TaskReport) -> dict[str, object]:
    """Return a task under the keys we promise, and what a table shows in other words."""
    return {
        "task": found.name,
        **{state: found.jobs[state].value for state in JobState},
        **{f"{state}_shown": str(found.jobs[state]) for state in JobState},
        "quality": "exact" if all(each.quality.value == "exact" for each in found.jobs.values()) else "estimate",
        "known_by": None if found.known_by is None else list(found.known_by),
        "known_by_shown": _workers(found.known_by),
        "workers": None if found.known_by is None else len(found.known_by),
    }


def _workers(known_by: tuple[str, ...] | None) -> str:
    if known_by is None:
        return "unknown"
    return "none" if not known_by else ",".join(known_by)
