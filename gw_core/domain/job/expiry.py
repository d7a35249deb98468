"""Jobs that expire: one that has not started by its `expires_at` fails permanently instead of starting."""

from __future__ import annotations

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Failed, error_type_of


class JobExpired(GraphileWorkerError):  # noqa: N818 - what became of the job; nothing went wrong
    """The job did not start in time, so it was not run."""


def has_started(job: Job) -> bool:
    """Return whether the job has started before, or may have, so that it no longer expires.

    A job has an error or an attempt then, or it lost its flag: it was returned, for example by a worker that stopped.
    """
    return job.attempts > (job._locked_at is not None) or job.last_error is not None


def expired_before_start(job: Job, now: float | None = None) -> Failed | None:
    """Return the outcome of a claimed job that did not start in time; None for all others.

    `now` is in seconds since 1970; without it, the database's time of the claim counts.
    """
    expires_at = job.expires_at
    if expires_at is None or has_started(job):
        return None
    is_in_time = ((job._locked_at or 0.0) if now is None else now) < expires_at.timestamp()
    return None if is_in_time else expired(job)


def has_expired(job: Job) -> bool:
    """Return whether this is what became of a job that failed permanently."""
    return job._expiry is not None and job.last_error == expired(job).message


def expired(job: Job) -> Failed:
    """Return the outcome of a job that did not start in time, with the error that expire_jobs.sql writes."""
    error = JobExpired(f"expired: did not start by {job.expires_at:%Y-%m-%dT%H:%M:%S}Z")
    return Failed(job, 0.0, error, str(error), permanent=True, started=False)


ERROR_TYPE = error_type_of(JobExpired())
"""What history has as the class of the error."""
