"""A task with the options of this backend, and the record of all tasks that were defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from django.conf import settings
from django.utils import timezone

from gw_core import JobKeyMode
from gw_core.contrib.django.compat import Task
from gw_core.front_ends import RetryRule

DEFAULT_LANE: Final = "default"

recorded: Final[dict[str, Any]] = {}
"""Every task that was defined in this process, by its path.

The workers of one process share it; it is filled at import, because a task cannot always be found by its path.
"""

T = TypeVar("T")

_OPTIONS: Final = "__graphile_django_options__"


class JobOptions(TypedDict, total=False):
    """The options of a job: see `options`."""

    max_attempts: int
    job_key: str
    job_key_mode: JobKeyMode | str
    serial_queue: str
    flags: Sequence[str]


class TaskOptions(JobOptions, total=False):
    """The options of a task: see `options`."""

    timeout: timedelta | float
    isolation: Literal["process"]
    limit: int | Mapping[str, Any]
    retry: Mapping[type[BaseException], RetryRule]


OF_TASKS: Final = frozenset(TaskOptions.__annotations__) - frozenset(JobOptions.__annotations__)
"""Options that workers apply, equally to all jobs of a task."""


def options(**given: Unpack[TaskOptions]) -> Callable[[T], T]:
    """Set options of a task, above or below `@task`; other backends of Django's tasks ignore them.

    Of its jobs: `max_attempts`; `job_key` and `job_key_mode`, so that at most one waiting job has that key;
    `serial_queue`, whose jobs run one after the other; `flags`, which workers can skip. `using` changes these for some
    jobs. Of the task: `timeout`, `isolation` and `retry` are those of `gw_core.task`; `limit` is how many of its jobs
    run at a time, or a dictionary with the arguments of `Client.limits.set`; `manage.py migrate` sets it.
    """
    if unknown := given.keys() - TaskOptions.__annotations__.keys():
        raise TypeError(f"a task has no option {min(unknown)!r}; give {', '.join(TaskOptions.__annotations__)}")

    def decorate(task: T) -> T:
        function = getattr(task, "func", task)
        setattr(function, _OPTIONS, {**getattr(function, _OPTIONS, {}), **given})
        return task

    return decorate


def using(
    task: T,
    *,
    priority: int | None = None,
    queue_name: str | None = None,
    run_after: datetime | None = None,
    backend: str | None = None,
    **given: Unpack[JobOptions],
) -> T:
    """Return a task with other values, as `task.using()` does; backends other than gw's ignore the options of jobs."""
    values: dict[str, Any] = {
        "priority": priority,
        "queue_name": queue_name,
        "run_after": run_after,
        "backend": backend,
    }
    made: Any = task
    if isinstance(made, GraphileWorkerTask):
        values |= given
    changed: T = made.using(**values)
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphileWorkerTask(Task):
    """A Django task with options for its jobs: `@task(max_attempts=3)`, `send.using(job_key="daily")`."""

    max_attempts: int | None = None
    """How often the task is tried; None: the backend's `MAX_ATTEMPTS`."""
    job_key: str | None = None
    """At most one waiting job has this key."""
    job_key_mode: JobKeyMode | str | None = None
    """What happens when a job with this key waits already; None: it is replaced."""
    serial_queue: str | None = None
    """Jobs of one serial queue run one after the other, on all workers."""
    flags: Sequence[str] | None = None
    """Workers can skip jobs with a flag."""
    timeout: timedelta | float | None = None
    """How long a run may take before its attempt fails."""
    isolation: Literal["process"] | None = None
    """"process": each run is in a process of its own, which can be killed."""
    limit: int | Mapping[str, Any] | None = None
    """How many jobs of the task run at a time, or the arguments of `Client.limits.set`."""
    retry: Mapping[type[BaseException], RetryRule] | None = None
    """What follows a failure: exceptions, and for each `GiveUp`, a delay, or a function that returns it."""

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
        if fixed := OF_TASKS & options.keys():
            raise TypeError(f"{min(fixed)} is an option of the task and not of a job; give it to @task or @options")
        values = {"priority": priority, "queue_name": queue_name, "run_after": run_after, "backend": backend, **options}
        return replace(self, **{name: value for name, value in values.items() if value is not None})


def options_of(task: Any) -> TaskOptions:
    """Return the options of a task: those of `using` and `@task` before those of `@options`."""
    given: Any = dict(getattr(task.func, _OPTIONS, {}))
    for name in TaskOptions.__annotations__:
        if (value := getattr(task, name, None)) is not None:
            given[name] = value
    return given  # type: ignore[no-any-return]


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
