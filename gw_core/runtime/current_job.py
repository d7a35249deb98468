"""The job that the calling code runs for, and a filter that writes it into log records."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

from gw_core.runtime.loggers import job_fields

if TYPE_CHECKING:
    from gw_core.domain.job.job import Job
    from gw_core.runtime.loggers import JobLogger


class Run(Protocol):
    """The part of a job context that names the job and its worker."""

    @property
    def worker_id(self) -> str:
        """The worker that runs the job."""

    @property
    def logger(self) -> JobLogger:
        """The logger of the job."""

    job: Job


RUN: Final[ContextVar[Run | None]] = ContextVar("gw_run", default=None)
"""Set in the `contextvars` context that each run has for itself."""


def current_job() -> Job | None:
    """Return the job that the calling code runs for; None outside of a task.

    It is known in the task's thread, in its coroutine, and where these pass their context variables on, as
    `asyncio.to_thread` does.

    Example: docs/guide/running-workers.md
    """
    run = RUN.get()
    return None if run is None else run.job


class JobLogFilter(logging.Filter):
    """Adds the fields of the current job to log records: `job_id`, `task`, `queue_name`, `attempt` and so on.

    Add it to your handlers. Outside of a task the fields are None, so a format can always name them.

    Example: docs/guide/running-workers.md
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that the record does not have."""
        for name, value in (_current_fields() or _NO_FIELDS).items():
            vars(record).setdefault(name, value)
        return True


def add_current_job(record: logging.LogRecord) -> None:
    """Add the fields of the current job to a record inside of a task that names no job."""
    if "job_id" not in vars(record) and (fields := _current_fields()) is not None:
        vars(record).update(fields)


def _current_fields() -> dict[str, object] | None:
    run = RUN.get()
    return None if run is None else job_fields(run.job, run.worker_id)


_NO_FIELDS: Final = dict.fromkeys(("job_id", "task", "queue_name", "attempt", "max_attempts", "worker_id"))
