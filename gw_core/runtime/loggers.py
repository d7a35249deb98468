"""The loggers of gw, and the fields of their records."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from gw_core.domain.job.job import Job

LOGGER_NAME: Final = "graphile_worker"
"""The name above those of all loggers of gw: `graphile_worker.worker`, `graphile_worker.cron` and so on."""

JOB_LOGGER: Final = f"{LOGGER_NAME}.job"
"""The logger of `context.logger`."""

if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    _LoggerAdapter = logging.LoggerAdapter


def get_logger(name: str = "", base: logging.Logger | None = None) -> logging.Logger:
    """Return the logger of a part of gw, such as "worker", under `base` or under `graphile_worker`."""
    base = base or logging.getLogger(LOGGER_NAME)
    return base.getChild(name) if name else base


def enable_loggers(base: logging.Logger) -> None:
    """Enable gw's loggers again: `logging.config` disables existing loggers by default."""
    for name in ("", "core", "cron", "job", "supervisor", "tasks", "worker"):
        get_logger(name, base).disabled = False


class JobLogger(_LoggerAdapter):
    """A logger whose records have the fields of a job, beside the `extra` of each call."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the job's fields to a call's `extra`."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs


_STANDARD_ATTRIBUTES: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def record_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the attributes of a record that `extra` added."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}


def job_fields(job: Job, worker_id: str | None = None) -> dict[str, object]:
    """Return the attributes that a record about a job has."""
    return {
        "job_id": job.id,
        "task": job.task,
        "queue_name": job.queue_name,
        "attempt": job.attempts,
        "max_attempts": job.max_attempts,
        "worker_id": worker_id,
    }
