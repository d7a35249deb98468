"""System checks of the schema, for `check --database` and `migrate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS

from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import graphile_backends
from gw_core.contrib.django.upgrade import is_migrated
from gw_core.errors import GraphileWorkerError
from gw_core.front_ends import SchemaTooNewError


def check_schemas(databases: Sequence[str] | None = None, **kwargs: Any) -> list[Any]:
    """Return what is wrong with the schemas in these databases."""
    chosen = [each for each in graphile_backends() if _database_of(each) in (databases or ())]
    return [found for backend in chosen for found in _check_schema(backend)]


def _check_schema(backend: Any) -> Iterator[Any]:
    options = backend.settings
    try:
        with open_client(options.database, options.schema) as client:
            plan = client.migration_plan()
    except GraphileWorkerError as error:
        yield backend.problem(_number_of(error), f"the schema cannot be checked: {error}")
        return
    state = plan.state
    if unusable := state.migration_problem() or state.visibility_problem():
        yield backend.problem(_number_of(unusable), str(unusable))
    elif state.revision is None and not is_migrated(options.database):
        return  # the command `migrate` runs this check before it installs the schema
    elif state.revision is None:
        # A warning, because an error would keep `migrate` from running.
        text = f"the schema {options.schema!r} does not exist in the database {options.database!r}"
        yield backend.problem("W011", text, _command(options.database))
    elif plan.steps:
        text = f"the schema {options.schema!r} is older than this version of gw"
        yield backend.problem("W010", text, _command(options.database))


def _command(database: str) -> str:
    return "run: manage.py migrate" + ("" if database == DEFAULT_DB_ALIAS else f" --database {database}")


def _database_of(backend: Any) -> str | None:
    """Return the database alias of a backend; None if its options are invalid, which its own check reports."""
    try:
        alias: str = backend.settings.database
    except ImproperlyConfigured:
        return None
    return alias


def _number_of(error: GraphileWorkerError) -> str:
    return "E011" if isinstance(error, SchemaTooNewError) else "E010"
