"""The worker's side: the registry with all recorded tasks, and one run of a task.

`gw run --app gw_core.contrib.django.worker:registry` runs the tasks of the backend `default`;
`manage.py gw run` does that for any backend.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from inspect import iscoroutinefunction
from time import time
from traceback import format_exception
from typing import Any

import django
from asgiref.local import Local
from django.apps import apps
from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.signals import connection_created
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules

from gw_core import GiveUp, Interrupted, JobContext, StopReason, TaskRegistry, task as with_options
from gw_core.contrib.django.backend_settings import APP, BACKEND_VARIABLE, CONNECTION_VARIABLE, LANES_VARIABLE, Options
from gw_core.contrib.django.compat import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    log_task_finished,
    log_task_started,
    logger,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from gw_core.contrib.django.task import DEFAULT_LANE, identifier_of, options_of, recorded, time_of_django
from gw_core.errors import InvalidInputError, JobCancelledError, TaskTimeoutError
from gw_core.front_ends import Failed, outcome_of
from gw_core.operations import TaskLimit

DJANGOS_RECEIVERS = frozenset(map(id, (log_task_started, log_task_finished)))

RUN_OPTIONS = frozenset({"timeout", "isolation", "retry"})
"""The options that the worker applies to each run."""

TOO_LATE: Mapping[StopReason | None, type[Exception]] = {
    StopReason.TIMEOUT: TaskTimeoutError,
    StopReason.CANCELLED: JobCancelledError,
}
"""Why an attempt has failed, whatever its task returns."""


def registry(alias: str | None = None, lanes: list[str] | None = None) -> TaskRegistry:
    """Return every task of this project, for each lane that the worker serves; sets Django up if needed."""
    if not apps.ready:
        django.setup()
    if BACKEND_VARIABLE in os.environ:
        prepare_process()
    backend = task_backends[alias or os.environ.get(BACKEND_VARIABLE) or "default"]
    named = os.environ.get(LANES_VARIABLE)
    return _registry(backend, lanes or (named.split(",") if named else list(backend.lanes)))


def _registry(backend: Any, lanes: list[str]) -> TaskRegistry:
    unknown = sorted(set(lanes) - set(backend.lanes))
    if unknown:
        raise ImproperlyConfigured(f"no lane {unknown[0]!r} in QUEUES; the lanes are {', '.join(backend.lanes)}")
    made = TaskRegistry()
    made.app = APP  # where a process of its own finds a task with `isolation`
    keep = backend.settings.keep_results
    results: Any = {} if keep is None else {"keep": keep, "result": True, "keep_payload": True}
    for path, task in _tasks(backend).items():
        given: Any = {name: value for name, value in options_of(task).items() if name in RUN_OPTIONS}
        for lane in lanes:
            run: Any = TaskRun(replace(task, backend=backend.alias, queue_name=lane), type(backend))
            if path == task.module_path and lane == own_lane(task, backend) and is_scheduled_in(task, backend):
                run.func = task.func
            identifier = identifier_of(path, lane)
            if given or results:
                run = with_options(identifier, **given, **results)(run)
            made.register(identifier, run, source=task.module_path)
    return made


def limits_of(backend: Any) -> dict[str, TaskLimit]:
    """Return the limits that the tasks declare, by task identifier; each lane of a task is limited alone.

    Raises `InvalidInputError` for a wrong limit.
    """
    found = {path: options_of(task).get("limit") for path, task in _tasks(backend).items()}
    return {
        identifier_of(path, lane): _limit(identifier_of(path, lane), limit)
        for path, limit in found.items()
        if limit is not None
        for lane in backend.lanes
    }


def _limit(identifier: str, given: int | Mapping[str, Any]) -> TaskLimit:
    values: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"running": given}
    period = values.get("period")
    if isinstance(period, int | float):
        values["period"] = timedelta(seconds=period)
    try:
        return TaskLimit(task=identifier, **values)
    except TypeError as error:
        raise InvalidInputError(f"the limit of {identifier} is wrong: {error}") from error


def prepare_process() -> None:
    """Prepare a process that `manage.py gw` has started: gw has read its connection, and logs what tasks do."""
    os.environ.pop(CONNECTION_VARIABLE, None)  # or programs that tasks start would have the password
    named = settings.LOGGING.get("loggers", {})
    if logger.name not in named:
        logger.disabled = True
    if "django" not in named:
        djangos = logging.getLogger("django")
        # With DEBUG, Django writes to the console what gw's own handler of all records writes too.
        djangos.handlers = [each for each in djangos.handlers if type(each) is not logging.StreamHandler]


def own_lane(task: Any, backend: Any) -> str:
    """Return the lane on which a task is enqueued, unless `using()` names another."""
    lane: str = task.queue_name if backend.queues else DEFAULT_LANE
    return lane


def is_scheduled_in(task: Any, backend: Any) -> bool:
    """Return whether workers of a backend add the jobs of the task's schedules: those of its own queue do.

    Otherwise each queue of the project would get these jobs. A task of another program's backend belongs to `default`.
    """
    settings_of = {alias: getattr(task_backends[alias], "settings", None) for alias in sorted(task_backends.settings)}
    ours = {alias: each for alias, each in settings_of.items() if isinstance(each, Options)}
    home = ours.get(task.backend) or ours.get("default") or next(iter(ours.values()))
    return (home.database, home.schema) == (backend.settings.database, backend.settings.schema)


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
    """The context of a task with `takes_context`: Django's context, and the context of its job."""

    job_context: JobContext


class RunResult(TaskResult):
    """The result of a running task; not frozen, because its worker updates it."""

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


class TaskRun:
    """Runs the jobs of one task on one lane; its instances are the functions of the registry."""

    func: Callable[..., Any] | None = None
    """The task's function, which holds its schedules, on the one lane that they add jobs to."""

    def __init__(self, task: Any, backend_class: type) -> None:
        self._task = task
        self._sender = backend_class
        self._takes_context: bool = task.takes_context
        # `Task.call` inspects the function each time, which takes longer than a short task.
        is_plain = type(task).call is Task.call and not iscoroutinefunction(task.func)
        self._function: Callable[..., Any] = task.func if is_plain else task.call

    def __call__(self, payload: Any, context: JobContext) -> Any:
        """Run the task once, with Django's signals, as a request would use the database; return its result."""
        if not _opened.runs_tasks:
            _opened.runs_tasks = True
            connection_created.connect(_remember)
            keep_on_threads()
        if _opened.connections:
            refresh_connections(clear_queries=True)
        try:
            return self._run(payload, context)
        finally:
            if _opened.connections:
                refresh_connections()

    def _run(self, payload: Any, context: JobContext) -> Any:
        try:
            args, kwargs = payload["args"], payload["kwargs"]
        except (KeyError, TypeError):
            args, kwargs = _arguments(payload)
        # A result takes as long to build as a short task to run, so it is built only when something receives it.
        started, result = time(), None
        if self._takes_context or is_received(task_started, task_finished):
            result = self._started(args, kwargs, context, started)
        try:
            if self._takes_context:
                own = GraphileWorkerContext(task_result=result, job_context=context)
                returned = self._function(own, *args, **kwargs)
            else:
                returned = self._function(*args, **kwargs)
            if returned is not None:
                returned = normalize_json(returned)
            if (late := TOO_LATE.get(context.stop_reason)) is not None:
                raise late(f"the attempt had ended before its task returned: {context.stop_reason}")
        except BaseException as error:
            if self._is_final(error, context):
                self._fail(result or self._running(args, kwargs, context, started), error)
            raise
        if result is not None:
            self._succeed(result, returned)
        return returned

    def _started(self, args: list[Any], kwargs: dict[str, Any], context: JobContext, started: float) -> Any:
        result = self._running(args, kwargs, context, started)
        if is_received(task_started):
            # What a receiver raises is logged by Django: it must not fail the task, nor run it again.
            task_started.send_robust(self._sender, task_result=result)
        return result

    def _running(self, args: list[Any], kwargs: dict[str, Any], context: JobContext, started: float) -> Any:
        """Return the result of a running task."""
        job = context.job
        # Without the constructor, which copies the arguments to make them JSON; they come from JSON.
        result: Any = object.__new__(RunResult)
        result.task = self._task
        result.id = str(job.id)
        result.status = TaskResultStatus.RUNNING
        result.enqueued_at = time_of_django(job.created_at)
        result.started_at = result.last_attempted_at = timezone.now() - timedelta(seconds=time() - started)
        result.finished_at = None
        result.args, result.kwargs = args, kwargs
        result.backend = self._task.backend
        result.errors = []
        # The queue does not record which workers made the earlier attempts.
        result.worker_ids = ["unknown"] * (job.attempts - 1) + [context.worker_id]
        result._return_value = None
        return result

    def _is_final(self, error: BaseException, context: JobContext) -> bool:
        """Return whether the task is not tried again after this error; the worker decides the same."""
        if context.stop_reason is StopReason.CANCELLED and not context.should_stop.keeps_attempts:
            return True
        if context.stop_reason in TOO_LATE and isinstance(error, Interrupted):
            return context.job.is_last_attempt
        rules = tuple(options_of(self._task).get("retry", {}).items())
        outcome = outcome_of(context.job, error, 0.0, rules)
        return isinstance(outcome, Failed) and outcome.is_final

    def _succeed(self, result: Any, returned: Any) -> None:
        result._return_value = returned
        self._end(result, TaskResultStatus.SUCCESSFUL)

    def _fail(self, result: Any, error: BaseException) -> None:
        """Report a failure; called in the `except` block, because receivers log the error."""
        kind = type(error)
        path, text = f"{kind.__module__}.{kind.__qualname__}", "".join(format_exception(error))
        result.errors.append(TaskError(exception_class_path=path, traceback=text))
        self._end(result, TaskResultStatus.FAILED)

    def _end(self, result: Any, status: Any) -> None:
        result.finished_at = timezone.now()
        result.status = status
        if status is TaskResultStatus.FAILED or is_received(task_finished):
            task_finished.send_robust(self._sender, task_result=result)


def is_received(*signals: Any) -> bool:
    """Return whether sending one of the signals has an effect: Django's own receivers only log, with the level INFO.

    Two signals without effect would take a third of the time of a short task.
    """
    if logger.isEnabledFor(logging.INFO):
        return True
    for signal in signals:
        receivers = signal.receivers
        if len(receivers) != 1 or receivers[0][0][0] not in DJANGOS_RECEIVERS:
            return True
    return False


def _arguments(payload: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments in a payload, which another language may have written."""
    if not isinstance(payload, dict):
        raise GiveUp(f"the payload of a Django task is an object with args and kwargs, not {type(payload).__name__}")
    return payload.get("args", []), payload.get("kwargs", {})


# -- connections ---------------------------------------------------------------------------------------------------


class _Connections(set[Any]):
    """The connections that a thread has opened; with the thread they end."""

    def __del__(self) -> None:
        for connection in self:
            with suppress(Exception):
                connection.close()


class _Opened(threading.local):
    def __init__(self) -> None:
        self.connections = _Connections(connections.all(initialized_only=True))
        self.runs_tasks = False


_opened = _Opened()


def _remember(connection: Any, **_: Any) -> None:
    _opened.connections.add(connection)


def keep_on_threads() -> None:
    """Let caches and backends belong to threads: each run has context variables of its own, and would make new ones."""
    if threading.current_thread() is threading.main_thread():
        return  # of a test, which has made its caches
    for handler in (caches, task_backends):
        if not handler.thread_critical:
            handler.thread_critical = True
            handler._connections = Local(handler.thread_critical)


def refresh_connections(*, clear_queries: bool = False) -> None:
    """Do for the thread's connections what Django does at the start and the end of a request.

    Connections are remembered when they open: to ask Django for them takes longer than a short task.
    """
    for connection in _opened.connections:
        if clear_queries:
            connection.queries_log.clear()
        # Django's `close_old_connections` would also end a transaction.
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
