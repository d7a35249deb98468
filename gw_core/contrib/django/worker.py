"""The worker's side: the registry with all recorded tasks, and one run of a task.

`gw run --app gw_core.contrib.django.worker:registry` runs the tasks of the backend `default`;
`manage.py gw run` does that for any backend.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from traceback import format_exception
from typing import Any

import django
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules

from gw_core import GiveUp, Job, JobContext, Snooze, TaskRegistry
from gw_core.contrib.django.compat import (
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from gw_core.contrib.django.task import identifier_of, recorded
from gw_core.contrib.django.worker_settings import BACKEND_VARIABLE, LANES_VARIABLE


def registry(alias: str | None = None, lanes: list[str] | None = None) -> TaskRegistry:
    """Return every task of this project, for each lane that the worker serves; sets Django up if needed."""
    if not apps.ready:
        django.setup()
    backend = task_backends[alias or os.environ.get(BACKEND_VARIABLE) or "default"]
    named = os.environ.get(LANES_VARIABLE)
    return _registry(backend, lanes or (named.split(",") if named else list(backend.lanes)))


def _registry(backend: Any, lanes: list[str]) -> TaskRegistry:
    unknown = sorted(set(lanes) - set(backend.lanes))
    if unknown:
        raise ImproperlyConfigured(f"no lane {unknown[0]!r} in QUEUES; the lanes are {', '.join(backend.lanes)}")
    made = TaskRegistry()
    for path, task in _tasks(backend).items():
        for lane in lanes:
            run = TaskRun(replace(task, backend=backend.alias, queue_name=lane), type(backend))
            made.register(identifier_of(path, lane), run, source=task.module_path)
    return made


def _tasks(backend: Any) -> Mapping[str, Any]:
    """Return the tasks by their paths, present and earlier."""
    autodiscover_modules("tasks")
    for module in backend.settings.modules:
        importlib.import_module(module)
    aliases = backend.settings.aliases
    missing = sorted(set(aliases.values()) - set(recorded))
    if missing:
        raise ImproperlyConfigured(f"ALIASES names {missing[0]}, but there is no such task")
    return {**{old: recorded[new] for old, new in aliases.items() if old not in recorded}, **recorded}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphileWorkerContext(TaskContext):
    """What a task with `takes_context` is given: Django's context, and the context of its job."""

    job_context: JobContext


class TaskRun:
    """Runs the jobs of one task on one lane; its instances are the functions of the registry."""

    def __init__(self, task: Any, backend_class: type) -> None:
        self._task = task
        self._sender = backend_class

    def __call__(self, payload: Any, context: JobContext) -> None:
        """Run the task once, with Django's signals, as a request would use the database."""
        with RequestLikeConnections():
            result = self._running(payload, context)
            task_started.send(self._sender, task_result=result)
            try:
                value = normalize_json(self._call(result, context))
            except BaseException as error:
                self._fail(result, error, context.job)
                raise
            object.__setattr__(result, "_return_value", value)
            self._finish(result, TaskResultStatus.SUCCESSFUL)

    def _call(self, result: Any, context: JobContext) -> Any:
        call: Callable[..., Any] = self._task.call
        if self._task.takes_context:
            call = partial(call, GraphileWorkerContext(task_result=result, job_context=context))
        return call(*result.args, **result.kwargs)

    def _running(self, payload: Any, context: JobContext) -> Any:
        """Return the result of a running task."""
        args, kwargs = _arguments(payload)
        now = timezone.now()
        values = {
            "task": self._task,
            "id": str(context.job.id),
            "status": TaskResultStatus.RUNNING,
            "enqueued_at": context.job.created_at,
            "started_at": now,
            "finished_at": None,
            "last_attempted_at": now,
            "args": args,
            "kwargs": kwargs,
            "backend": self._task.backend,
            "errors": [],
            # The queue does not record which workers made the earlier attempts.
            "worker_ids": ["unknown"] * (context.job.attempts - 1) + [context.worker_id],
            "_return_value": None,
        }
        # Without the constructor, which copies the arguments to make them JSON; they come from JSON.
        result = object.__new__(TaskResult)
        for name, value in values.items():
            object.__setattr__(result, name, value)
        return result

    def _fail(self, result: Any, error: BaseException, job: Job) -> None:
        """Report a failure if it is the task's last; called in the `except` block, because receivers log the error."""
        if isinstance(error, Snooze) or not (isinstance(error, GiveUp) or job.is_last_attempt):
            return
        kind = type(error)
        path, text = f"{kind.__module__}.{kind.__qualname__}", "".join(format_exception(error))
        result.errors.append(TaskError(exception_class_path=path, traceback=text))
        self._finish(result, TaskResultStatus.FAILED)

    def _finish(self, result: Any, status: Any) -> None:
        object.__setattr__(result, "finished_at", timezone.now())
        object.__setattr__(result, "status", status)
        task_finished.send(self._sender, task_result=result)


def _arguments(payload: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments in a payload, which another language may have written."""
    if not isinstance(payload, dict):
        raise GiveUp(f"the payload of a Django task is an object with args and kwargs, not {type(payload).__name__}")
    return payload.get("args", []), payload.get("kwargs", {})


class RequestLikeConnections:
    """Does for the thread's database connections what Django does at the start and the end of a request."""

    def __enter__(self) -> None:
        # Connections that this thread opened since are closed at the end: finding all takes longer than a short task.
        for connection in getattr(_open, "connections", ()):
            connection.queries_log.clear()
            _close_if_old(connection)

    def __exit__(self, *error: object) -> None:
        _open.connections = connections.all(initialized_only=True)
        for connection in _open.connections:
            _close_if_old(connection)


_open = threading.local()


def _close_if_old(connection: Any) -> None:
    """Close a connection that broke or is too old; Django's `close_old_connections` would also end a transaction."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
