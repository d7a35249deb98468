"""What screens that show workers can have done to them: unlocking one, and a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import work

from gw_core import AsTyped, Litter, SweepReport, WorkerInfo
from gw_tui import clean, figures
from gw_tui.acts import Clean, Sweep, Unlock
from gw_tui.deed import Deed
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.confirm import Confirm
from gw_tui.screens.base import ConsoleScreen

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_NAMED: Final = 8

LITTER: Final = (
    Choice("failed-jobs", "failed jobs", "Every job that failed for good is deleted."),
    Choice("unused-tasks", "unused tasks", "Task identifiers without jobs, unless a live worker knows them."),
    Choice("unused-queues", "unused queues", "Named queues without jobs."),
)


class ActsOnWorkers(ConsoleScreen):
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
        beats = info is not None and info.has_heartbeat and not info.is_stale
        question = Confirm(
            f"Unlock {worker_id}?", _about(worker_id, info), ok="Unlock", to_type=worker_id if beats else ""
        )
        if await self.app.push_screen_wait(question) is not None:
            unlock = Deed(done_words="unlocked", parts=(Unlock(workers=(worker_id,)),), thing="worker")
            self.console.deeds.begin(unlock)

    def _copy_unlock(self) -> None:
        """Copy what would unlock the worker: the gw command and the SQL."""
        if (worker_id := self.holder()) is not None:
            typed = AsTyped(self.console.source.target.schema).unlock((worker_id,))
            self.app.copy_to_clipboard(str(typed))
            self.notify(f"Copied: {clean.line(typed.command, 100)}", markup=False)

    def _known(self, worker_id: str) -> WorkerInfo | None:
        glance = self.console.glance
        return None if glance is None else next((each for each in glance.workers if each.id == worker_id), None)


class Cleans(ConsoleScreen):
    """A screen from which what nobody needs any more can be cleared away."""

    @work
    async def action_cleanup(self) -> None:
        """Ask what to clear away, and whether that is meant."""
        chosen = await self.app.push_screen_wait(Choose("Clear away …", LITTER))
        if chosen is None:
            return
        words = {each.id: each.words for each in LITTER}[chosen]
        question = Confirm(
            f"Clear away {chosen.replace('-', ' ')}?", f"{words}\nThis cannot be undone.", ok="Clear away"
        )
        if await self.app.push_screen_wait(question) is not None:
            self.console.deeds.begin(
                Deed(done_words="cleared away", parts=(Clean(litter=Litter(chosen)),), thing="row")
            )


class Sweeps(ConsoleScreen):
    """A screen from which a sweep can be had: it shows first what it would do."""

    def action_sweep(self) -> None:
        """Ask what a sweep would do, and then whether to do it."""
        look = Deed(done_words="would be swept", parts=(Sweep(dry_run=True),), thing="worker", is_quiet=True)
        self.console.deeds.begin(look, self._looked)

    def _looked(self, look: Deed) -> None:
        report = look.result.sweep
        if report is None:
            return
        if not report.workers and not report.jobs and not report.queues:
            self.notify("Nothing to sweep: no worker counts as dead.")
            return
        self._ask_to_sweep(report)

    @work
    async def _ask_to_sweep(self, report: SweepReport) -> None:
        question = Confirm("Sweep?", _would(report), ok="Sweep")
        if await self.app.push_screen_wait(question) is not None:
            self.console.deeds.begin(Deed(done_words="swept", parts=(Sweep(),), thing="worker"))


def _about(worker_id: str, info: WorkerInfo | None) -> str:
    """Say what is known of a worker, and what unlocking it means."""
    if info is None:
        return f"Nothing is known of {clean.line(worker_id, 64)}; if it still runs jobs, they will run twice."
    holds = f"{figures.counted(info.jobs, 'job')} and {figures.counted(info.queues, 'queue')}"
    if info.is_stale:
        age = "" if info.heartbeat_age is None else f" for {figures.span(info.heartbeat_age)}"
        return f"Its heart has been still{age}. It holds {holds}.\nThey are given back, with the attempt counted."
    if info.has_heartbeat:
        age = figures.span(info.heartbeat_age) if info.heartbeat_age is not None else "?"
        return f"! ITS HEART BEATS, {age} ago. It holds {holds}.\nThe jobs it runs now will run twice."
    since = "" if info.lock_age is None else f" It took its last lock {figures.span(info.lock_age)} ago."
    return (
        f"It has no heartbeat, as workers of Node.js have none. It holds {holds}.{since}\n"
        "If it still lives, the jobs it runs now will run twice."
    )


def _would(report: SweepReport) -> str:
    """Say what a sweep would do."""
    jobs, queues = figures.counted(report.jobs, "job"), figures.counted(report.queues, "queue")
    lines = [f"{jobs} would be given back with the attempt uncounted, {queues} freed, from:"]
    lines += _named(report.workers)
    return "\n".join(lines)


def _named(workers: Sequence[WorkerInfo]) -> list[str]:
    lines = [
        f"  {clean.line(each.id, 48)}"
        + ("" if each.heartbeat_age is None else f"  silent for {figures.span(each.heartbeat_age)}")
        for each in workers[:MOST_NAMED]
    ]
    if len(workers) > MOST_NAMED:
        lines.append(f"  and {len(workers) - MOST_NAMED} more")
    return lines
