"""System checks of a backend's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

APP = "gw_core.contrib.django"


def check_backend(backend: Any) -> Iterator[Any]:
    """Yield what is wrong with the settings of one backend."""
    if not apps.is_installed(APP):
        yield problem("E001", backend, f"{APP} is not in INSTALLED_APPS", f"add {APP!r}, which has the migration")
    try:
        alias = backend.settings.database
    except ImproperlyConfigured as error:
        yield problem("E003", backend, f"OPTIONS are invalid: {error}")
        return
    if alias not in connections:
        yield problem("E002", backend, f"the database {alias!r} is not in DATABASES")
    elif connections[alias].vendor != "postgresql":
        yield problem("E002", backend, f"the database {alias!r} is not PostgreSQL, but {connections[alias].vendor}")
    if not backend.queues:
        text = "QUEUES is empty, so that tasks of any queue name share one lane"
        yield checks.Warning(about(backend, text), hint="list the names in QUEUES", id="graphile_worker.W001")


def problem(number: str, backend: Any, text: str, hint: str | None = None) -> Any:
    """Return an error about a backend."""
    return checks.Error(about(backend, text), hint=hint, id=f"graphile_worker.{number}")


def about(backend: Any, text: str) -> str:
    """Return the text with the name of the backend."""
    return f"TASKS[{backend.alias!r}]: {text}."
