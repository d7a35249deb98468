"""What screens that show jobs can have done to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from textual import work

from gw_core import AsTyped, FoundJob, JobState
from gw_tui import clean, deed, figures
from gw_tui.acts import Add
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.confirm import ASKED_TO_TYPE, Confirm, named
from gw_tui.dialogs.reschedule import RescheduleDialog
from gw_tui.screens.base import ConsoleScreen

if TYPE_CHECKING:
    from gw_core import Typed
    from gw_tui.deed import Deed

COPIES: Final = (
    Choice("retry", "retry", "run again now"),
    Choice("reschedule", "reschedule", "run at another moment"),
    Choice("fail", "fail", "fail for good"),
    Choice("remove", "complete", "remove as if completed"),
    Choice("unlock", "unlock", "take everything from the worker that holds it"),
)
MOST_COPIED: Final = 500
"""Ids in a copied command; shells and terminals take no line of any length."""


class AddsJobs(ConsoleScreen):
    """A screen from which a job can be added."""

    @work
    async def action_add(self) -> None:
        """Ask for a job and add it."""
        from gw_tui.dialogs.add import AddDialog

        if (given := await self.app.push_screen_wait(AddDialog(self.task_to_add()))) is not None:
            spec, payload = given
            self.console.deeds.begin(deed.Deed(done_words="added", parts=(Add(spec=spec, payload=payload),)))

    def task_to_add(self) -> str:
        """Return the task that is offered."""
        return ""


class ActsOnJobs(ConsoleScreen):
    """A screen whose `targets` can be retried, rescheduled, failed and removed, as they were seen at the key press."""

    def targets(self) -> tuple[FoundJob, ...]:
        """Return the jobs an act given now would mean, as they were seen."""
        raise NotImplementedError

    def done_with(self, done: Deed) -> None:
        """Take note that a deed given here is over."""

    @work
    async def action_retry(self) -> None:
        """Let the jobs run again now; one alone is not asked about, for it does no harm."""
        jobs = self._free(self.targets(), "retried")
        if not jobs:
            return
        if len(jobs) > 1 or self.console.options.is_production:
            words = f"{named(jobs)}\nThey run as soon as a worker is free; failed ones get all their attempts anew."
            if await self.app.push_screen_wait(Confirm("Retry now?", words, ok="Retry", destroys=False)) is None:
                return
        self._do(deed.retry(jobs))

    @work
    async def action_reschedule(self) -> None:
        """Ask when, how urgently and how often the jobs shall run."""
        jobs = self._free(self.targets(), "rescheduled")
        if jobs and (change := await self.app.push_screen_wait(RescheduleDialog(jobs))) is not None:
            self._do(deed.reschedule(jobs, change))

    @work
    async def action_fail(self) -> None:
        """Fail the jobs for good, after a question."""
        jobs = self._free(self.targets(), "failed")
        if not jobs:
            return
        words = f"{named(jobs)}\nNo attempt is left to them; r lets them run again."
        question = Confirm("Fail for good?", words, ok="Fail", to_type=_to_type(jobs), asks_for="Reason (optional)")
        if (reason := await self.app.push_screen_wait(question)) is not None:
            self._do(deed.fail(jobs, None if _to_type(jobs) else reason or None))

    @work
    async def action_remove(self) -> None:
        """Remove the jobs as if they had been completed, after a question."""
        jobs = self._free(self.targets(), "removed")
        if not jobs:
            return
        words = f"{named(jobs)}\nThey never run (again); U brings them back while this console runs."
        question = Confirm("Remove?", words, ok="Remove", to_type=_to_type(jobs))
        if await self.app.push_screen_wait(question) is not None:
            self._do(deed.remove(jobs))

    @work
    async def action_copy_command(self) -> None:
        """Copy what could be typed instead: the gw command and the SQL."""
        ids = [each.job.id for each in self.targets()][:MOST_COPIED]
        holders = sorted({each.job.locked_by for each in self.targets() if each.job.locked_by is not None})
        if not ids:
            return
        choices = COPIES if holders else COPIES[:-1]
        if (chosen := await self.app.push_screen_wait(Choose("Copy the command for …", choices))) is None:
            return
        write = AsTyped(self.console.source.target.schema)
        typed: Typed = write.unlock(holders) if chosen == "unlock" else getattr(write, chosen)(ids)
        self.app.copy_to_clipboard(str(typed))
        self.notify(f"Copied: {clean.line(typed.command, 100)}", markup=False)

    def action_undo(self) -> None:
        """Bring back what was removed last."""
        self.console.deeds.undo()

    def _free(self, jobs: Sequence[FoundJob], what: str) -> tuple[FoundJob, ...]:
        """Return the jobs no worker holds, and say which are left out."""
        free = tuple(each for each in jobs if each.state is not JobState.RUNNING)
        running = len(jobs) - len(free)
        if running and not free:
            self.notify(f"A running job cannot be {what}; its worker has it.", severity="warning", markup=False)
        elif running:
            self.notify(f"{figures.counted(running, 'running job')} left out.", severity="warning", markup=False)
        return free

    def _do(self, given: Deed) -> None:
        self.console.deeds.begin(given, self.done_with)


def _to_type(jobs: Sequence[FoundJob]) -> str:
    return str(len(jobs)) if len(jobs) > ASKED_TO_TYPE else ""
