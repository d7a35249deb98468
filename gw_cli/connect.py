"""Open a client for the configured database, with the password that a command prints where passwords change."""

from __future__ import annotations

import logging
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gw_cli import stderr
from gw_cli.settings import Configuration, table
from gw_cli.settings.used_connections import remember_use
from gw_core.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    from gw_core import Client

PASSWORD_SECONDS: Final = 30.0
"""How long the command for a password may take."""


def open_client(configuration: Configuration, **options: Any) -> Client:
    """Return a client for the configured database, with more options of it; use it as a context manager."""
    from gw_core import Client  # late: it imports the database driver

    remember_use(configuration)
    # Without a handler its warnings would go to stderr, for example about a statement that Ctrl-C cancels.
    if not (log := logging.getLogger("psycopg")).hasHandlers():
        log.addHandler(logging.NullHandler())
    return Client(
        configuration[table.CONNECTION],
        schema=configuration[table.SCHEMA],
        prepared_statements=configuration[table.PREPARED_STATEMENTS],
        pg_bin=configuration[table.PG_BIN],
        password=password_source(configuration),
        **{"max_pool_size": 1, **options},
    )


@contextmanager
def open_to_change(configuration: Configuration, kind: str = "operator") -> Iterator[Client]:
    """Provide a client like that of `open_client`, after checking that this version supports the schema.

    `kind` is the kind of role that the command needs. If the connection is lost, a note admits that the change may
    be done: a script that repeats it would otherwise add its job twice.
    """
    with open_client(configuration) as client:
        client.check_schema(kind)
        try:
            yield client
        except DatabaseUnavailableError:
            stderr.note("The last change may be done, because the connection was lost; check before you repeat it.")
            raise


def password_source(configuration: Configuration) -> Callable[[], str] | None:
    """Return what runs the command for passwords and returns the first line it prints; None without a command."""
    command: str | None = configuration[table.PASSWORD_COMMAND]
    return None if command is None else lambda: _printed(command)


def _printed(command: str) -> str:
    words = shlex.split(command)
    done = subprocess.run(  # noqa: S603 - the command is the user's own setting
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=PASSWORD_SECONDS, check=True
    )
    return done.stdout.partition("\n")[0]
