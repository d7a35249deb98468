"""Sweep, cleanup and doctor, from any screen; each action is previewed first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_core import JobState, Selection
from gw_core.operations import CheckStatus, CleanupTarget
from gw_tui.action_runner import ActionRunner
from gw_tui.actions.actions import MAX_CLEANED, Cleanup, CleanupSelected, Result, RunDoctor, Sweep
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.confirm import confirmed
from gw_tui.dialogs.narrow import NarrowDialog
from gw_tui.text import formatting, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gw_core.operations import SweepReport, WorkerInfo

MAX_NAMED: Final = 8
ALL_FAILED: Final = Selection.of(state=JobState.FAILED)

_CONSEQUENCES: Final = {
    CleanupTarget.FAILED_JOBS: "Permanently failed jobs are deleted, with their payloads and errors.",
    CleanupTarget.UNUSED_TASKS: (
        "Task identifiers without jobs are deleted, unless a live worker knows them.\n"
        "! Node.js workers do not find new jobs of a deleted task until you restart them."
    ),
    CleanupTarget.UNUSED_QUEUES: "Named queues without jobs are deleted; new jobs recreate them.",
}
CHOICES: Final = (
    Choice("unused-queues", "unused queues", "named queues without jobs"),
    Choice("unused-tasks", "unused tasks", "identifiers without jobs, unless a live worker knows them"),
    Choice("failed-jobs", "failed jobs", "permanently failed jobs; this cannot be undone"),
)
SWEEP: Final = (Choice("sweep", "sweep", "recover the jobs of all stale workers"), Sweep())


class Maintenance(ActionRunner):
    """A console that previews, asks and runs."""

    def action_sweep_now(self) -> None:
        """Preview a sweep, then ask whether to run it."""
        self.begin(Sweep(dry_run=True), self._previewed)

    def _previewed(self, result: Result) -> None:
        report = result.sweep
        if report is None:
            return
        if not report.workers and not report.jobs and not report.queues:
            self.notify("Nothing to sweep: no stale workers")
            return
        self.run_worker(self._ask_to_sweep(report), exit_on_error=False)

    async def _ask_to_sweep(self, report: SweepReport) -> None:
        if await confirmed(self, Sweep(), "Sweep?", _preview(report), ok="Sweep"):
            self.begin(Sweep())

    def clean_up(self, target: CleanupTarget | None = None) -> None:
        """Count what a cleanup would delete, then ask whether to delete it; without a target, ask for it first."""
        if target is None:
            self.run_worker(self._choose(), exit_on_error=False)
            return
        if target is CleanupTarget.FAILED_JOBS:
            self.run_worker(self._narrow(), exit_on_error=False)
            return
        self._count(target)

    async def _narrow(self) -> None:
        """Ask which failed jobs to delete; all of them are deleted without reading them."""
        selection = await self.push_screen_wait(NarrowDialog())
        if selection is None:
            return
        if selection == ALL_FAILED:
            self._count(CleanupTarget.FAILED_JOBS)
            return
        # The count and the deletion mean the same jobs.
        fixed = selection.at(self.now)
        count = CleanupSelected(selection=fixed, dry_run=True)
        self.begin(count, lambda found: self._counted(CleanupSelected(selection=fixed), found.count))

    def _count(self, target: CleanupTarget) -> None:
        count = Cleanup(target=target, dry_run=True)
        self.begin(count, lambda found: self._counted(Cleanup(target=target), found.count))

    async def _choose(self) -> None:
        if (chosen := await self.push_screen_wait(Choose("Clean up …", CHOICES))) is not None:
            self.clean_up(CleanupTarget(chosen))

    def _counted(self, cleanup: Cleanup | CleanupSelected, count: int | None) -> None:
        if count == 0:
            self.notify(f"Nothing to clean up: no {cleanup.thing}s")
            return
        self.run_worker(self._ask_to_clean(cleanup, count), exit_on_error=False)

    async def _ask_to_clean(self, cleanup: Cleanup | CleanupSelected, count: int | None) -> None:
        many = "Too many to count quickly." if count is None else f"{formatting.counted(count, cleanup.thing)}."
        words = f"{many}\n{_consequences(cleanup)}"
        # Deleted jobs cannot be restored, so a key pressed too often must not delete them.
        deletes_jobs = isinstance(cleanup, CleanupSelected) or cleanup.target is CleanupTarget.FAILED_JOBS
        to_type = "" if not deletes_jobs else "delete" if count is None else str(count)
        if await confirmed(self, cleanup, f"Clean up {cleanup.thing}s?", words, ok="Delete", to_type=to_type):
            self.begin(cleanup)

    def action_run_doctor(self) -> None:
        """Run the doctor's checks and show the findings."""
        self.begin(RunDoctor(), self._checked)

    def _checked(self, result: Result) -> None:
        found = [each.status for each in result.findings]
        errors = formatting.counted(found.count(CheckStatus.ERROR), "error")
        self.notify(f"Doctor: {errors}, {formatting.counted(found.count(CheckStatus.WARNING), 'warning')}")
        self.visit("locks")
        self.refresh_now()


def _consequences(cleanup: Cleanup | CleanupSelected) -> str:
    """Return what a cleanup does, and whether it can be undone."""
    if isinstance(cleanup, Cleanup):
        return f"{_CONSEQUENCES[cleanup.target]}\nThis cannot be undone."
    return f"{sanitize.line(cleanup.selection, 200)}\nThe action log records each deleted job; at most {MAX_CLEANED:,}."


def _preview(report: SweepReport) -> str:
    jobs, queues = formatting.counted(report.jobs, "job"), formatting.counted(report.queues, "queue")
    return "\n".join([f"{jobs} returned (attempt not counted) and {queues} released, from:", *_named(report.workers)])


def _named(workers: Sequence[WorkerInfo]) -> list[str]:
    lines = [
        f"  {sanitize.line(each.id, 48)}"
        + ("" if each.heartbeat_age is None else f"  last heartbeat {formatting.duration(each.heartbeat_age)} ago")
        for each in workers[:MAX_NAMED]
    ]
    if len(workers) > MAX_NAMED:
        lines.append(f"  and {len(workers) - MAX_NAMED} more")
    return lines
