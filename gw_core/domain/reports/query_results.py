"""Results of queries: pages of jobs, counts with their precision, queues and tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Self

import msgspec

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job
from gw_core.domain.job.job_state import JobState
from gw_core.domain.reports.failures import RecordedFailures
from gw_core.domain.reports.job_status import PlannedAttempt, Reason
from gw_core.domain.rules.pause import Pause
from gw_core.domain.rules.task_limit import TaskLimit

MIN_HITS: Final = 30
"""An estimate from fewer hits in a sample is called rough."""

LAST_ID: Final = 2**63 - 1

MAX_COUNTED_ROWS: Final = 10_000
"""Up to this many rows of a table are counted for its status."""

_TIMESTAMP: Final = r"-?infinity|[0-9]{4,6}-[0-9]{2}-[0-9]{2}_[0-9:.]{8,15}(?:_BC)?"
_FAILED: Final = re.compile(rf"failed/({_TIMESTAMP})/([0-9]{{1,19}})")


class Quality(StrEnum):
    """How good a number is."""

    EXACT = "exact"
    AT_LEAST = "at_least"
    """Counting stopped at a bound."""
    ESTIMATE = "estimate"
    """Projected from a sample of the table."""
    ROUGH = "rough"
    """Projected from so few hits that it may be far off."""


_MARKED: Final = {
    Quality.EXACT: "{}",
    Quality.AT_LEAST: "{}+",
    Quality.ESTIMATE: "~{}",
    Quality.ROUGH: "~{}?",
}


class Count(msgspec.Struct, frozen=True):
    """A number and how good it is; its text is `1,234`, at least `1,000+`, an estimate `~1,234`, rough `~40?`."""

    value: int
    quality: Quality = Quality.EXACT

    def marked(self, number: str) -> str:
        """Return the number, written in any way, with the mark of its quality."""
        return _MARKED[self.quality].format(number)

    def __str__(self) -> str:
        return self.marked(f"{self.value:,}")


def projected(hits: int, share: float) -> Count:
    """Return the count that this many hits in this share (0 to 1) of the table stand for."""
    if share >= 1:
        return Count(hits)
    return Count(round(hits / share), Quality.ESTIMATE if hits >= MIN_HITS else Quality.ROUGH)


def row_count(counted: int, estimate: float | None) -> Count:
    """Return how many rows a table has, of which `counted` were counted, at most `MAX_COUNTED_ROWS` and one more."""
    if counted <= MAX_COUNTED_ROWS:
        return Count(counted)
    if estimate is None:
        return Count(MAX_COUNTED_ROWS, Quality.AT_LEAST)
    return Count(max(round(estimate), MAX_COUNTED_ROWS), Quality.ESTIMATE)


class HistoryStatus(msgspec.Struct, frozen=True):
    """What history holds."""

    rows: Count
    """Counted up to 10,000, else an estimate; a lower bound where the server has none."""
    size_bytes: int
    waiting_rows: int
    """Rows whose day has no partition."""
    expired_partitions: int
    """Partitions whose rows are all expired: no worker that keeps history drops them."""
    latest_at: datetime | None
    records_others: timedelta | None
    """How long jobs ended by others are kept; None: they are not recorded."""
    has_default: bool = True
    """Whether the partition for rows whose day has none is attached; an operator may detach it."""


# -- pages of jobs ---------------------------------------------------------------------------------------------------


class PageCursor(msgspec.Struct, frozen=True):
    """Where a page of jobs ended and the next begins; its text is for `--after` and can be kept.

    `order` is `id`, or `turn` for the next waiting jobs in the order in which they will run, or `failed` for
    permanently failed jobs, the latest failure first, or `newest` for any jobs, the newest first, or `state` for up to
    a thousand jobs of each state, those for later last. A place in a `turn` or by `state` is a number of jobs: pages
    can miss or repeat jobs when others start in the meantime.
    """

    order: str
    place: tuple[str, ...]

    @classmethod
    def after_id(cls, job_id: int) -> Self:
        """Return the mark after a job in order of ids."""
        return cls("id", (str(job_id),))

    @classmethod
    def newest(cls, before: int = LAST_ID) -> Self:
        """Return the mark to begin after for the newest jobs first, or those before an id."""
        return cls("newest", (str(before),))

    @classmethod
    def next_jobs(cls, after: int) -> Self:
        """Return the mark after this many of the jobs that will run next."""
        return cls("turn", (str(after),))

    @classmethod
    def by_state(cls, after: int = 0) -> Self:
        """Return the mark after this many jobs by state: running, ready, in backoff, failed, and those for later."""
        return cls("state", (str(after),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a mark back; raises `InvalidInputError` for a text that is none."""
        if re.fullmatch("[0-9]{1,19}", text) and int(text) < 2**63:
            return cls.after_id(int(text))
        if re.fullmatch("newest/[0-9]{1,19}", text) and int(text[7:]) <= LAST_ID:
            return cls.newest(int(text[7:]))
        if match := re.fullmatch("(turn|state)/[0-9]{1,4}", text):
            return cls(match[1], (str(int(text.partition("/")[2])),))
        if match := _FAILED.fullmatch(text):
            return cls("failed", (match[1].replace("_", " "), match[2]))
        raise InvalidInputError("not a valid cursor; give a job id, or the cursor that the previous page ended with")

    def __str__(self) -> str:
        if self.order == "id":
            return self.place[0]
        return "/".join((self.order, *self.place)).replace(" ", "_")


class FoundJob(msgspec.Struct, frozen=True):
    """A job with its state."""

    job: Job
    state: JobState


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that matched, and where to go on.

    `after` is None when nothing can follow. `scanned` counts the jobs that were read; a page that is not `is_full`
    and has an `after` ended because the search had taken its time, and more matches may follow. `order` is that of its
    jobs, in the words of `PageCursor`.

    Example: docs/api/parts.md
    """

    jobs: tuple[FoundJob, ...] = ()
    order: str = "id"
    after: PageCursor | None = None
    scanned: int = 0
    is_full: bool = False


# -- one job ---------------------------------------------------------------------------------------------------------


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one job at `at` of the database's clock.

    `failed_at` is when the last attempt failed, if history has it; else None. A job's row does not record it, and the
    next `run_at` does not decide either: a task chooses its own delay with `RetryAfter`, and `GiveUp` skips attempts.

    Example: docs/api/parts.md
    """

    job: Job
    state: JobState
    at: datetime
    reasons: tuple[Reason, ...]
    attempts: tuple[PlannedAttempt, ...]
    failed_at: datetime | None = None


# -- the whole -------------------------------------------------------------------------------------------------------

Counts = Mapping[JobState, Count]
"""One count for each state."""


class TaskActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of one task do; a time is None where there is no such job."""

    failed_lately: Count
    """Jobs whose last attempt failed within `LATELY`, inferred from the backoff that they wait for."""
    recorded: RecordedFailures | None = None
    """The attempts that failed within `LATELY`; None where workers recorded none."""
    failing_since: datetime | None = None
    """When the first attempt failed of those that wait for a retry or have failed; never earlier than the job."""
    due_since: datetime | None = None
    running_since: datetime | None = None


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much is in the queue at `at`; the times of the first due and the next job are exact.

    Example: docs/api/parts.md
    """

    at: datetime
    total: Count
    states: Counts
    oldest_due_at: datetime | None
    next_due_at: datetime | None
    queues: int
    locked_queues: int
    table_bytes: int
    tasks: Mapping[str, Counts] = msgspec.field(default_factory=dict)
    activity: Mapping[str, TaskActivity] = msgspec.field(default_factory=dict)
    """By task, for those that have jobs."""
    pauses: tuple[Pause, ...] = ()
    """What is paused, the oldest pause first."""
    limits: tuple[TaskLimit, ...] = ()
    """The limits of tasks across all gw workers."""
    waiting_groups: int = 0
    """Groups whose last job waits for members."""


class QueueReport(msgspec.Struct, frozen=True, kw_only=True):
    """A named queue: who holds it and since when, how many jobs no worker has, how many are due, and which is next.

    Example: docs/api/parts.md
    """

    name: str
    locked_by: str | None
    locked_at: datetime | None
    unclaimed: Count
    due: Count
    next_job_id: int | None
    next_job_task: str | None
    next_job_run_at: datetime | None
    """When the next job may run; None also while that job waits for others."""
    pause: Pause | None = None


class QueueSize(msgspec.Struct, frozen=True):
    """How many jobs of a named queue no worker has, and how many of them are due."""

    name: str
    unclaimed: int
    due: int


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """A task in the database: its jobs by state, and the ids of the live workers that know it; None if unknown.

    Example: docs/api/parts.md
    """

    name: str
    jobs: Counts
    known_by: tuple[str, ...] | None
