"""The `gw` command and the SQL that are equivalent to an action of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gw_core.operations import CommandPreview
from gw_tui.actions.actions import Action, PreviewContext

if TYPE_CHECKING:
    from gw_core.operations import CommandText, QueueSnapshot
    from gw_tui.rules.options import QueueInfo


def preview(action: Action, info: QueueInfo, snapshot: QueueSnapshot | None = None) -> CommandText | None:
    """Return the equivalent of an action; None where there is none, or where it changes nothing."""
    stale = () if snapshot is None else tuple(each.id for each in snapshot.workers if each.is_stale)
    has_heartbeats = snapshot is None or snapshot.schema.has_heartbeats
    context = PreviewContext(recovery=info.recovery, stale_workers=stale, has_heartbeats=has_heartbeats)
    return action.preview(CommandPreview(info.schema), context)
