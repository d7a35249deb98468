"""Sweep, cleanup and doctor, from any screen; each action is previewed first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gw_core import JobState, Selection
from gw_core.front_ends import CheckStatus, CleanupTarget, counted
from gw_tui.actions import MAX_CLEANED, Cleanup, CleanupSelected, RunDoctor, Sweep
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.confirm import confirmed
from gw_tui.dialogs.narrow import NarrowDialog
from gw_tui.text import formatting, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gw_core.operations import SweepReport, WorkerInfo
    from gw_tui.action_runner import ActionRunner
    from gw_tui.console import Console

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


class Maintenance:
    """Previews an action for a console, asks, and runs it. Its methods do not block; a console worker runs them."""

    def __init__(self, console: Console, runner: ActionRunner) -> None:
        self._console = console
        self._runner = runner

    def sweep(self) -> None:
        """Preview a sweep, then ask whether to run it."""
        self._console.run_worker(self._sweep(), exit_on_error=False)

    def clean_up(self, target: CleanupTarget | None = None) -> None:
        """Count what a cleanup would delete, then ask whether to delete it; without a target, ask for it first."""
        self._console.run_worker(self._clean_up(target), exit_on_error=False)

    def run_doctor(self) -> None:
        """Run the doctor's checks and show the findings."""
        self._console.run_worker(self._run_doctor(), exit_on_error=False)

    async def _sweep(self) -> None:
        result = await self._runner.begin(Sweep(dry_run=True))
        if result is None or (report := result.sweep) is None:
            return
        if not report.workers and not report.jobs and not report.queues:
            self._console.notify("Nothing to sweep: no stale workers")
        elif await confirmed(self._console, Sweep(), "Sweep?", _preview(report), ok="Sweep"):
            self._runner.begin(Sweep())

    async def _clean_up(self, target: CleanupTarget | None) -> None:
        if target is None:
            if (chosen := await self._console.push_screen_wait(Choose("Clean up …", CHOICES))) is None:
                return
            target = CleanupTarget(chosen)
        cleanup = await self._narrowed() if target is CleanupTarget.FAILED_JOBS else Cleanup(target=target)
        if cleanup is not None and (result := await self._runner.begin(replace(cleanup, dry_run=True))) is not None:
            await self._ask_to_clean(cleanup, result.count)

    async def _narrowed(self) -> Cleanup | CleanupSelected | None:
        """Ask which failed jobs to delete; all of them are deleted without reading them."""
        selection = await self._console.push_screen_wait(NarrowDialog())
        if selection is None:
            return None
        if selection == ALL_FAILED:
            return Cleanup(target=CleanupTarget.FAILED_JOBS)
        # The count and the deletion mean the same jobs.
        return CleanupSelected(selection=selection.at(self._console.state.now))

    async def _ask_to_clean(self, cleanup: Cleanup | CleanupSelected, count: int | None) -> None:
        if count == 0:
            self._console.notify(f"Nothing to clean up: no {cleanup.thing}s")
            return
        many = "Too many to count quickly." if count is None else f"{counted(count, cleanup.thing)}."
        words = f"{many}\n{_consequences(cleanup)}"
        # Deleted jobs cannot be restored, so a key pressed too often must not delete them.
        deletes_jobs = isinstance(cleanup, CleanupSelected) or cleanup.target is CleanupTarget.FAILED_JOBS
        to_type = "" if not deletes_jobs else "delete" if count is None else str(count)
        if await confirmed(self._console, cleanup, f"Clean up {cleanup.thing}s?", words, ok="Delete", to_type=to_type):
            self._runner.begin(cleanup)

    async def _run_doctor(self) -> None:
        if (result := await self._runner.begin(RunDoctor())) is None:
            return
        found = [each.status for each in result.findings]
        errors = counted(found.count(CheckStatus.ERROR), "error")
        self._console.notify(f"Doctor: {errors}, {counted(found.count(CheckStatus.WARNING), 'warning')}")
        self._console.visit("locks")
        self._console.refresh_now()


def _consequences(cleanup: Cleanup | CleanupSelected) -> str:
    """Return what a cleanup does, and whether it can be undone."""
    if isinstance(cleanup, Cleanup):
        return f"{_CONSEQUENCES[cleanup.target]}\nThis cannot be undone."
    return f"{sanitize.line(cleanup.selection, 200)}\nThe action log records each deleted job; at most {MAX_CLEANED:,}."


def _preview(report: SweepReport) -> str:
    jobs, queues = counted(report.jobs, "job"), counted(report.queues, "queue")
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
