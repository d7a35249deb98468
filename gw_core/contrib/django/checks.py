"""System checks of the schema, for `check --database` and `migrate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import graphile_backends
from gw_core.errors import GraphileWorkerError, SchemaTooNewError


def check_schemas(databases: Sequence[str] | None = None, **kwargs: Any) -> list[Any]:
    """Return what is wrong with the schemas in these databases."""
    chosen = [each for each in graphile_backends() if each.settings.database in (databases or ())]
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
    if unusable := state.migration_problem():
        yield backend.problem(_number_of(unusable), str(unusable))
    elif state.revision is None:
        # A warning, because an error would keep `migrate` from installing it.
        text = f"the schema {options.schema!r} does not exist in the database {options.database!r}"
        yield backend.problem("W011", text, "run: manage.py migrate graphile_worker")
    elif plan.steps:
        text = f"the schema {options.schema!r} is older than this version of gw"
        yield backend.problem("W010", text, "run: manage.py gw migrate")


def _number_of(error: GraphileWorkerError) -> str:
    return "E011" if isinstance(error, SchemaTooNewError) else "E010"
