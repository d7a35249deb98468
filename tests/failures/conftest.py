"""What the tests of failures share with those of pools and runners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.pgbouncer import PgBouncer, bouncer_program
from support.queue_fixture import QueueFixture


@pytest.fixture(scope="session")
def failures_url(databases: Any, template: str) -> Iterator[str]:
    """One database for the tests that leave it as they found it, emptied before each."""
    name = f"{databases.run.prefix}{databases.worker}_trouble"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(failures_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(failures_url)
    site.run(
        "truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs"
        ", _private_gw_cancellations, _private_gw_workers"
    )
    yield site
    site.close()


@pytest.fixture
def own_site(database_url: str) -> Iterator[QueueFixture]:
    """A database of the test's own with the newest schema and nothing in it."""
    site = QueueFixture(database_url)
    yield site
    site.close()


@pytest.fixture
def bouncer(site: QueueFixture) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode before that database."""
    with PgBouncer(site.url, bouncer_program(), mode="transaction") as bouncer:
        yield bouncer


@pytest.fixture
def session_bouncer(site: QueueFixture) -> Iterator[PgBouncer]:
    """A PgBouncer in session mode before that database."""
    with PgBouncer(site.url, bouncer_program(), mode="session") as bouncer:
        yield bouncer
