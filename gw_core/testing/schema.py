"""Install the schema in a test database."""

from __future__ import annotations

from gw_core import synchronous


def install(conn: object, *, schema: str = synchronous.DEFAULT_SCHEMA) -> None:
    """Install the schema in the database that `conn` leads to, or upgrade it.

    This uses a second connection and commits, so one call per test database is enough. `conn` is what `drain` takes.
    """
    synchronous.install(conn, schema)
