"""The states a job can be in, and how to ask for some jobs among all."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job import Job, check_ids
from gw_core.domain.narrowing import Narrowing

LONGEST_TEXT: Final = 1000
"""The longest text to look for in errors, and more than any name can have."""

MOST_IDS: Final = 100_000

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class JobState(StrEnum):
    """What a job is doing; each job is in exactly one state."""

    READY = "ready"
    """It may run now; a job whose named queue is busy waits for it in this state."""
    SCHEDULED = "scheduled"
    """It waits for its moment and has not failed."""
    RUNNING = "running"
    """A worker holds it."""
    BACKOFF = "backoff"
    """It has failed and waits for its next attempt."""
    FAILED = "failed"
    """It has failed for good: no attempt is left."""

    @classmethod
    def of(cls, value: JobState | str | None) -> JobState | None:
        """Return the state of that name; raises `InvalidInputError` for a name that is none."""
        if value is None:
            return None
        try:
            return cls(value)
        except ValueError:
            raise InvalidInputError(f"{value!r} is not a state of a job; give one of {', '.join(cls)}") from None


WAITING: Final = frozenset({JobState.READY, JobState.SCHEDULED, JobState.BACKOFF})
"""The states of jobs that a worker will take, now or later."""


def state_of(job: Job, now: datetime) -> JobState:
    """Return the state a job was in at that moment; `sql/queries` say the same of rows."""
    if job.locked_at_epoch is not None:
        return JobState.RUNNING
    if job.attempts >= job.max_attempts:
        return JobState.FAILED
    if job.run_at_epoch <= now.timestamp():
        return JobState.READY
    return JobState.BACKOFF if job.attempts > 0 and job.last_error is not None else JobState.SCHEDULED


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs are meant: those that meet every condition given, all jobs when none is.

    `worker` is the pool that holds the job, `error` a text in its last error, in any case. `ids` of None sets no
    condition, an empty list matches nothing. Raises `InvalidInputError` for what no job can have.
    """

    state: JobState | None = None
    task: str | None = None
    queue: str | None = None
    key: str | None = None
    worker: str | None = None
    flag: str | None = None
    error: str | None = None
    ids: Sequence[int] | None = field(default=None)
    narrowing: Narrowing | None = None
    """Further conditions, for looking only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", JobState.of(self.state))
        for what in ("task", "queue", "key", "worker", "flag", "error"):
            _check_text(what, getattr(self, what))
        if self.ids is not None:
            check_ids(self.ids)
            if len(self.ids) > MOST_IDS:
                raise InvalidInputError(f"{len(self.ids)} ids were given; give at most {MOST_IDS} at a time")
            object.__setattr__(self, "ids", tuple(sorted(set(self.ids))))

    @property
    def is_everything(self) -> bool:
        """True when no condition was given, so that every job matches."""
        return self == JobFilter()

    @property
    def names_jobs(self) -> bool:
        """True when the jobs are named one by one, by ids or a key, and need not be searched for."""
        return self.ids is not None or self.key is not None

    def matches(self, job: Job, state: JobState) -> bool:
        """Tell whether a job in that state meets every condition."""
        return all(
            (
                self.state in (None, state),
                self.task in (None, job.task_identifier),
                self.queue in (None, job.queue_name),
                self.key in (None, job.key),
                self.worker in (None, job.locked_by),
                self.flag is None or self.flag in job.flag_names,
                self.error is None or self.error.lower() in (job.last_error or "").lower(),
                self.ids is None or _is_among(self.ids, job.id),
                self.narrowing is None or self.narrowing.matches(job),
            )
        )


def _is_among(ids: Sequence[int], job_id: int) -> bool:
    """Tell whether an id is one of many, which are in order."""
    place = bisect_left(ids, job_id)
    return place < len(ids) and ids[place] == job_id


def _check_text(what: str, text: str | None) -> None:
    if text is None:
        return
    if not text:
        raise InvalidInputError(f"the {what} to look for is empty; leave it out or give at least one character")
    if len(text) > LONGEST_TEXT:
        raise InvalidInputError(f"the {what} to look for is longer than {LONGEST_TEXT} characters; give a shorter one")
    if _UNSTORABLE.search(text):
        raise InvalidInputError(f"the {what} to look for holds a character PostgreSQL cannot store")
