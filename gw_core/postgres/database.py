"""How to reach the database, and the connections this process holds to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gw_core.domain.errors import InvalidSettingError, NoConnectionError
from gw_core.domain.manners import NO_MANNERS, SessionManners
from gw_core.postgres.translation import translated

if TYPE_CHECKING:
    from gw_core.embedded import EmbeddedServer

DEFAULT_SCHEMA: Final = "graphile_worker"
EMBEDDED_PREFIX: Final = "embedded:"

# A dead network is noticed in seconds and not after the kernel's two hours. What the user's string says wins.
PATIENCE: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

Connection = psycopg.Connection[tuple[Any, ...]]


def find_conninfo(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the connection string to use: the given one, `DATABASE_URL`, or libpq's own variables.

    Raises `NoConnectionError` when nothing names a database: a queue is never looked for silently.
    """
    if given:
        return given
    if environment.get("DATABASE_URL"):
        return environment["DATABASE_URL"]
    if any(environment.get(name) for name in ("PGDATABASE", "PGHOST", "PGSERVICE")):
        return ""
    raise NoConnectionError(
        "no database was named; give --connection postgres://…, set DATABASE_URL (or PGDATABASE, PGHOST), "
        "or use --connection embedded: for a PostgreSQL run for you in .gw/postgres"
    )


def described(conninfo: str) -> str:
    """Return where a connection string leads, without its password, for messages and logs."""
    if conninfo.startswith(EMBEDDED_PREFIX):
        return conninfo
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        return "(a connection string libpq cannot read)"
    shown = {key: parts[key] for key in ("user", "host", "port", "dbname") if parts.get(key)}
    return " ".join(f"{key}={value}" for key, value in shown.items()) or "libpq's defaults"


class Database:
    """One database and schema; opens connections, starts the embedded server when the string asks for it.

    `prepared_statements=False` is for poolers that hand a connection to another client after each transaction.
    Safe to use from several threads.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        application_name: str = "gw",
        prepared_statements: bool = True,
        pg_bin: Path | None = None,
        manners: SessionManners = NO_MANNERS,
    ) -> None:
        self.conninfo = conninfo
        self.schema = schema
        self.prepared_statements = prepared_statements
        self.manners = manners
        self._application_name = application_name
        self._pg_bin = pg_bin
        self._lock = threading.Lock()  # guards _server: two threads must not both start it
        self._server: EmbeddedServer | None = None

    def __repr__(self) -> str:
        return f"Database({described(self.conninfo)}, schema={self.schema!r})"

    def connect(self, role: str = "", settings: Mapping[str, str] | None = None) -> Connection:
        """Open a connection in autocommit mode; `role` is appended to its application name.

        `settings` are set for the session. Raises `DatabaseUnavailableError` or `AuthenticationError`.
        """
        with translated(self.schema):
            connection = psycopg.connect(self.libpq_conninfo(role), autocommit=True)
            try:
                self.prepare(connection)
                for name, value in (settings or {}).items():
                    connection.execute("select set_config(%s, %s, false)", (name, value))
            except psycopg.Error:
                connection.close()
                raise
        return connection

    def prepare(self, connection: Connection) -> None:
        """Give a fresh connection the manners this database asks for."""
        if not self.prepared_statements:
            connection.prepare_threshold = None
        if settings := self.manners.settings():
            connection.execute(
                "select set_config(wanted.name, wanted.value, false) "
                "from unnest(%s::text[], %s::text[]) as wanted (name, value)",
                (list(settings), list(settings.values())),
            )

    def libpq_conninfo(self, role: str = "") -> str:
        """Return the string for libpq, with patience and a telling application name; starts the embedded server."""
        conninfo = self._server_conninfo()
        try:
            given = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            # libpq quotes the string in its complaint, password included, so not even the cause is kept.
            raise InvalidSettingError(
                "the connection string cannot be read; write it like postgres://user@host/database or host=… dbname=…"
            ) from None
        with translated(self.schema):
            name = f"{self._application_name}:{role}" if role else self._application_name
            defaults: dict[str, Any] = {**PATIENCE, "application_name": name}
            if self.manners.connect_timeout is not None:
                defaults["connect_timeout"] = max(2, round(self.manners.connect_timeout.total_seconds()))
            return make_conninfo(conninfo, **{key: value for key, value in defaults.items() if key not in given})

    def close(self) -> None:
        """Leave the embedded server, if one was started; the last process to leave stops it."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _server_conninfo(self) -> str:
        if not self.conninfo.startswith(EMBEDDED_PREFIX):
            return self.conninfo
        from gw_core.embedded import start_or_attach  # imported late: most programs bring their own server

        with self._lock:
            if self._server is None:
                self._server = start_or_attach(self.conninfo, pg_bin=self._pg_bin)
            return self._server.conninfo


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Run the block in one transaction of `connection` (a savepoint inside the caller's own)."""
    with translated(), connection.transaction():
        yield
