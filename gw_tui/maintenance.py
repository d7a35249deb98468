"""Keeping the queue in order, from whatever screen: a sweep, clearing away, and the doctor; a dry look comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_core.operations import CheckStatus, CleanupTarget
from gw_tui.actions.actions import Clean, RunDoctor, Sweep
from gw_tui.actions.batch import ActionBatch
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.confirm import Confirm
from gw_tui.text import formatting, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gw_core.operations import SweepReport, WorkerInfo
    from gw_tui.app import ConsoleApp

MOST_NAMED: Final = 8

_REMEMBERED: Final = (
    "Task identifiers without jobs are deleted, unless a live worker knows them.\n"
    "! Workers of Node.js cannot be asked, and would not find new jobs of such a task: restart them afterwards."
)
LITTER: Final = {
    CleanupTarget.FAILED_JOBS: ("failed job", "Jobs that failed for good are deleted, with their payloads and errors."),
    CleanupTarget.UNUSED_TASKS: ("unused task", _REMEMBERED),
    CleanupTarget.UNUSED_QUEUES: (
        "unused queue",
        "Named queues without jobs are deleted; the next job makes one anew.",
    ),
}
CHOICES: Final = (
    Choice("failed-jobs", "failed jobs", "every job that failed for good"),
    Choice("unused-tasks", "unused tasks", "identifiers without jobs, unless a live worker knows them"),
    Choice("unused-queues", "unused queues", "named queues without jobs"),
)


class Maintenance:
    """Belongs to the thread of the screen; what it does goes through the deeds of the console."""

    def __init__(self, console: ConsoleApp) -> None:
        self._console = console

    # -- a sweep -----------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Ask what a sweep would do, and then whether to do it."""
        look = ActionBatch(done_words="would be swept", parts=(Sweep(dry_run=True),), thing="worker", is_quiet=True)
        self._console.deeds.begin(look, self._looked)

    def _looked(self, look: ActionBatch) -> None:
        report = look.result.sweep
        if report is None:
            return
        if not report.workers and not report.jobs and not report.queues:
            self._console.notify("Nothing to sweep: no worker counts as dead.")
            return
        self._console.run_worker(self._ask_to_sweep(report), exit_on_error=False)

    async def _ask_to_sweep(self, report: SweepReport) -> None:
        act = Sweep()
        if await self._console.push_screen_wait(Confirm("Sweep?", _would(report), ok="Sweep", act=act)) is not None:
            self._console.deeds.begin(ActionBatch(done_words="swept", parts=(act,), thing="worker"))

    # -- clearing away -----------------------------------------------------------------------------------------------

    def clean_up(self, litter: CleanupTarget | None = None) -> None:
        """Count what would be cleared away, and then ask whether to do it; first ask what, unless that is said."""
        if litter is None:
            self._console.run_worker(self._choose(), exit_on_error=False)
            return
        look = ActionBatch(done_words="", parts=(Clean(litter=litter, dry_run=True),), thing="row", is_quiet=True)
        self._console.deeds.begin(look, lambda done: self._counted(litter, done.result.count))

    async def _choose(self) -> None:
        if (chosen := await self._console.push_screen_wait(Choose("Clear away …", CHOICES))) is not None:
            self.clean_up(CleanupTarget(chosen))

    def _counted(self, litter: CleanupTarget, count: int | None) -> None:
        thing, _ = LITTER[litter]
        if count == 0:
            self._console.notify(f"Nothing to clear away: there is no {thing}.")
            return
        self._console.run_worker(self._ask_to_clean(litter, count), exit_on_error=False)

    async def _ask_to_clean(self, litter: CleanupTarget, count: int | None) -> None:
        (thing, words), act = LITTER[litter], Clean(litter=litter)
        many = (
            "How many there are takes too long to count." if count is None else f"{formatting.counted(count, thing)}."
        )
        question = Confirm(
            f"Clear away {thing}s?", f"{many}\n{words}\nThis cannot be undone.", ok="Clear away", act=act
        )
        if await self._console.push_screen_wait(question) is not None:
            self._console.deeds.begin(ActionBatch(done_words="cleared away", parts=(act,), thing=thing))

    # -- the doctor --------------------------------------------------------------------------------------------------

    def examine(self) -> None:
        """Ask the doctor now, and show what was found."""
        look = ActionBatch(done_words="examined", parts=(RunDoctor(),), is_quiet=True)
        self._console.deeds.begin(look, self._examined)

    def _examined(self, look: ActionBatch) -> None:
        verdicts = [each.verdict for each in look.result.findings]
        wrong, notes = verdicts.count(CheckStatus.WRONG), formatting.counted(verdicts.count(CheckStatus.NOTE), "note")
        words = f"{wrong} wrong" if wrong else "nothing wrong"
        self._console.notify(f"The doctor has looked: {words}, {notes}.")
        self._console.visit("locks")
        self._console.look_now()


def _would(report: SweepReport) -> str:
    """Say what a sweep would do."""
    jobs, queues = formatting.counted(report.jobs, "job"), formatting.counted(report.queues, "queue")
    lines = [f"{jobs} would be given back with the attempt uncounted, {queues} freed, from:"]
    lines += _named(report.workers)
    return "\n".join(lines)


def _named(workers: Sequence[WorkerInfo]) -> list[str]:
    lines = [
        f"  {sanitize.line(each.id, 48)}"
        + ("" if each.heartbeat_age is None else f"  last beat {formatting.span(each.heartbeat_age)} ago")
        for each in workers[:MOST_NAMED]
    ]
    if len(workers) > MOST_NAMED:
        lines.append(f"  and {len(workers) - MOST_NAMED} more")
    return lines
