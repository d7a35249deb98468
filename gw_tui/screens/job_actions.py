"""What screens that show jobs can have done to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual import work

from gw_core import JobState
from gw_core.operations import FoundJob, JobVersion
from gw_tui.actions import batch
from gw_tui.actions.actions import Act, Add, Fail, FindByKey, Remove, RemoveByKey, Reschedule, Retry, Unlock
from gw_tui.actions.batch import ActionBatch
from gw_tui.dialogs.choose import Choice
from gw_tui.dialogs.confirm import ASKED_TO_TYPE, Confirm, named
from gw_tui.dialogs.key import KeyDialog
from gw_tui.dialogs.reschedule import RescheduleDialog
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, sanitize

KEY_IS_REMOVED: Final = "It never runs (again); U brings it back while this console runs."
KEY_IS_TAKEN: Final = (
    "{} runs it at this moment, and goes on: the job loses its key and will not be tried again.\nThat cannot be undone."
)


class AddJobMixin(ConsoleScreen):
    """A screen from which a job can be added."""

    @work
    async def action_add(self) -> None:
        """Ask for a job and add it."""
        from gw_tui.dialogs.add import AddDialog

        if (given := await self.app.push_screen_wait(AddDialog(self.task_to_add()))) is not None:
            spec, payload = given
            self.console.deeds.begin(ActionBatch(done_words="added", parts=(Add(spec=spec, payload=payload),)))

    def task_to_add(self) -> str:
        """Return the task that is offered."""
        return ""


class JobActionsMixin(ConsoleScreen):
    """A screen whose `targets` can be retried, rescheduled, failed and removed, as they were seen at the key press."""

    def targets(self) -> tuple[FoundJob, ...]:
        """Return the jobs an act given now would mean, as they were seen."""
        raise NotImplementedError

    def done_with(self, done: ActionBatch) -> None:
        """Take note that a deed given here is over."""

    @work
    async def action_retry(self) -> None:
        """Let the jobs run again now; one alone is not asked about, for it does no harm."""
        jobs = self._free(self.targets(), "retried")
        if not jobs:
            return
        if len(jobs) > 1 or self.console.options.is_production:
            words = f"{named(jobs)}\nThey run as soon as a worker is free; failed ones get all their attempts anew."
            question = Confirm("Retry now?", words, ok="Retry", destroys=False, act=Retry(jobs=_seen(jobs)))
            if await self.app.push_screen_wait(question) is None:
                return
        self._do(batch.retry(jobs))

    @work
    async def action_reschedule(self) -> None:
        """Ask when, how urgently and how often the jobs shall run."""
        jobs = self._free(self.targets(), "rescheduled")
        if jobs and (change := await self.app.push_screen_wait(RescheduleDialog(jobs))) is not None:
            self._do(batch.reschedule(jobs, change))

    @work
    async def action_fail(self) -> None:
        """Fail the jobs for good, after a question."""
        jobs = self._free(self.targets(), "failed")
        if not jobs:
            return
        words = f"{named(jobs)}\nNo attempt is left to them; r lets them run again."
        question = Confirm(
            "Fail for good?",
            words,
            ok="Fail",
            to_type=_to_type(jobs),
            asks_for="Reason (optional)",
            act=lambda reason: Fail(jobs=_seen(jobs), reason=reason or None),
        )
        if (reason := await self.app.push_screen_wait(question)) is not None:
            self._do(batch.fail(jobs, None if _to_type(jobs) else reason or None))

    @work
    async def action_remove(self) -> None:
        """Remove the jobs as if they had been completed, after a question."""
        jobs = self._free(self.targets(), "removed")
        if not jobs:
            return
        words = f"{named(jobs)}\nThey never run (again); U brings them back while this console runs."
        question = Confirm("Remove?", words, ok="Remove", to_type=_to_type(jobs), act=Remove(jobs=_seen(jobs)))
        if await self.app.push_screen_wait(question) is not None:
            self._do(batch.remove(jobs))

    @work
    async def action_remove_by_key(self) -> None:
        """Ask for a key, look which job has it, and remove that after a question that says what will happen."""
        offered = next((each.job.key for each in self.targets() if each.job.key is not None), "")
        if (key := await self.app.push_screen_wait(KeyDialog(offered))) is not None:
            look = ActionBatch(done_words="found", parts=(FindByKey(key=key),), is_quiet=True)
            self.console.deeds.begin(look, lambda done: self._found_by_key(key, done.result.found))

    def _found_by_key(self, key: str, found: FoundJob | None) -> None:
        if found is None:
            self.notify(f"No job has the key {sanitize.line(key, 60)!r}.", severity="warning", markup=False)
        else:
            self._ask_to_remove_by_key(key, found)

    @work
    async def _ask_to_remove_by_key(self, key: str, found: FoundJob) -> None:
        runs = found.state is JobState.RUNNING
        words = KEY_IS_TAKEN.format(sanitize.line(found.job.locked_by, 60)) if runs else KEY_IS_REMOVED
        act = RemoveByKey(key=key, job=JobVersion.of(found.job))
        question = Confirm(f"Remove by key {key}?", f"{named((found,))}\n{words}", ok="Remove", act=act)
        if await self.app.push_screen_wait(question) is not None:
            self._do(ActionBatch(done_words="removed", parts=(act,)))

    def offered(self) -> Sequence[tuple[Choice, Act]]:
        """Return what can be done to the jobs meant."""
        return tuple(_offered(self.targets()))

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
            self.notify(f"{formatting.counted(running, 'running job')} left out.", severity="warning", markup=False)
        return free

    def _do(self, given: ActionBatch) -> None:
        self.console.deeds.begin(given, self.done_with)


def _seen(jobs: Sequence[FoundJob]) -> list[JobVersion]:
    return [JobVersion.of(each.job) for each in jobs]


def _offered(jobs: Sequence[FoundJob]) -> Iterator[tuple[Choice, Act]]:
    if not jobs:
        return
    seen = _seen(jobs)
    yield Choice("retry", "retry", "run again now"), Retry(jobs=seen)
    yield (
        Choice("reschedule", "reschedule", "run in an hour; change the moment"),
        Reschedule(jobs=seen),
    )
    yield Choice("fail", "fail", "fail for good"), Fail(jobs=seen, reason="failed by hand")
    yield Choice("remove", "complete", "remove as if completed"), Remove(jobs=seen)
    if len(jobs) == 1 and (key := jobs[0].job.key) is not None:
        yield Choice("remove_by_key", "remove by key", sanitize.line(key, 40)), RemoveByKey(key=key, job=seen[0])
    if holders := sorted({each.job.locked_by for each in jobs if each.job.locked_by is not None}):
        yield Choice("unlock", "unlock", "take everything from the worker that holds it"), Unlock(workers=holders)


def _to_type(jobs: Sequence[FoundJob]) -> str:
    return str(len(jobs)) if len(jobs) > ASKED_TO_TYPE else ""
