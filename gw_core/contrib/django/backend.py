"""The backend of `django.tasks`: a task that is enqueued becomes a job of the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DjangosError, connections
from django.utils import timezone
from django.utils.module_loading import import_string

from gw_core import Client, Job, JobKeyMode, JobSpec, Plugin
from gw_core.contrib.django.backend_settings import Options
from gw_core.contrib.django.compat import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_enqueued,
)
from gw_core.contrib.django.connection import open_client, problem_of
from gw_core.contrib.django.results import path_of, read_result
from gw_core.contrib.django.task import (
    DEFAULT_LANE,
    GraphileWorkerTask,
    identifier_of,
    options_of,
    record,
    recorded,
    time_of_django,
)
from gw_core.errors import DatabaseError, InvalidInputError, InvalidJobError, JobSkipped, SchemaMissingError
from gw_core.front_ends import load_plugin, reject_duplicates

APP: Final = "gw_core.contrib.django"


class GraphileWorkerBackend(BaseTaskBackend):
    """Adds a job for each task that is enqueued, in the transaction of the database alias `OPTIONS["DATABASE"]`.

    Django makes one backend for each thread and alias.
    """

    task_class = GraphileWorkerTask
    supports_defer = True
    supports_async_task = True
    supports_priority = True

    @cached_property
    def settings(self) -> Options:
        """The checked `OPTIONS`; raises `ImproperlyConfigured`."""
        return Options.parse(self.options)

    @property
    def supports_get_result(self) -> bool:
        """Whether results are kept: see `OPTIONS["KEEP_RESULTS"]`."""
        return self.settings.keep_results is not None

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that workers can serve: `QUEUES`, or the default one alone when any name is allowed."""
        return tuple(sorted(self.queues)) or (DEFAULT_LANE,)

    @cached_property
    def _client(self) -> Client:
        return self.client()

    def client(self) -> Client:
        """Return a new client of the queue; see `gw_core.contrib.django.client`."""
        settings = self.settings
        plugins = [OwnJobs(self.alias), *(load_plugin(name) for name in settings.plugins)]
        return open_client(settings.database, settings.schema, plugins=plugins, conn=self._connection)

    def _connection(self) -> Any:
        """Return Django's connection, on which a statement belongs to the caller's transaction."""
        connection = connections[self.settings.database]
        connection.validate_no_broken_transaction()
        return connection

    def validate_task(self, task: Any) -> None:
        """Raise `InvalidTask` for a task that cannot become a job; otherwise remember the task for workers."""
        super().validate_task(task)
        # Wrong OPTIONS are reported by `check`, which imports tasks, and by `enqueue`.
        with suppress(ImproperlyConfigured):
            self._spec(task)
        record(task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Add the job, which exists once the surrounding transaction commits."""
        self.validate_task(task)
        spec = self.job_spec(task, args, kwargs)
        try:
            job: Job = self._in_transaction(self._client.add, spec)
        except JobSkipped as skipped:
            raise InvalidTask(f"A plugin skipped a job of {task.module_path}: {skipped}") from skipped
        result = TaskResult(
            task=task,
            id=str(job.id),
            status=TaskResultStatus.READY,
            enqueued_at=time_of_django(job.created_at),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            backend=self.alias,
            errors=[],
            worker_ids=[],
            **spec.payload,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def enqueue_many(self, task: Any, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[str]:
        """Add a job for each pair of positional and keyword arguments in as few statements as possible."""
        self.validate_task(task)
        specs = [self.job_spec(task, args, kwargs) for args, kwargs in calls]
        return [str(each) for each in self._in_transaction(self._client.add_many, specs)]

    def job_spec(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobSpec:
        """Return the job that `enqueue` would add; raises `InvalidTask`."""
        if task.module_path.startswith("__main__."):
            raise InvalidTask(f"{task.module_path} cannot be imported by a worker; define the task in a module.")
        payload = normalize_json({"args": list(args), "kwargs": dict(kwargs)})
        return self._spec(task).with_payload(payload)

    def _in_transaction(self, add: Callable[..., Any], what: Any) -> Any:
        """Add on Django's connection; what the database reports is raised as `django.db` raises it."""
        try:
            return add(what)
        except SchemaMissingError as error:
            raise SchemaMissingError(
                f"the schema {self.settings.schema!r} of TASKS[{self.alias!r}] is not installed or incomplete; "
                "run: manage.py migrate"
            ) from error
        except DatabaseError as error:
            cause = error.__cause__
            if not isinstance(cause, DjangosError):
                raise
            raise cause from cause.__cause__

    def get_result(self, result_id: str) -> Any:
        """Return the result of a task, as the current transaction sees it.

        Raises `TaskResultDoesNotExist` for an unknown id, an expired result, and a job that is none of a task here.
        """
        if not self.supports_get_result:
            raise NotImplementedError(
                'Results are not kept; set OPTIONS["KEEP_RESULTS"] to a timedelta, also where the workers run.'
            )
        return read_result(self._client, str(result_id), self._task_of, self.alias)

    def _task_of(self, identifier: str) -> Any:
        """Return the task of a job by its identifier; None for a job of another program."""
        path = path_of(identifier, self.lanes)
        path = self.settings.aliases.get(path, path)
        try:
            found = recorded.get(path) or import_string(path)
        except ImportError:
            return None
        if not isinstance(found, Task):
            return None
        lane = identifier.partition("/")[0] if identifier != path and "/" in identifier else found.queue_name
        return replace(found, backend=self.alias, queue_name=lane)

    def identifier(self, task: Any) -> str:
        """Return the task identifier of the task's jobs."""
        return identifier_of(task.module_path, task.queue_name if self.queues else DEFAULT_LANE)

    def check(self, **kwargs: Any) -> Iterator[Any]:
        """Yield what is wrong with the settings."""
        if not apps.is_installed(APP):
            yield self.problem("E001", f"{APP} is not in INSTALLED_APPS", f"add {APP!r}, which has the migration")
        try:
            alias = self.settings.database
        except ImproperlyConfigured as error:
            yield self.problem("E003", f"OPTIONS are invalid: {error}")
            return
        if problem := problem_of(alias):
            yield self.problem("E002", problem)
        missing = [module for module in self.settings.modules if not _exists(module)]
        for module in missing:
            yield self.problem("E005", f"there is no module {module!r}", "correct MODULES in OPTIONS")
        if not self.queues:
            text = "QUEUES is empty, so that tasks of any queue name share one lane"
            yield self.problem("W001", text, "list the names in QUEUES")
        if apps.is_installed(APP) and not missing and (problem := self._problem_of_tasks()):
            yield self.problem("E006", problem)

    def _problem_of_tasks(self) -> str | None:
        """Return why workers could not run the tasks of this project or their schedules."""
        from gw_core.contrib.django.worker import limits_of, registry

        try:
            limits_of(self)
            reject_duplicates(registry(self.alias, list(self.lanes)).cron_items)
        except Exception as error:  # noqa: BLE001 - whatever a module with tasks raises is reported
            return f"a worker could not start: {type(error).__name__}: {error}"
        return None

    def problem(self, number: str, text: str, hint: str | None = None) -> Any:
        """Return what a system check found: an error, or a warning if its number begins with W."""
        kind = checks.Warning if number.startswith("W") else checks.Error
        return kind(f"TASKS[{self.alias!r}]: {text}.", hint=hint, id=f"graphile_worker.{number}")

    def _spec(self, task: Any) -> JobSpec:
        """Return the job of a task without its arguments; raises `InvalidTask`."""
        given: Any = options_of(task)
        try:
            return _SpecOfBackend(
                backend=self.alias,
                task=self.identifier(task),
                run_at=_aware(task.run_after),
                priority=self.settings.priority_base - int(task.priority),
                max_attempts=given.get("max_attempts", self.settings.max_attempts),
                job_key=given.get("job_key"),
                job_key_mode=given.get("job_key_mode", JobKeyMode.REPLACE),
                queue_name=given.get("serial_queue"),
                flags=tuple(given.get("flags", ())),
            )
        except (InvalidJobError, InvalidInputError) as error:
            raise InvalidTask(f"{task.module_path}: {error}") from error


class OwnJobs(Plugin):
    """Rejects jobs that `job_spec` made for a backend with another queue."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def before_add(self, spec: JobSpec) -> JobSpec:
        """Return the job; raises `InvalidInputError` for one of another queue."""
        alias = spec.backend if isinstance(spec, _SpecOfBackend) else self._alias
        if alias != self._alias and _queue_of(alias) != _queue_of(self._alias):
            raise InvalidInputError(
                f"the job is for the queue of TASKS[{alias!r}], and the client is that of TASKS[{self._alias!r}]; "
                f"add it with client({alias!r})"
            )
        return spec


@dataclass(frozen=True, kw_only=True, init=False, repr=False)
class _SpecOfBackend(JobSpec):
    """A job for the queue of one backend; `dataclasses.replace` keeps that."""

    backend: str

    def __init__(self, *, backend: str, **options: Any) -> None:
        super().__init__(**options)
        object.__setattr__(self, "backend", backend)


def _queue_of(alias: str) -> tuple[str, str]:
    """Return the database and the schema of a backend."""
    settings = task_backends[alias].settings
    return settings.database, settings.schema


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _aware(time: datetime | None) -> datetime | None:
    """Return a time with a time zone; without `USE_TZ` Django's times have none."""
    return timezone.make_aware(time) if time is not None and timezone.is_naive(time) else time
