"""The names of Django's tasks: from `django.tasks` (Django 6), or else from the package django-tasks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

IS_PACKAGE: Final = find_spec("django.tasks") is None
"""Whether the tasks come from the package django-tasks, which is an app of its own."""

_NAME: Final = "django_tasks" if IS_PACKAGE else "django.tasks"
_base: Final = import_module(f"{_NAME}.base")
_exceptions: Final = import_module(f"{_NAME}.exceptions")
_signals: Final = import_module(f"{_NAME}.signals")

task_backends = import_module(_NAME).task_backends
BaseTaskBackend = import_module(f"{_NAME}.backends.base").BaseTaskBackend
normalize_json = import_module("django_tasks.utils" if IS_PACKAGE else "django.utils.json").normalize_json

Task, TaskContext, TaskError = _base.Task, _base.TaskContext, _base.TaskError
TaskResult, TaskResultStatus = _base.TaskResult, _base.TaskResultStatus

InvalidTask = _exceptions.InvalidTaskError if IS_PACKAGE else _exceptions.InvalidTask
TaskResultDoesNotExist = _exceptions.TaskResultDoesNotExist

logger, log_task_started, log_task_finished = _signals.logger, _signals.log_task_started, _signals.log_task_finished
task_enqueued, task_started, task_finished = _signals.task_enqueued, _signals.task_started, _signals.task_finished
