"""What the tests of recovery share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.recovery_fixture import RecoveryFixture


@pytest.fixture(scope="session")
def recovery_url(databases: Any, template: str) -> Iterator[str]:
    """One database for most of these tests, emptied before each: a clone for each would take most of their time."""
    name = f"{databases.run.prefix}{databases.worker}_recovery"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def ward(recovery_url: str) -> Iterator[RecoveryFixture]:
    """A database with the newest schema and nothing in it."""
    ward = RecoveryFixture(recovery_url)
    ward.run(
        "truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs, _private_gw_workers,"
        " _private_gw_pauses, _private_gw_claim_rules"
    )
    yield ward
    ward.close()


@pytest.fixture
def own_ward(database_url: str) -> Iterator[RecoveryFixture]:
    """The same in a database of the test's own, for tests that change its schema."""
    ward = RecoveryFixture(database_url)
    yield ward
    ward.close()
