"""Connect to the database of an alias outside Django's own connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import connections

from gw_core import Client
from gw_core.errors import InvalidSettingError

_OF_DJANGO: Final = ("cursor_factory", "context", "prepare_threshold", "isolation_level")
"""Parameters of psycopg that libpq does not know."""


def conninfo_of(alias: str) -> str:
    """Return the libpq connection string of a database alias, as Django itself connects to it.

    Raises `InvalidSettingError` if there is no such alias, or its database is another one than PostgreSQL.
    """
    if problem := problem_of(alias):
        raise InvalidSettingError(problem)
    wrapper = connections[alias]
    parameters = {
        name: value for name, value in wrapper.get_connection_params().items() if name not in _OF_DJANGO and value != ""
    }
    role = wrapper.settings_dict["OPTIONS"].get("assume_role")
    if role:
        parameters["options"] = f"{parameters.get('options', '')} -c role={role}".strip()
    return _conninfo({"dbname" if name == "database" else name: value for name, value in parameters.items()})


def problem_of(alias: str) -> str | None:
    """Return why a database alias cannot have a queue."""
    if alias not in connections:
        return f"the database {alias!r} is not in DATABASES"
    vendor = connections[alias].vendor
    return None if vendor == "postgresql" else f"the database {alias!r} is not PostgreSQL, but {vendor}"


def open_client(alias: str, schema: str, **options: Any) -> Client:
    """Return a client with a connection of its own; it is opened when needed, and closed with the client."""
    return Client(conninfo_of(alias), schema=schema, max_pool_size=1, **options)


def _conninfo(parameters: Mapping[str, Any]) -> str:
    return " ".join(f"{name}='{_escaped(str(value))}'" for name, value in parameters.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
