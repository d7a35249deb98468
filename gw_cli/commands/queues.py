"""`gw queues`: list named queues."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from gw_cli import stderr
from gw_cli.arguments import positive_number
from gw_cli.command import DEFAULT_LIMIT, Printed, command, row_limit
from gw_cli.connect import open_client
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard

MOST: Final = 1_000
QUEUES: Final = Shape(
    (
        Column("queue_name", "QUEUE", "name", shrinks=True),
        Column("locked_by", "LOCKED BY", "locked_by", shrinks=True, rank=8),
        Column("locked_at", "SINCE", "locked_at", rank=5),
        Column("unclaimed", find="unclaimed.value"),
        Column("unclaimed_quality", find="unclaimed.quality.value"),
        Column("due", find="due.value"),
        Column("due_quality", find="due.quality.value"),
        Column("next_job_id", "NEXT", "next_job_id", right=True, rank=4),
        Column("next_job_task", "TASK", "next_job_task", shrinks=True, rank=3),
        Column("next_job_run_at", "RUN AT", "next_job_run_at", rank=2),
        Column("paused", "PAUSED", "pause.description", shrinks=True, rank=7),
        Column("unclaimed_shown", "UNCLAIMED", "unclaimed", right=True, shown=True),
        Column("due_shown", "DUE", "due", right=True, rank=6, shown=True),
    ),
    order="queue_name unclaimed_shown due_shown locked_by locked_at next_job_id next_job_task next_job_run_at paused",
)


@command("queues")
@for_each_shard("after")
def queues(
    configuration: Configuration,
    layout: Printed,
    locked: Annotated[bool, typer.Option("--locked", help="Only locked queues")] = False,
    after: Annotated[str, typer.Option("--after", metavar="NAME", help="Start after this queue")] = "",
    limit: Annotated[str, row_limit(MOST)] = DEFAULT_LIMIT,
) -> None:
    """List named queues.

    In order of their names: how many jobs wait, who holds the queue and since when, and which job is next. A number
    with a + is where counting stopped.
    """
    most = positive_number("--limit", limit, MOST)
    with open_client(configuration) as client:
        known = client.queues.list(after=after, limit=most + 1, only_locked=locked)
    found = known[:most]
    layout.show(found, QUEUES)
    if not found:
        stderr.note("No queues match.")
    elif len(known) > most:
        stderr.note(f"There are more queues; continue with --after {quoted(found[-1].name)}")
