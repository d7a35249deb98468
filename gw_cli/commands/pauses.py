"""`gw pauses`: list what is paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_cli import output, stderr
from gw_cli.command import command, new_app
from gw_cli.connect import open_client
from gw_cli.layout import with_layout
from gw_cli.output import AUTOMATIC, Layout
from gw_cli.settings import Configuration

if TYPE_CHECKING:
    from gw_core.operations import Pause

KEYS: Final = ("target", "since", "until", "by", "reason")
COLUMNS: Final = (
    output.Column("target", "PAUSED", shrinks=True),
    output.Column("since", "SINCE"),
    output.Column("until", "UNTIL"),
    output.Column("by", "BY", shrinks=True, rank=3),
    output.Column("reason", "REASON", shrinks=True, rank=4),
)

app = new_app()


@command(app, "pauses")
@with_layout
def pauses(configuration: Configuration, layout: Layout = AUTOMATIC) -> None:
    """List what is paused.

    Since when, until when, by whom and why.
    """
    with open_client(configuration) as client:
        found = client.pauses.list()
    layout.print([pause_record(each) for each in found], keys=KEYS, columns=COLUMNS)
    if not found:
        stderr.note("Nothing is paused.")


def pause_record(pause: Pause) -> dict[str, object]:
    """Return a pause under the keys we promise."""
    return {
        "target": str(pause.target),
        "since": pause.since,
        "until": pause.until,
        "by": pause.by,
        "reason": pause.reason,
    }
