"""Jobs that wait for others; a group is a set of jobs and one that waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from gw_core.domain.counted import counted
from gw_core.domain.job.job import Job, OnFailure, timestamp

GROUP_FLAG: Final = "gw:group"
"""The flag of jobs that others wait for: a worker that settles such a job lets the others know."""

_FLAG_IN_JSON: Final = f'"{GROUP_FLAG}"'


class JobGroup(msgspec.Struct, frozen=True):
    """A group that was added. When plugins skipped all members, its last job waits for nothing.

    Example: docs/api/parts.md
    """

    id: int
    """The id of the last job."""
    job_ids: tuple[int, ...]


class WaitingGroup(msgspec.Struct, frozen=True):
    """A job, of `task`, that waits for others.

    Example: docs/api/parts.md
    """

    id: int
    """The id of the job that waits."""
    task: str
    job_key: str | None
    on_failure: OnFailure
    members: int
    """How many jobs it waits for, with those that have ended."""
    created_at: datetime
    open: int
    """Those that have not ended, with those that failed."""
    failed: int
    """Those that failed permanently."""
    waits_for: tuple[int, ...] = ()
    """The ids of those that have not ended, the first ten."""

    @property
    def sentence(self) -> str:
        """What the job waits for."""
        failed = f", {self.failed} failed permanently" if self.failed else ""
        return (
            f"job {self.id} of {self.task} waits for {counted(self.members, 'job')}; "
            f"{counted(self.members - self.open, 'has', 'have')} ended{failed} (on failure: {self.on_failure})"
        )


class GroupStatus(msgspec.Struct, frozen=True):
    """How many jobs wait for others, and what holds some of them."""

    waiting: int
    held: int
    """Those that wait for a job that failed permanently."""
    first_held: int | None = None
    first_failed_job: int | None = None


def is_member(job: Job) -> bool:
    """Return whether other jobs may wait for the job."""
    # Without decoding: a settler asks this of each job that has flags, and another flag can only cost a question.
    return job._flags is not None and _FLAG_IN_JSON in job._flags


def waiting_of(row: Sequence[Any]) -> WaitingGroup:
    """Return a row of list_waiting.sql as a value."""
    number, task, key, policy, members, created, is_open, failed, ids = row
    return WaitingGroup(
        number, task, key, OnFailure(policy), members, timestamp(created), is_open, failed, tuple(ids or ())
    )
