"""`gw queues`: list named queues."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import positive_number
from gw_cli.command import DEFAULT_LIMIT, Printed, command, row_limit
from gw_cli.connect import open_client
from gw_cli.records import Fields, count_text, fields_of
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration

MOST: Final = 1_000
FIELDS: Final[Fields] = {
    "queue": attrgetter("name"),
    "locked_by": attrgetter("held_by"),
    "locked_at": attrgetter("held_at"),
    "waiting": attrgetter("waiting.value"),
    "waiting_quality": attrgetter("waiting.quality.value"),
    "due": attrgetter("due.value"),
    "due_quality": attrgetter("due.quality.value"),
    "next_job_id": attrgetter("head_id"),
    "next_job_task": attrgetter("head_task"),
    "next_job_run_at": attrgetter("head_run_at"),
    "paused": lambda queue: None if queue.pause is None else queue.pause.description,
}
SHOWN: Final[Fields] = {
    "waiting_shown": lambda queue: count_text(queue.waiting),
    "due_shown": lambda queue: count_text(queue.due),
}
KEYS: Final = tuple(FIELDS)
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


@command("queues")
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
        known = client.queues(after=after, limit=most + 1, only_held=locked)
    found = known[:most]
    layout.print([fields_of(each, {**FIELDS, **SHOWN}) for each in found], keys=KEYS, columns=COLUMNS)
    if not found:
        stderr.note("No queues match.")
    elif len(known) > most:
        stderr.note(f"There are more queues; continue with --after {quoted(found[-1].name)}")
