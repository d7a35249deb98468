"""Actions of the screens that show jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace
from textual import work

from gw_core import Job, JobState
from gw_core.front_ends import FoundJob, counted
from gw_tui.actions import (
    Action,
    Add,
    Cancel,
    Complete,
    Fail,
    FindByKey,
    RemoveByKey,
    Reschedule,
    Result,
    Retry,
    Unlock,
)
from gw_tui.dialogs.choose import Choice
from gw_tui.dialogs.confirm import ASKED_TO_TYPE, Confirm, confirmed, named
from gw_tui.dialogs.key import KeyDialog
from gw_tui.dialogs.reschedule import RescheduleDialog
from gw_tui.rules.worker_health import cancel_effects
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import sanitize

KEY_IS_REMOVED: Final = "It will not run; U restores it while this console runs."
JOB_IS_GONE: Final = "The selected job is gone"
KEY_IS_TAKEN: Final = "{} is running it: the job finishes, loses its key and is not retried.\nThis cannot be undone."


CANCELLABLE: Final = frozenset({JobState.RUNNING, JobState.WAITING})
"""The states of jobs that can be cancelled."""

WAITING_ONLY: Final = frozenset({"retry", "reschedule", "fail", "complete"})


class AddJobMixin(ConsoleScreen):
    """A screen with the add command."""

    @work
    async def action_add(self) -> None:
        from gw_tui.dialogs.add import AddDialog

        if (given := await self.app.push_screen_wait(AddDialog(self.task_to_add()))) is not None:
            spec, payload = given
            self.action_runner.begin(Add(spec=spec, payload=payload))

    def task_to_add(self) -> str:
        return ""


class JobActionsMixin(ConsoleScreen):
    """A screen whose `targets` can be retried, rescheduled, failed and completed, as they were displayed."""

    def targets(self) -> tuple[FoundJob, ...]:
        """Return the jobs that an action applies to, as displayed."""
        raise NotImplementedError

    def done_with(self, result: Result) -> None:
        """Note that an action begun here has finished."""

    @work
    async def action_retry(self) -> None:
        """Retry the jobs now; a single one needs no confirmation."""
        jobs = self._free(self.targets(), "retried")
        if not jobs:
            return
        action = Retry(jobs=_seen(jobs))
        if len(jobs) > 1 or self.state.options.is_production:
            words = f"{named(jobs)}\n{_they(jobs, 'run')} as soon as a worker is free. Failed jobs get new attempts."
            if not await confirmed(self.console, action, "Retry now?", words, ok="Retry", destroys=False):
                return
        await self._run(action)

    @work
    async def action_reschedule(self) -> None:
        jobs = self._free(self.targets(), "rescheduled")
        if jobs and (change := await self.app.push_screen_wait(RescheduleDialog(jobs))) is not None:
            await self._run(replace(change, jobs=_seen(jobs)))

    @work
    async def action_fail(self) -> None:
        jobs = self._free(self.targets(), "failed")
        if not jobs:
            return
        # A retry reverts this, and a failing loop must be stopped in few keys; only production asks for the number.
        to_type = _to_type(jobs) if self.state.options.is_production else ""
        question = Confirm(
            "Fail permanently?",
            f"{named(jobs)}\n{_they(jobs, 'are')} not retried automatically; r retries {_them(jobs)}.",
            ok="Fail",
            to_type=to_type,
            asks_for="Reason (optional)",
            action=lambda reason: Fail(jobs=_seen(jobs), reason=reason or None),
        )
        if (reason := await self.app.push_screen_wait(question)) is not None:
            await self._run(Fail(jobs=_seen(jobs), reason=None if to_type else reason or None))

    @work
    async def action_complete(self) -> None:
        jobs = self._free(self.targets(), "completed")
        if not jobs:
            return
        action = Complete(jobs=_seen(jobs))
        words = (
            f"{named(jobs)}\n{_they(jobs, 'are')} deleted without running; "
            f"U restores {_them(jobs)} while this console runs."
        )
        if await confirmed(self.console, action, "Complete?", words, ok="Complete", to_type=_to_type(jobs)):
            await self._run(action)

    @work
    async def action_cancel(self) -> None:
        jobs = tuple(each for each in self.targets() if each.state in CANCELLABLE)
        if not jobs:
            idle = "No running job is selected; f fails a job that is not running"
            self.notify(idle if self.targets() else JOB_IS_GONE, severity="warning")
            return
        action = Cancel(jobs=_seen(jobs))
        snapshot = self.state.snapshot
        workers = {} if snapshot is None else {each.id: each for each in snapshot.workers}
        words = "\n".join([named(jobs), *cancel_effects(jobs, workers), *_after_cancelling(jobs)])
        title, ok = ("Cancel the job?", "Cancel job") if len(jobs) == 1 else ("Cancel the jobs?", "Cancel jobs")
        if await confirmed(self.console, action, title, words, ok=ok, to_type=_to_type(jobs), leave="Back"):
            await self._run(action)

    @work
    async def action_remove_by_key(self) -> None:
        offered = next((each.job.job_key for each in self.targets() if each.job.job_key is not None), "")
        if (key := await self.app.push_screen_wait(KeyDialog(offered))) is None:
            return
        if (result := await self.action_runner.begin(FindByKey(key=key))) is None:
            return
        if (found := result.found) is None:
            self.notify(f"No job has the key {sanitize.line(key, 60)!r}.", severity="warning")
            return
        runs = found.state is JobState.RUNNING
        words = KEY_IS_TAKEN.format(sanitize.line(found.job.locked_by, 60)) if runs else KEY_IS_REMOVED
        action = RemoveByKey(key=key, job=found.job)
        if await confirmed(self.console, action, f"Remove by key {key}?", f"{named((found,))}\n{words}", ok="Remove"):
            await self._run(action)

    @property
    def useless_keys(self) -> frozenset[str]:
        """The commands that the first target rejects."""
        state = next((each.state for each in self.targets()), None)
        running = WAITING_ONLY if state is JobState.RUNNING else frozenset()
        found = running if state is None or state in CANCELLABLE else running | {"cancel"}
        return super().useless_keys | found

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        return tuple(_offered(self.targets()))

    def action_undo(self) -> None:
        self.action_runner.undo()

    def _free(self, jobs: Sequence[FoundJob], what: str) -> tuple[FoundJob, ...]:
        """Return the jobs that are not running, and report how many are skipped."""
        if not jobs:
            self.notify(JOB_IS_GONE, severity="warning")
        free = tuple(each for each in jobs if each.state is not JobState.RUNNING)
        running = len(jobs) - len(free)
        if running and not free:
            self.notify(f"Running jobs cannot be {what}; c cancels them", severity="warning")
        elif running:
            self.notify(f"{counted(running, 'running job')} skipped", severity="warning")
        return free

    async def _run(self, action: Action) -> None:
        if (result := await self.action_runner.begin(action)) is not None:
            self.done_with(result)


def _seen(jobs: Sequence[FoundJob]) -> list[Job]:
    return [each.job for each in jobs]


def _offered(jobs: Sequence[FoundJob]) -> Iterator[tuple[Choice, Action]]:
    if not jobs:
        return
    seen = _seen(jobs)
    yield Choice("retry", "retry", "retry now"), Retry(jobs=seen)
    yield (
        Choice("reschedule", "reschedule", "run in an hour; edit the time"),
        Reschedule(jobs=seen),
    )
    yield Choice("fail", "fail", "fail permanently"), Fail(jobs=seen, reason="failed manually")
    yield Choice("complete", "complete", "delete as if completed"), Complete(jobs=seen)
    if len(jobs) == 1 and (key := jobs[0].job.job_key) is not None:
        yield Choice("remove_by_key", "remove by key", sanitize.line(key, 40)), RemoveByKey(key=key, job=seen[0])
    if holders := sorted({each.job.locked_by for each in jobs if each.job.locked_by is not None}):
        yield Choice("unlock", "unlock", "release all locks of its worker"), Unlock(workers=holders)


def _after_cancelling(jobs: Sequence[FoundJob]) -> Iterator[str]:
    """Yield what becomes of running jobs and of waiting ones."""
    states = {each.state for each in jobs}
    if JobState.RUNNING in states:
        yield "Jobs that stop fail and are not retried; one that ends first completes."
    if JobState.WAITING in states:
        yield "Jobs that wait for others are dropped, and so are the jobs that wait for them. This cannot be undone."


def _to_type(jobs: Sequence[FoundJob]) -> str:
    return str(len(jobs)) if len(jobs) > ASKED_TO_TYPE else ""


def _they(jobs: Sequence[FoundJob], verb: str) -> str:
    singular = {"are": "is", "run": "runs"}
    return f"It {singular[verb]}" if len(jobs) == 1 else f"They {verb}"


def _them(jobs: Sequence[FoundJob]) -> str:
    return "it" if len(jobs) == 1 else "them"
