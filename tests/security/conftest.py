"""Databases and roles on the servers that matter for rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import count
from uuid import uuid4

import psycopg
import pytest
from support import postgres_versions
from support.databases import Databases, Run, running_server

NUMBERS = count(1)
SERVERS = ("this", "12")
"""The one all tests use, and the oldest. Parametrize `server_url` indirectly for others, by their major versions."""


@pytest.fixture(scope="session")
def server_of(gw_run: Run, server: str) -> Iterator[Callable[[str], str]]:
    """Return the conninfo of a server by its major version; all processes of the run share it."""
    with psycopg.connect(server) as connection:
        this = str(connection.info.server_version // 10_000)
    with ExitStack() as running:

        @cache
        def conninfo(major: str) -> str:
            if major in ("this", this):
                return server
            folder = gw_run.folder / f"postgres{major}"
            return running.enter_context(running_server(folder, pg_bin=postgres_versions.programs(major)))

        yield conninfo


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest, server_of: Callable[[str], str]) -> str:
    """The conninfo of each server in turn."""
    return server_of(request.param)


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


@pytest.fixture
def intruder(server_url: str) -> Iterator[str]:
    """A role without any rights of its own; ask for it before the database, so that it is dropped after it."""
    name = f"schema_intruder_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login")
    yield name
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"drop role {name}")
