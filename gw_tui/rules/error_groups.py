"""Equal errors as one group: what differs from job to job, such as ids and quoted values, does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gw_core import JobState
from gw_core.front_ends import END_OF_TIME, FoundJob, HistoryState, retry_delay, written
from gw_core.operations import EndedAttempt

VARYING: Final = re.compile(
    r"""'[^']*'|"[^"]*"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b[0-9a-f]{12,}\b|\d+""",
    re.IGNORECASE,
)
LONGEST: Final = 300
FAILED: Final = (HistoryState.RETRIED, HistoryState.FAILED)
RECENT: Final = timedelta(minutes=1)
"""A group with a failure this recent is still growing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """The jobs of a task whose last errors are equal, the latest failure first."""

    task: str
    fingerprint: str
    text: str
    """The longest part of the error that all of them share."""
    jobs: tuple[FoundJob, ...]
    recorded: tuple[datetime, ...] = ()
    """When attempts failed with this error, as far as history has them."""

    @property
    def key(self) -> str:
        """What distinguishes it from the others."""
        return f"{self.task}/{self.fingerprint}"

    @property
    def first(self) -> datetime:
        """The earliest recorded failure, or the earliest of the last failures."""
        return min((failed_at(self.jobs[-1]), *self.recorded))

    @property
    def last(self) -> datetime:
        """The latest failure."""
        return max((failed_at(self.jobs[0]), *self.recorded))

    @property
    def failed(self) -> int:
        """How many of the jobs failed permanently."""
        return sum(each.state is JobState.FAILED for each in self.jobs)

    def is_growing(self, now: datetime) -> bool:
        """Return True if one of the jobs failed within the last minute."""
        return timedelta() <= now - self.last < RECENT

    @property
    def selection(self) -> str:
        """The filter that lists the jobs."""
        text = f" error:{written(self.text)}" if self.text else ""
        return f"state:backoff,failed task:{written(self.task)}{text}"


def error_groups(jobs: Iterable[FoundJob], ended: Iterable[EndedAttempt] = ()) -> list[ErrorGroup]:
    """Group jobs by task and error, the largest group first; ended attempts say when they failed."""
    times: dict[tuple[str, str], list[datetime]] = {}
    for attempt in ended:
        if attempt.error and attempt.state in FAILED:
            times.setdefault((attempt.task, fingerprint(attempt.error)), []).append(attempt.finished_at)
    found: dict[tuple[str, str], list[FoundJob]] = {}
    for each in jobs:
        if each.job.last_error:
            found.setdefault((each.job.task, fingerprint(each.job.last_error)), []).append(each)
    groups = [_group(*kind, members, tuple(times.get(kind, ()))) for kind, members in found.items()]
    return sorted(groups, key=lambda group: (-len(group.jobs), group.key))


def _group(task: str, print_: str, jobs: list[FoundJob], recorded: tuple[datetime, ...]) -> ErrorGroup:
    newest = sorted(jobs, key=lambda each: (failed_at(each), -each.job.id), reverse=True)
    text = _shared_part(newest[0].job.last_error or "")
    return ErrorGroup(task=task, fingerprint=print_, text=text, jobs=tuple(newest), recorded=recorded)


def failed_at(found: FoundJob) -> datetime:
    """Return when a job failed last, inferred from the backoff that it waits for: no worker changes `updated_at`.

    What fails a job without a worker, such as an operator or its expiry, leaves `run_at` and changes `updated_at`.
    """
    job = found.job
    if job.run_at == END_OF_TIME:  # it waited for others, so it never ran
        return job.updated_at
    inferred = job.run_at - retry_delay(job.attempts)
    return max(inferred, job.updated_at) if found.state is JobState.FAILED else inferred


def fingerprint(error: str) -> str:
    """Return the first line of an error without what varies."""
    return VARYING.sub("…", _first_line(error))


def _shared_part(error: str) -> str:
    return max(VARYING.split(_first_line(error)), key=len).strip()


def _first_line(error: str) -> str:
    return next((line for line in error[:LONGEST].splitlines() if line.strip()), "").strip()
