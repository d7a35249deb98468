"""`gw queues`: list named queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import positive_number
from gw_cli.command import command, new_app
from gw_cli.connect import open_client
from gw_cli.layout import with_layout
from gw_cli.output import AUTOMATIC, Layout
from gw_cli.paging import DEFAULT_LIMIT, row_limit
from gw_cli.records import count_text
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration

if TYPE_CHECKING:
    from gw_core.operations import QueueReport

MOST: Final = 1_000
KEYS: Final = (
    "queue",
    "locked_by",
    "locked_at",
    "waiting",
    "waiting_quality",
    "due",
    "due_quality",
    "next_job_id",
    "next_job_task",
    "next_job_run_at",
    "paused",
)
COLUMNS: Final = (
    output.Column("queue", "QUEUE", shrinks=True),
    output.Column("waiting_shown", "WAITING", right=True),
    output.Column("due_shown", "DUE", right=True, rank=6),
    output.Column("locked_by", "LOCKED BY", shrinks=True, rank=8),
    output.Column("locked_at", "SINCE", rank=5),
    output.Column("next_job_id", "NEXT", right=True, rank=4),
    output.Column("next_job_task", "TASK", shrinks=True, rank=3),
    output.Column("next_job_run_at", "RUN AT", rank=2),
    output.Column("paused", "PAUSED", shrinks=True, rank=7),
)

app = new_app()


@command(app, "queues")
@with_layout
def queues(
    configuration: Configuration,
    locked: Annotated[bool, typer.Option("--locked", help="Only locked queues")] = False,
    after: Annotated[str, typer.Option("--after", metavar="NAME", help="Start after this queue")] = "",
    limit: Annotated[str, row_limit(MOST)] = DEFAULT_LIMIT,
    layout: Layout = AUTOMATIC,
) -> None:
    """List named queues.

    In order of their names: how many jobs wait, who holds the queue and since when, and which job is next. A number
    with a + is where counting stopped.
    """
    most = positive_number("--limit", limit, MOST)
    with open_client(configuration) as client:
        known = client.queues(after=after, limit=most + 1, only_held=locked)
    found = known[:most]
    layout.print([record_of(each) for each in found], keys=KEYS, columns=COLUMNS)
    if not found:
        stderr.note("No queues match.")
    elif len(known) > most:
        stderr.note(f"There are more queues; continue with --after {quoted(found[-1].name)}")


def record_of(found: QueueReport) -> dict[str, object]:
    """Return a queue under the keys we promise, and what a table shows in other words."""
    return {
        "queue": found.name,
        "locked_by": found.held_by,
        "locked_at": found.held_at,
        "waiting": found.waiting.value,
        "waiting_quality": found.waiting.quality.value,
        "waiting_shown": count_text(found.waiting),
        "due": found.due.value,
        "due_quality": found.due.quality.value,
        "due_shown": count_text(found.due),
        "next_job_id": found.head_id,
        "next_job_task": found.head_task,
        "next_job_run_at": found.head_run_at,
        "paused": None if found.pause is None else found.pause.description,
    }
