"""Databases on the servers that matter for rights: the one all tests use, and PostgreSQL 12."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from support import postgres_versions
from support.databases import Databases, Run, running_server

NUMBERS = count(1)
SERVERS = ("this", "12")


@pytest.fixture(scope="session")
def old_server(gw_run: Run) -> Iterator[str]:
    """The conninfo of a PostgreSQL 12, which all processes of the run share; the last to leave stops it."""
    with running_server(gw_run.folder / "postgres12", pg_bin=postgres_versions.programs("12")) as conninfo:
        yield conninfo


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest) -> str:
    """The conninfo of each server in turn."""
    name = "server" if request.param == "this" else "old_server"
    return str(request.getfixturevalue(name))


@pytest.fixture
def fresh_url(server_url: str, gw_run: Run, databases: Databases) -> Iterator[str]:
    """A new empty database on each server in turn, in which every role may create objects in `public`."""
    there = Databases(server_url, gw_run, databases.worker)
    name = f"{gw_run.prefix}{databases.worker}_security_{next(NUMBERS)}"
    there.create(name)
    try:
        with psycopg.connect(there.url(name), autocommit=True) as connection:
            connection.execute("grant create, usage on schema public to public")
        yield there.url(name)
    finally:
        there.drop(name)
