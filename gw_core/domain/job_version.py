"""The version of a job that an action expects, so that it changes only what the user saw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from gw_core.domain.job import Job


class JobVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was read; an action skips the job when it has changed since."""

    id: int
    revision: int
    attempts: int
    max_attempts: int
    run_at_epoch: float
    updated_at_epoch: float
    locked_at_epoch: float | None = None
    locked_by: str | None = None

    @classmethod
    def from_job(cls, job: Job) -> Self:
        """Remember a job as it was listed or shown."""
        return cls(**{name: getattr(job, name) for name in cls.__struct_fields__})

    def changes(self, job: Job) -> str | None:
        """Return in a few words what is different now, or None; a lock that was taken or let go counts."""
        return ", ".join(self._changes(job)) or None

    def _changes(self, job: Job) -> Iterator[str]:
        for name in ("revision", "attempts", "max_attempts"):
            before, now = getattr(self, name), getattr(job, name)
            if before != now:
                yield f"{name.replace('_', ' ')} {before}→{now}"
        if self.locked_by != job.locked_by:
            yield "let go by its worker" if job.locked_by is None else "taken by a worker"
        if self.run_at_epoch != job.run_at_epoch:
            yield "due at another time"
        elif self.updated_at_epoch != job.updated_at_epoch:
            yield "changed by another session"
