"""Find the backends of `TASKS` that are ours, and the queues they use."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from gw_core.contrib.django.backend_settings import Options
from gw_core.contrib.django.connection import problem_of

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
    """Return (database alias, schema) of every backend, or the default ones when there is no backend of ours.

    Tests that use another backend may also use another database: then there is no queue.
    """
    found = {(each.settings.database, each.settings.schema) for each in graphile_backends()}
    if found or problem_of(DEFAULTS.database):
        return sorted(found)
    return [(DEFAULTS.database, DEFAULTS.schema)]


def queue_of(alias: str | None = None) -> tuple[str, str]:
    """Return (database alias, schema) of a backend; without an alias of `default`, or else of the first one."""
    found = {each.alias: each.settings for each in graphile_backends()}
    if alias is not None:
        return found[alias].database, found[alias].schema
    settings = found.get("default") or next(iter(found.values()), DEFAULTS)
    return settings.database, settings.schema
