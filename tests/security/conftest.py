"""Databases and roles on the servers that matter for rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from uuid import uuid4

import psycopg
import pytest
from support import postgres_versions
from support.databases import Databases, Run, new_database, running_server

SERVERS = ("this", "12", *(pytest.param(each, marks=pytest.mark.slow) for each in ("15", "18")))
"""The one all tests use and the oldest; nightly also those of the reviews."""


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
def there(server_url: str, gw_run: Run, databases: Databases) -> Databases:
    """The databases of each server in turn."""
    return Databases(server_url, gw_run, databases.worker)


@pytest.fixture
def fresh_url(there: Databases) -> Iterator[str]:
    """A new empty database on each server in turn, in which every role may create objects in `public`."""
    with new_database(there) as url:
        yield url


@pytest.fixture
def installed(request: pytest.FixtureRequest, there: Databases, server_url: str, server: str) -> Iterator[str]:
    """The same with the newest schema."""
    template = there.made_template("this" if server_url == server else request.node.callspec.params["server_url"])
    with new_database(there, template) as url:
        yield url


@pytest.fixture
def intruder(server_url: str) -> Iterator[str]:
    """A role without any rights of its own; ask for it before the database, so that it is dropped after it."""
    name = f"schema_intruder_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login")
    yield name
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"drop role {name}")
