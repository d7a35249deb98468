"""Release the locks of the worker that a screen shows."""

from __future__ import annotations

from collections.abc import Sequence

from textual import work

from gw_core import RecoverySettings
from gw_core.front_ends import counted
from gw_core.operations import WorkerInfo
from gw_tui.actions import Action, Unlock
from gw_tui.dialogs.choose import Choice
from gw_tui.dialogs.confirm import confirmed
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, sanitize


class WorkerActionsMixin(ConsoleScreen):
    """A screen whose `holder` can be unlocked."""

    def holder(self) -> str | None:
        """Return the id of the worker that an unlock applies to; None when there is none."""
        return None

    @property
    def useless_keys(self) -> frozenset[str]:
        """An unlock is useless without a worker that holds something."""
        is_free = self.stands and self.holder() is None
        return super().useless_keys | ({"unlock"} if is_free else frozenset())

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        if (worker_id := self.holder()) is None:
            return ()
        return ((Choice("unlock", "unlock", sanitize.line(worker_id, 50)), Unlock(workers=(worker_id,))),)

    @work
    async def action_unlock(self) -> None:
        """Release all locks of a worker, after a confirmation that shows its last heartbeat."""
        worker_id = self.holder()
        if worker_id is None:
            self.notify("Not locked by a worker")
            return
        info = self._known(worker_id)
        may_live = info is not None and info.has_heartbeat and not info.is_stale
        action, recovery = Unlock(workers=(worker_id,)), self.state.source.info.recovery
        to_type = worker_id if may_live else ""
        words = _about(worker_id, info, recovery)
        destroys = info is None or not info.is_stale  # a dead worker runs nothing twice
        if await confirmed(
            self.console, action, f"Unlock {worker_id}?", words, ok="Unlock", to_type=to_type, destroys=destroys
        ):
            self.action_runner.begin(action)

    def _known(self, worker_id: str) -> WorkerInfo | None:
        snapshot = self.state.snapshot
        return None if snapshot is None else next((each for each in snapshot.workers if each.id == worker_id), None)


def _about(worker_id: str, info: WorkerInfo | None, recovery: RecoverySettings) -> str:
    """Return what is known of a worker, and what unlocking it does."""
    if info is None:
        return f"{sanitize.line(worker_id, 64)} is unknown. If it still runs jobs, they run twice."
    holds = f"{counted(info.jobs, 'job')} and {counted(info.queues, 'queue')}"
    if info.is_stale:
        age = info.heartbeat_age
        heartbeat = "No heartbeat" if age is None else f"Last heartbeat {formatting.duration(age)} ago"
        return f"{heartbeat}: presumed dead. It has locked {holds}.\nAll locks are released; the attempt counts."
    if info.has_heartbeat:
        heartbeat = formatting.duration(info.heartbeat_age) if info.heartbeat_age is not None else "?"
        return (
            f"! MAY BE ALIVE: last heartbeat {heartbeat} ago, "
            f"presumed dead after {formatting.duration(recovery.allowed_inactivity(info))}.\n"
            f"It has locked {holds}.\nIf it is alive, its running jobs run twice."
        )
    since = "" if info.lock_age is None else f" Last lock {formatting.duration(info.lock_age)} ago."
    return (
        f"No heartbeat; Node.js workers don't send any. It has locked {holds}.{since}\n"
        "If it is alive, its running jobs run twice."
    )
