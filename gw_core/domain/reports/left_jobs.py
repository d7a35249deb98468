"""Say which due jobs a run leaves that ends when no job can run now, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gw_core.domain.rules.pause import PAUSE_LOCK, PauseRules

NO_JOB_IS_LEFT: Final = "no job is left to run"

MAX_LEFT: Final = 1_000
"""The number of jobs that are read."""

MAX_KINDS: Final = 5


class LeftJob(msgspec.Struct, frozen=True):
    """A job that is due and that no worker has claimed."""

    task: str
    flags: Sequence[str] = ()
    queue: str | None = None
    queue_locked_by: str | None = None


def reason_to_end(left: Sequence[LeftJob], *, pauses: PauseRules, closed_limits: Mapping[str, str]) -> str:
    """Return why a run ends that runs every job it can; `closed_limits` has the reason for each task with one."""
    if not left:
        return NO_JOB_IS_LEFT
    kinds = Counter((job.task, _why(job, pauses, closed_limits)) for job in left).most_common()
    parts = [f"{number:,} of {task} ({why})" for (task, why), number in kinds[:MAX_KINDS]]
    rest = ["and others"] if len(kinds) > MAX_KINDS or len(left) >= MAX_LEFT else []
    return f"no job can run now; left: {', '.join([*parts, *rest])}"


def _why(job: LeftJob, pauses: PauseRules, closed_limits: Mapping[str, str]) -> str:
    if pauses.everything or job.task in pauses.tasks or not pauses.flags.isdisjoint(job.flags):
        return "paused"
    if job.queue_locked_by is not None:
        return "the queue is paused" if job.queue_locked_by.startswith(PAUSE_LOCK) else "the queue is locked"
    return closed_limits.get(job.task, "a flag is forbidden, or the job was just added")
