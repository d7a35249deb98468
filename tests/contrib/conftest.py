"""What the tests of the integrations share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.queue_fixture import QueueFixture

# A project of its own: a test runs its checks in a process with its settings.
collect_ignore = ["django_project"]


@pytest.fixture(scope="session")
def contrib_url(databases: Any, template: str) -> Iterator[str]:
    """One database for these tests, emptied before each."""
    name = f"{databases.run.prefix}{databases.worker}_contrib"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(contrib_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(contrib_url)
    site.run(
        "truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs, _private_gw_workers"
    )
    yield site
    site.close()
