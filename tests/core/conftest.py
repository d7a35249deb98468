"""What the tests of pools, runners and clients share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture(scope="session")
def core_url(databases: Any, template: str) -> Iterator[str]:
    """One database for most of these tests, emptied before each: a clone for each would take most of their time."""
    name = f"{databases.run.prefix}{databases.worker}_core"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(core_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(core_url)
    site.run("truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs")
    site.run("truncate _private_gw_pauses, _private_gw_limits, _private_gw_buckets")
    site.run("truncate _private_gw_claim_rules, _private_gw_workers")
    site.run("truncate _private_gw_waiting, _private_gw_edges")
    yield site
    site.close()


@pytest.fixture
def own_site(database_url: str) -> Iterator[QueueFixture]:
    """The same in a database of the test's own, for tests that harm it."""
    site = QueueFixture(database_url)
    yield site
    site.close()
