"""A database for tests: newly created, with the schema, and emptied between tests."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gw_core.postgres.connection.database import (
    CONNECTION_TIMEOUTS,
    DEFAULT_SCHEMA,
    TASK_ROLE,
    Connection,
    Database,
    find_conninfo,
)
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.schema.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS: Final = {*CONNECTION_TIMEOUTS, "application_name", "client_encoding"}
_TABLES: Final = """
select format('delete from %%I.%%I', schemaname, tablename) from pg_catalog.pg_tables
 where schemaname = %s and starts_with(tablename, '_private_') and tablename not like '%%migrations'
 order by tablename = '_private_tasks', tablename
"""


class ScratchDatabase:
    """A new database on the server that a connection string names; the role must have the right to create one.

    Example: docs/api/testing.md
    """

    def __init__(self, conninfo: str | None, *, suffix: str, schema: str = DEFAULT_SCHEMA) -> None:
        self.schema = schema
        self._server = Database(find_conninfo(conninfo), schema=schema)  # keeps an embedded server running
        parameters = conninfo_to_dict(self._server.libpq_conninfo())
        self.name = f"{parameters.get('dbname') or 'postgres'}_{suffix}"
        self.conninfo = make_conninfo(self._server.libpq_conninfo(), dbname=self.name)

    @property
    def url(self) -> str:
        """The database as a URL, without settings of gw's."""
        parameters = conninfo_to_dict(self.conninfo).items()
        given = {key: value for key, value in parameters if key not in _OURS and key != "dbname" and value}
        return f"postgresql:///{quote(self.name)}?{urlencode(given)}"

    def create(self) -> None:
        """Create the database, instead of one that is left from another run, and install the schema."""
        with self._connected() as connection:
            self._drop(connection)
            connection.execute(sql.SQL("create database {} template template0").format(sql.Identifier(self.name)))
        database = Database(self.conninfo, schema=self.schema)
        migrate(database, self.schema)

    def empty(self, connection: Connection) -> None:
        """Delete all jobs, tasks, queues, workers and schedules, and what gw keeps beside them."""
        with translated(self.schema), connection.transaction():
            for [statement] in connection.execute(_TABLES, (self.schema,)).fetchall():
                connection.execute(statement)

    def connect(self) -> Connection:
        """Open a connection to the database, in autocommit mode, as tasks have it."""
        return Database(self.conninfo, schema=self.schema).connect(TASK_ROLE)

    def drop(self) -> None:
        """Disconnect all sessions, drop the database and leave the embedded server, if there is one."""
        with self._connected() as connection:
            self._drop(connection)
        self._server.close()

    def _drop(self, connection: Connection) -> None:
        # PostgreSQL 12 has no `drop database … with (force)`.
        others = "select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where datname = %s"
        connection.execute(others, (self.name,))
        connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(self.name)))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with translated(self.schema), psycopg.connect(self._server.libpq_conninfo(), autocommit=True) as connection:
            yield connection
