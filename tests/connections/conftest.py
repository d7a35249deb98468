"""Every kind of connection that a caller may pass as `conn`, opened as its users open it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from connections.kinds import AUTOCOMMIT_KINDS, KINDS, CallersTransaction, Kind
from psycopg.rows import TupleRow
from support import spare_sessions
from support.databases import Databases
from support.program_fixtures import relaxed_timeouts as relaxed_timeouts


@pytest.fixture(scope="session")
def calm_database(databases: Databases, template: str) -> Iterator[str]:
    """A database that rejects jobs of the priority -10."""
    name = f"{databases.run.prefix}{databases.worker}_calm"
    databases.create(name, template=template)
    with psycopg.connect(databases.url(name)) as connection:
        connection.execute("alter table graphile_worker._private_jobs add constraint calm check (priority > -10)")
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def calm_url(calm_database: str) -> Iterator[str]:
    """That database, without jobs: a new one for each test would take most of the time."""
    yield calm_database
    with spare_sessions.borrowed(calm_database) as session:
        session.execute("delete from graphile_worker._private_jobs")
        session.execute("delete from graphile_worker._private_job_queues")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def callers(request: pytest.FixtureRequest, calm_url: str) -> Iterator[CallersTransaction]:
    """A transaction of the caller's, with each kind of connection in turn."""
    yield from _opened(request.param, calm_url)


@pytest.fixture(params=AUTOCOMMIT_KINDS, ids=lambda kind: kind.name)
def autocommit(request: pytest.FixtureRequest, calm_url: str) -> Iterator[CallersTransaction]:
    """A connection that commits each statement, of each kind in turn."""
    yield from _opened(request.param, calm_url)


def _opened(kind: Kind, url: str) -> Iterator[CallersTransaction]:
    for module in kind.needs:
        pytest.importorskip(module)
    with kind.open(url) as callers:
        yield callers


@pytest.fixture
def outside(calm_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Another session, which sees what is committed."""
    with psycopg.connect(calm_url, autocommit=True) as connection:
        yield connection
