"""What the tests of single statements share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from statements.statement_fixture import Queue


@pytest.fixture(scope="session")
def statements_url(databases: Any, template: str) -> Iterator[str]:
    """One database for all these tests, emptied before each: a clone for each would take most of their time."""
    name = f"{databases.run.prefix}{databases.worker}_statements"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def queue(statements_url: str) -> Iterator[Queue]:
    """A job store on a database with the newest schema and no rows, shared by the tests of a process."""
    queue = Queue(statements_url)
    queue.run("truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs")
    yield queue
    queue.run("alter table _private_jobs drop constraint if exists calm")
    queue.close()
