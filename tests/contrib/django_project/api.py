"""The API of tasks, wherever this Django has it."""

from importlib.util import find_spec

import django

IS_DJANGO_6_0 = django.VERSION[:2] == (6, 0)

if find_spec("django.tasks") is not None:
    from django.tasks import TaskResultStatus, task, task_backends
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
else:
    from django_tasks import TaskResultStatus, task, task_backends
    from django_tasks.exceptions import (
        InvalidTaskError as InvalidTask,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django_tasks.signals import task_enqueued, task_finished, task_started

__all__ = [
    "IS_DJANGO_6_0",
    "InvalidTask",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "task",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
