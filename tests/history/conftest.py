"""What the tests of history share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture(scope="session")
def history_url(databases: Any, template: str) -> Iterator[str]:
    """One database for all these tests, emptied before each."""
    name = f"{databases.run.prefix}{databases.worker}_history"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(history_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(history_url)
    site.run("truncate _private_jobs, _private_job_queues, _private_tasks, _private_gw_workers, _private_gw_history")
    yield site
    site.close()
