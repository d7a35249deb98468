"""What most commands begin with: the configuration of this process, and a client made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gw_cli import config_file, configuration as c, stderr

if TYPE_CHECKING:
    from gw_core import Client


def configured(config: str | None = None, **flags: object) -> c.Configuration:
    """Return every setting, from the flags given (named like the settings), the environment and the file."""
    configuration = looked_up(config, flags)
    config_file.remember_use(configuration)
    return configuration


def looked_up(
    config: str | None = None,
    flags: Mapping[str, object] | None = None,
    *,
    say: Callable[[str], None] = stderr.note,
) -> c.Configuration:
    """Return every setting, without noting that the connection is used; `say` is called as by `config_file.find`."""
    named = {name.replace("_", "-"): value for name, value in (flags or {}).items()}
    return c.resolve(sources(config, named, say=say))


def sources(config: str | None, flags: Mapping[str, object], *, say: Callable[[str], None] = stderr.note) -> c.Sources:
    """Return where the values of this process may come from."""
    folder = Path.cwd()
    file = config_file.find(config or os.environ.get("GW_CONFIG") or None, folder, say=say)
    return c.Sources(flags=flags, environment=os.environ, file=file, folder=folder)


def open_client(configuration: c.Configuration) -> Client:
    """Return a client for the configured database; use it as a context manager."""
    from gw_core import Client  # late: it brings the database driver

    return Client(
        configuration[c.CONNECTION],
        schema=configuration[c.SCHEMA],
        prepared_statements=configuration[c.PREPARED_STATEMENTS],
        max_pool_size=1,
        pg_bin=configuration[c.PG_BIN],
    )


def open_to_look(configuration: c.Configuration) -> Client:
    """Return a client as `open_client` does, once it is sure that row security does not hide the queue."""
    client = open_client(configuration)
    try:
        client.check_visible()
    except BaseException:
        client.close()
        raise
    return client


def open_to_change(configuration: c.Configuration) -> Client:
    """Return a client as `open_client` does, once it is sure that this version understands the schema."""
    client = open_client(configuration)
    try:
        client.check_schema()
    except BaseException:
        client.close()
        raise
    return client
