"""A task with the options of this backend, and the record of all tasks that were defined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from gw_core import JobKeyMode
from gw_core.contrib.django.compat import Task

DEFAULT_LANE: Final = "default"

recorded: Final[dict[str, Any]] = {}
"""Every task that was defined in this process, by its path.

The workers of one process share it; it is filled at import, because a task cannot always be found by its path.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphileWorkerTask(Task):
    """A Django task with options for its jobs: `@task(max_attempts=3)`, `send.using(job_key="daily")`."""

    max_attempts: int | None = None
    """How often the task is tried; None: the backend's `MAX_ATTEMPTS`."""
    job_key: str | None = None
    """At most one waiting job has this key."""
    job_key_mode: JobKeyMode | str = JobKeyMode.REPLACE
    """What happens when a job with this key waits already."""
    serial_queue: str | None = None
    """Jobs of one serial queue run one after the other, on all workers."""
    flags: Sequence[str] = ()
    """Workers can skip jobs with a flag."""

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> Any:
        """Return a task with other values; None keeps a value."""
        values = {"priority": priority, "queue_name": queue_name, "run_after": run_after, "backend": backend, **options}
        return replace(self, **{name: value for name, value in values.items() if value is not None})


def time_of_django(time: datetime) -> datetime:
    """Return a time as Django has it in the project: without `USE_TZ`, a local one without a time zone."""
    return time if settings.USE_TZ else timezone.make_naive(time)


def record(task: Any) -> None:
    """Remember the task for workers; a copy made by `using()` does not replace its original."""
    known = recorded.get(task.module_path)
    if known is None or known.func is not task.func:
        recorded[task.module_path] = task


def identifier_of(module_path: str, lane: str) -> str:
    """Return the task identifier of the jobs of a task on a lane (Django's `queue_name`)."""
    return module_path if lane == DEFAULT_LANE else f"{lane}/{module_path}"
