"""What could be typed instead of an act of the console: the `gw` command and the SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gw_core.operations import CommandPreview
from gw_tui.actions.actions import (
    Act,
    Add,
    Clean,
    Fail,
    Forget,
    Remove,
    RemoveByKey,
    Reschedule,
    Retry,
    Sweep,
    Unlock,
)

if TYPE_CHECKING:
    from gw_core.operations import CommandText, JobVersion, QueueSnapshot
    from gw_tui.data.source import Target


def as_typed(act: Act, target: Target, glance: QueueSnapshot | None = None) -> CommandText | None:
    """Return what does the same as an act; None for those that nobody could type, or that change nothing."""
    write = CommandPreview(target.schema)
    match act:
        case Retry():
            return write.retry(_ids(act.jobs))
        case Reschedule():
            numbers = {name: getattr(act, name) for name in ("priority", "attempts", "max_attempts")}
            return write.reschedule(_ids(act.jobs), run_at=_fixed(act), **numbers)
        case Fail():
            return write.fail(_ids(act.jobs), act.reason)
        case Remove():
            return write.remove(_ids(act.jobs))
        case RemoveByKey():
            return write.remove_by_key(act.key)
        case Add():
            return write.add(act.spec, act.payload)
        case Unlock():
            return write.unlock(act.workers)
        case Forget():
            return write.forget(act.identifier)
        case Clean(dry_run=False):
            return write.clean(act.litter.value, has_hearts=_has_hearts(glance))
        case Sweep(dry_run=False) if glance is not None:
            dead = [each.id for each in glance.workers if each.is_stale]
            delay = target.recovery.delay
            return write.sweep(dead, delay=delay, forgets=_has_hearts(glance)) if dead else None
        case _:
            return None


def _fixed(act: Reschedule) -> datetime | None:
    """Return the moment meant; a span would count from when it is typed."""
    return act.run_at if isinstance(act.run_at, datetime) else None


def _ids(jobs: Sequence[JobVersion]) -> list[int]:
    return [each.id for each in jobs]


def _has_hearts(glance: QueueSnapshot | None) -> bool:
    return glance is None or glance.schema.has_heartbeats
