"""Find the backends of `TASKS` that are ours, and the queues they use."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from gw_core.contrib.django.options import Options

DEFAULTS: Final = Options()


def has_tasks() -> bool:
    """Return whether there is an API for tasks: Django 6, or the package django-tasks."""
    return find_spec("django.tasks") is not None or find_spec("django_tasks") is not None


def graphile_backends() -> list[Any]:
    """Return our backends, by alias."""
    if not has_tasks():
        return []
    from gw_core.contrib.django.backend import GraphileWorkerBackend
    from gw_core.contrib.django.compat import task_backends

    found = [task_backends[alias] for alias in sorted(task_backends.settings)]
    return [each for each in found if isinstance(each, GraphileWorkerBackend)]


def queues() -> list[tuple[str, str]]:
    """Return (database alias, schema) of every backend, or the default ones when there is no backend of ours."""
    found = {(each.settings.database, each.settings.schema) for each in graphile_backends()}
    return sorted(found) or [(DEFAULTS.database, DEFAULTS.schema)]
