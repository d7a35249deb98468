"""What an operator can have done, as values: each names what it hits, and jobs as they were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gw_core import Job, JobSpec
    from gw_core.operations import CleanupTarget, Count, Finding, FoundJob, JobVersion, QueueStatistics, SweepReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Let failed jobs run again now."""

    jobs: Sequence[JobVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reschedule:
    """Change when and how jobs run; None keeps a value."""

    jobs: Sequence[JobVersion]
    run_at: datetime | timedelta | None = None
    priority: int | None = None
    attempts: int | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Fail jobs for good."""

    jobs: Sequence[JobVersion]
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove jobs as if they had been completed; the result holds them, for `Restore`."""

    jobs: Sequence[JobVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindByKey:
    """Look which job has a key; it changes nothing."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveByKey:
    """Remove the job with a key as it was seen; one that runs is only kept from running again."""

    key: str
    job: JobVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Add removed jobs again, each with a new id."""

    jobs: Sequence[Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Add a job; `payload` is its payload as JSON text, or None for the one of `spec`."""

    spec: JobSpec
    payload: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlock:
    """Take every job and queue from workers that are dead."""

    workers: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Give back the jobs of workers that went silent; with `dry_run` only say which."""

    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean:
    """Clear away what nobody needs any more; with `dry_run` only say how much that is."""

    litter: CleanupTarget
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Forget a recurring task that the database knows."""

    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDoctor:
    """Ask the doctor now; it changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountExactly:
    """Count every job, which reads the whole table, or those of one queue; it changes nothing and takes its time."""

    queue: str | None = None


ActOnJobs = Retry | Reschedule | Fail | Remove
Look = FindByKey | RunDoctor | CountExactly
Act = ActOnJobs | RemoveByKey | Restore | Add | Unlock | Sweep | Clean | Forget | Look


def only_looks(act: Act) -> bool:
    """Tell whether an act changes nothing."""
    return isinstance(act, FindByKey | RunDoctor | CountExactly) or (isinstance(act, Sweep | Clean) and act.dry_run)


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """A job, or a worker, that an act left alone, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an act did: to which jobs or workers, and which it left alone."""

    done: Sequence[str] = ()
    omitted: Sequence[SkippedItem] = ()
    removed: Sequence[Job] = field(default=())
    """The jobs as they were, for `Restore`."""
    sweep: SweepReport | None = None
    statistics: QueueStatistics | None = None
    count: int | None = None
    """How many things were cleared away."""
    told: str = ""
    """What happened, in a sentence, where several things can; empty where the numbers say it."""
    found: FoundJob | None = None
    findings: Sequence[Finding] = ()
    queue: tuple[Count, Count] | None = None
    """How many jobs wait in the queue that was counted, and how many of them are due."""
