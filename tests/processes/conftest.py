"""What the tests of several processes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture(scope="session")
def processes_url(databases: Any, template: str) -> Iterator[str]:
    """One database for these tests, emptied before each."""
    name = f"{databases.run.prefix}{databases.worker}_processes"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(processes_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(processes_url)
    site.run(
        "truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs, _private_gw_workers"
    )
    yield site
    site.close()
