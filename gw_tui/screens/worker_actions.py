"""What screens that show workers can have done to them: unlocking one, a sweep, and clearing away."""

from __future__ import annotations

from textual import work

from gw_core import RecoverySettings
from gw_core.operations import WorkerInfo
from gw_tui.actions.actions import Unlock
from gw_tui.actions.batch import ActionBatch
from gw_tui.dialogs.confirm import Confirm
from gw_tui.rules.worker_health import allowed
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, sanitize


class WorkerActionsMixin(ConsoleScreen):
    """A screen that knows which worker is meant, by the id it returns as `holder`."""

    def holder(self) -> str | None:
        """Return the id of the worker an unlock given now would mean; None when there is none."""
        return None

    @work
    async def action_unlock(self) -> None:
        """Take every job and queue from a worker, after a question that says what it is known to be doing."""
        worker_id = self.holder()
        if worker_id is None:
            self.notify("No worker holds this.")
            return
        info = self._known(worker_id)
        may_live = info is not None and info.has_heartbeat and not info.is_stale
        act = Unlock(workers=(worker_id,))
        question = Confirm(
            f"Unlock {worker_id}?",
            _about(worker_id, info, self.console.source.target.recovery),
            ok="Unlock",
            to_type=worker_id if may_live else "",
            act=act,
        )
        if await self.app.push_screen_wait(question) is not None:
            self.console.deeds.begin(ActionBatch(done_words="unlocked", parts=(act,), thing="worker"))

    def _known(self, worker_id: str) -> WorkerInfo | None:
        glance = self.console.glance
        return None if glance is None else next((each for each in glance.workers if each.id == worker_id), None)


class CleanupMixin(ConsoleScreen):
    """A screen from which what nobody needs any more can be cleared away."""

    def action_cleanup(self) -> None:
        """Ask what to clear away, and whether that is meant."""
        self.console.upkeep.clean_up()


class SweepMixin(ConsoleScreen):
    """A screen from which a sweep can be had: it shows first what it would do."""

    def action_sweep(self) -> None:
        """Ask what a sweep would do, and then whether to do it."""
        self.console.upkeep.sweep()


def _about(worker_id: str, info: WorkerInfo | None, recovery: RecoverySettings) -> str:
    """Say what is known of a worker, and what unlocking it means."""
    if info is None:
        return f"Nothing is known of {sanitize.line(worker_id, 64)}; if it still runs jobs, they will run twice."
    holds = f"{formatting.counted(info.jobs, 'job')} and {formatting.counted(info.queues, 'queue')}"
    if info.is_stale:
        beat = "No beat" if info.heartbeat_age is None else f"Last beat {formatting.span(info.heartbeat_age)} ago"
        return f"{beat}: it counts as dead. It holds {holds}.\nThey are given back, with the attempt counted."
    if info.has_heartbeat:
        beat = formatting.span(info.heartbeat_age) if info.heartbeat_age is not None else "?"
        return (
            f"! IT MAY LIVE: last beat {beat} ago; "
            f"it counts as dead after {formatting.span(allowed(info, recovery))}.\n"
            f"It holds {holds}.\nIf it lives, the jobs it runs now will run twice."
        )
    since = "" if info.lock_age is None else f" It took its last lock {formatting.span(info.lock_age)} ago."
    return (
        f"It has no heartbeat, as workers of Node.js have none. It holds {holds}.{since}\n"
        "If it still lives, the jobs it runs now will run twice."
    )
