"""`gw pauses`: list what is paused."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from gw_cli import output, stderr
from gw_cli.command import command, with_layout
from gw_cli.connect import open_client
from gw_cli.output import AUTOMATIC, Layout
from gw_cli.records import Fields, fields_of
from gw_cli.settings import Configuration

FIELDS: Final[Fields] = {
    "target": lambda pause: str(pause.target),
    "since": attrgetter("since"),
    "until": attrgetter("until"),
    "by": attrgetter("by"),
    "reason": attrgetter("reason"),
}
COLUMNS: Final = (
    output.Column("target", "PAUSED", shrinks=True),
    output.Column("since", "SINCE"),
    output.Column("until", "UNTIL"),
    output.Column("by", "BY", shrinks=True, rank=3),
    output.Column("reason", "REASON", shrinks=True, rank=4),
)


@command("pauses")
@with_layout
def pauses(configuration: Configuration, layout: Layout = AUTOMATIC) -> None:
    """List what is paused.

    Since when, until when, by whom and why.
    """
    with open_client(configuration) as client:
        found = client.pauses.list()
    layout.print([fields_of(each, FIELDS) for each in found], keys=tuple(FIELDS), columns=COLUMNS)
    if not found:
        stderr.note("Nothing is paused.")
