"""Open a client for the configured database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gw_cli.password import password_source
from gw_cli.settings import Configuration, table
from gw_cli.settings.used_connections import remember_use

if TYPE_CHECKING:
    from gw_core import Client


def open_client(configuration: Configuration) -> Client:
    """Return a client for the configured database; use it as a context manager."""
    from gw_core import Client  # late: it imports the database driver

    remember_use(configuration)
    return Client(
        configuration[table.CONNECTION],
        schema=configuration[table.SCHEMA],
        prepared_statements=configuration[table.PREPARED_STATEMENTS],
        max_pool_size=1,
        pg_bin=configuration[table.PG_BIN],
        password=password_source(configuration),
    )


def open_to_read(configuration: Configuration) -> Client:
    """Return a client like `open_client`, after checking that row security does not hide the queue."""
    client = open_client(configuration)
    return _checked(client, client.check_visible)


def open_to_change(configuration: Configuration) -> Client:
    """Return a client like `open_client`, after checking that this version supports the schema."""
    client = open_client(configuration)
    return _checked(client, client.check_schema)


def _checked(client: Client, check: Callable[[], None]) -> Client:
    try:
        check()
    except BaseException:
        client.close()
        raise
    return client
