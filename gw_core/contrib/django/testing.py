"""Test code that enqueues Django's tasks: run waiting tasks, and check which tasks wait.

Everything happens on Django's own connection, in the transaction of a `TestCase`; `gw_core.testing` has the rest.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.utils.module_loading import import_string

from gw_core import Job
from gw_core.contrib.django.compat import task_backends
from gw_core.contrib.django.worker import registry
from gw_core.testing import (
    DrainResult,
    assert_enqueued as assert_job,
    drain as drain_jobs,
    refute_enqueued as refute_job,
)


def drain(task: Any = None, *, backend: str = "default", **options: Any) -> DrainResult:
    """Run the waiting tasks until none is due, also tasks that other tasks enqueue; or only `task`.

    A task is one of Django's, or its dotted name. `options` are those of `gw_core.testing.drain`, such as `raises` and
    `with_scheduled`.
    """
    tasks = registry(backend)
    if task is not None:
        options["task"] = task_backends[backend].identifier(_task(task))
    return drain_jobs(_connection(backend), tasks=tasks, schema=_schema(backend), **options)


def assert_enqueued(task: Any, *args: Any, **kwargs: Any) -> list[Job]:
    """Assert that a task is enqueued with these arguments, or with any if none are given; return its jobs.

    A task is one of Django's, or its dotted name. The values of `using()` must agree: `using(send, job_key="daily")`.
    Of an argument that is a dictionary, only the keys that are given have to agree.
    """
    __tracebackhide__ = True
    return assert_job(**_wanted(_task(task), args, kwargs))


def refute_enqueued(task: Any, *args: Any, **kwargs: Any) -> None:
    """Assert that a task is not enqueued with these arguments, or not at all; see `assert_enqueued`."""
    __tracebackhide__ = True
    refute_job(**_wanted(_task(task), args, kwargs))


def _wanted(task: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    backend = task_backends[task.backend]
    spec = backend.job_spec(task, (), {})
    wanted = {"queue_name": spec.queue_name, "job_key": spec.job_key, "run_at": spec.run_at}
    if task.priority:
        wanted["priority"] = spec.priority
    if args or kwargs:
        wanted["payload"] = {"args": list(args), "kwargs": kwargs}
    found = {name: value for name, value in wanted.items() if value is not None}
    return {"conn": _connection(task.backend), "task": spec.task, "schema": _schema(task.backend), **found}


def _task(task: Any) -> Any:
    return import_string(task) if isinstance(task, str) else task


def _connection(alias: str) -> Any:
    connection = connections[task_backends[alias].settings.database]
    connection.cursor().close()  # raises an error if the test case does not list the database
    return connection


def _schema(alias: str) -> str:
    schema: str = task_backends[alias].settings.schema
    return schema
