"""The Django app, which has the migration, the checks, the command and the admin page."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db.models.signals import post_migrate

from gw_core.contrib.django.discovery import has_tasks


class GraphileWorkerConfig(AppConfig):
    """The app `gw_core.contrib.django`."""

    name = "gw_core.contrib.django"
    label = "graphile_worker"
    verbose_name = "Graphile Worker"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks that are not a backend's own, and what `migrate` does at its end."""
        from gw_core.contrib.django.upgrade import after_migrate

        post_migrate.connect(after_migrate, sender=self)
        if not has_tasks():
            checks.register(check_tasks_are_installed)
            return
        if find_spec("django.tasks") is not None:
            import_module(
                "django.tasks.checks"
            )  # which Django itself does not import; it registers the backends' checks
        from gw_core.contrib.django.checks import check_schemas

        checks.register(check_schemas, checks.Tags.database)


def check_tasks_are_installed(**kwargs: Any) -> list[Any]:
    """Return an error if `TASKS` is set and this Django has no tasks."""
    if not hasattr(settings, "TASKS"):
        return []
    text = "TASKS is set, but this version of Django has no tasks."
    hint = "install django-tasks and add django_tasks to INSTALLED_APPS, or upgrade to Django 6"
    return [checks.Error(text, hint=hint, id="graphile_worker.E004")]
