"""System checks of the schema, for `check --database` and `migrate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.core import checks

from gw_core.contrib.django.checks import about, problem
from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import graphile_backends
from gw_core.errors import GraphileWorkerError, SchemaTooNewError


def check_schemas(databases: Sequence[str] | None = None, **kwargs: Any) -> list[Any]:
    """Return what is wrong with the schemas in these databases."""
    chosen = [each for each in graphile_backends() if each.settings.database in (databases or ())]
    return [problem for backend in chosen for problem in _check_schema(backend)]


def _check_schema(backend: Any) -> Iterator[Any]:
    options = backend.settings
    try:
        with open_client(options.database, options.schema) as client:
            plan = client.migration_plan()
    except GraphileWorkerError as error:
        yield problem(_number_of(error), backend, f"the schema cannot be checked: {error}")
        return
    state = plan.state
    if unusable := state.migration_problem():
        yield problem(_number_of(unusable), backend, str(unusable))
    elif state.revision is None:
        # A warning, because an error would keep `migrate` from installing it.
        text = f"the schema {options.schema!r} does not exist in the database {options.database!r}"
        yield checks.Warning(
            about(backend, text), hint="run: manage.py migrate graphile_worker", id="graphile_worker.W011"
        )
    elif plan.steps:
        text = f"the schema {options.schema!r} is older than this version of gw"
        yield checks.Warning(about(backend, text), hint="run: manage.py gw migrate", id="graphile_worker.W010")


def _number_of(error: GraphileWorkerError) -> str:
    return "E011" if isinstance(error, SchemaTooNewError) else "E010"
