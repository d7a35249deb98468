"""The last steps of `migrate`, after Django's own: install or upgrade the schemas, and set the limits of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from django.core.management import CommandError
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from gw_core import Client, Selection
from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import graphile_backends, queues
from gw_core.errors import GraphileWorkerError, SchemaMissingError
from gw_core.operations import TaskLimit

LABEL: Final = "graphile_worker"
AUTHOR: Final = "manage.py migrate"
"""Who has set the limits that tasks declare; a limit that an operator has set stays as it is."""


def after_migrate(using: str, **kwargs: Any) -> None:
    """Receive `post_migrate`, which Django also sends after a `flush` that a person has confirmed."""
    if "plan" not in kwargs:
        if kwargs["interactive"]:
            delete_jobs(using)
    elif is_migrated(using):
        for alias, schema in queues():
            if alias == using:
                _upgrade(alias, schema)
        for backend in graphile_backends():
            if backend.settings.database == using:
                _set_limits(backend)


def delete_jobs(using: str) -> None:
    """Delete the jobs of all queues in a database."""
    for alias, schema in queues():
        if alias == using:
            with suppress(SchemaMissingError), open_client(alias, schema, conn=lambda: connections[using]) as client:
                client.jobs.complete(Selection())


def is_migrated(database: str) -> bool:
    """Return whether the app's migration is applied, or the project runs without migrations."""
    if MigrationLoader.migrations_module(LABEL)[0] is None:
        return True
    return any(app == LABEL for app, _ in MigrationRecorder(connections[database]).applied_migrations())


def _upgrade(alias: str, schema: str) -> None:
    try:
        with open_client(alias, schema) as client:
            plan = client.migration_plan()
            if plan.steps and plan.state.migration_problem() is None:
                client.migrate()
    except GraphileWorkerError as error:
        raise CommandError(f"the schema {schema!r} of the queue cannot be upgraded: {error}") from error


def _set_limits(backend: Any) -> None:
    from gw_core.contrib.django.worker import limits_of

    try:
        declared = limits_of(backend)
    except Exception:  # noqa: BLE001 - a module with tasks that cannot be imported is found by `check`
        return
    with open_client(backend.settings.database, backend.settings.schema) as client:
        _apply(client, declared)


def _apply(client: Client, declared: Mapping[str, TaskLimit]) -> None:
    known = {each.task: each for each in client.limits.list()}
    for task, limit in declared.items():
        if task not in known or (known[task].set_by == AUTHOR and _values(known[task]) != _values(limit)):
            client.limits.set(task, **_values(limit), by=AUTHOR, timeout=0)
    for task, found in known.items():
        if found.set_by == AUTHOR and task not in declared:
            client.limits.remove(task, by=AUTHOR, timeout=0)


def _values(limit: TaskLimit) -> dict[str, Any]:
    return {name: getattr(limit, name) for name in ("running", "per_period", "period", "burst", "field")}
