"""Fixtures for pytest. The plugin is installed with the package; nothing happens until a test asks for a fixture."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Imported late: a run that uses none of the fixtures loads nothing of gw, and coverage sees what is loaded.
if TYPE_CHECKING:
    from gw_core import Client, TaskRegistry
    from gw_core.testing import DrainResult, Queue, ScratchDatabase


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings of the configuration file."""
    server = "connection string for the fixture gw (default: DATABASE_URL, or an embedded server)"
    parser.addini("gw_database", server, type="string", default="")
    parser.addini("gw_tasks", "the task registry for the fixtures, as module:attribute", type="string", default="")
    aliases = "aliases of Django's databases to install the schema graphile_worker in"
    parser.addini("gw_django_databases", aliases, type="args", default=[])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Install the schema in Django's test databases as soon as pytest-django has created them."""
    result = yield
    aliases = request.config.getini("gw_django_databases")
    if fixturedef.argname == "django_db_setup" and aliases:
        from django.db import connections

        from gw_core.testing import install

        with request.getfixturevalue("django_db_blocker").unblock():
            for alias in aliases:
                install(connections[alias])
    return result


@pytest.fixture(scope="session")
def gw_database(request: pytest.FixtureRequest) -> Iterator[ScratchDatabase]:
    """A database with the schema, of this process alone: each xdist worker has one."""
    from gw_core.testing import ScratchDatabase

    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    database = ScratchDatabase(_server(request.config), suffix=f"gw_{worker}")
    database.create()
    yield database
    database.drop()


def _server(config: pytest.Config) -> str:
    """Return the connection string of the server: as configured, `DATABASE_URL`, or an embedded server."""
    given = str(config.getini("gw_database") or os.environ.get("DATABASE_URL", ""))
    if given:
        return given
    cache = config.cache
    # The folder stays: the next run starts the server that is there, in a fraction of the time.
    folder = config.rootpath / ".gw" / "test" if cache is None else Path(cache.mkdir("gw-postgres"))
    return f"embedded://{folder}"


@pytest.fixture
def gw_tasks(request: pytest.FixtureRequest) -> TaskRegistry:
    """The task registry: the one that the setting `gw_tasks` names, or an empty one for the test to fill."""
    from gw_core import TaskRegistry
    from gw_core.front_ends import load_app

    given = request.config.getini("gw_tasks")
    return load_app(given) if given else TaskRegistry()


@pytest.fixture
def gw(gw_database: ScratchDatabase, gw_tasks: TaskRegistry) -> Iterator[Queue]:
    """An empty queue with a client, a clock and assertions; see `gw_core.testing.Queue`."""
    from gw_core.testing import Queue

    queue = Queue(gw_database, gw_tasks)
    yield queue
    queue.close()


@pytest.fixture
def gw_client(gw: Queue) -> Client:
    """A client for the queue of `gw`."""
    return gw.client


@pytest.fixture
def gw_drain(gw_tasks: TaskRegistry) -> Callable[..., DrainResult]:
    """`gw_core.testing.drain` with the tasks of `gw_tasks`: `gw_drain(connection)` in a test's transaction."""
    from functools import partial

    from gw_core.testing import drain

    return partial(drain, tasks=gw_tasks)
