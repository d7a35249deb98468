"""Groups: a job that is added when the jobs of its group have ended."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from gw_core.domain.job.job import Job

GROUP_FLAG: Final = "gw:group"
"""The flag of members: a worker that settles a job knows by it that others may wait for its end."""


class OnFailure(StrEnum):
    """What becomes of the waiting job when a member fails permanently."""

    HOLD = "hold"
    """It waits until the member was retried and completed, or was removed."""
    CANCEL = "cancel"
    """It is dropped; the other members run on."""
    RUN = "run"
    """The member counts as ended."""


class JobGroup(msgspec.Struct, frozen=True):
    """A group that was added. `id` is None when plugins skipped all members: the last job is then added already."""

    id: int | None
    job_ids: tuple[int, ...]


class WaitingGroup(msgspec.Struct, frozen=True):
    """A group whose last job, of `task`, waits."""

    id: int
    task: str
    job_key: str | None
    on_failure: OnFailure
    members: int
    created_at: datetime
    open: int
    """Members that have not ended, with those that failed."""
    failed: int
    """Members that failed permanently."""
    error: str | None = None
    """Why the last job could not be added although all members have ended; workers try again about once a minute."""

    @property
    def sentence(self) -> str:
        """What the last job waits for."""
        if self.error is not None:
            return cannot_be_added(self.id, self.task, self.error)
        ended = self.members - self.open
        failed = f", {self.failed} failed permanently" if self.failed else ""
        return (
            f"group {self.id}: a job of {self.task} is added when all {self.members} members have ended; "
            f"{ended} have{failed} (on failure: {self.on_failure})"
        )


class GroupStatus(msgspec.Struct, frozen=True):
    """How many groups wait, and what holds some of them."""

    waiting: int
    held: int
    """Groups that wait for a member that failed permanently."""
    first_held: int | None = None
    first_failed_job: int | None = None
    broken: BrokenGroups | None = None
    """Groups whose last job cannot be added, if there are any."""


class BrokenGroups(msgspec.Struct, frozen=True):
    """How many groups have a last job that cannot be added, and the first of them."""

    number: int
    id: int
    task: str
    error: str

    @property
    def sentence(self) -> str:
        """What is wrong."""
        others = f"; {self.number - 1} more groups have such a job" if self.number > 1 else ""
        return cannot_be_added(self.id, self.task, self.error) + others


def cannot_be_added(group: int, task: str, error: str) -> str:
    """Return the message about a group whose members have ended and whose last job was rejected."""
    return f"group {group}: all members have ended, but the job of {task} cannot be added: {error}"


def is_member(job: Job) -> bool:
    """Return whether the job was added as a member of a group."""
    return job._flags is not None and GROUP_FLAG in job.flags
