"""What has changed about a job since it was read, so that an action changes only what the user saw."""

from __future__ import annotations

from collections.abc import Iterator

from gw_core.domain.job.job import Job


def changes_of(seen: Job, job: Job) -> str | None:
    """Return in a few words what is different now, or None; a lock that was taken or released counts."""
    return ", ".join(_changes(seen, job)) or None


def _changes(seen: Job, job: Job) -> Iterator[str]:
    for name in ("revision", "attempts", "max_attempts"):
        before, now = getattr(seen, name), getattr(job, name)
        if before != now:
            yield f"{name.replace('_', ' ')} {before}→{now}"
    if seen.locked_by != job.locked_by:
        yield "let go by its worker" if job.locked_by is None else "taken by a worker"
    if seen._run_at != job._run_at:
        yield "due at another time"
    elif seen._updated_at != job._updated_at:
        yield "changed by another session"
