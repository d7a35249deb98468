"""What the tests of recovery share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.recovery_fixture import RecoveryFixture


@pytest.fixture
def ward(shared_url: str) -> Iterator[RecoveryFixture]:
    """A database with the newest schema and nothing in it."""
    with RecoveryFixture(shared_url) as ward:
        yield ward.empty()


@pytest.fixture
def own_ward(database_url: str) -> Iterator[RecoveryFixture]:
    """The same in a database of the test's own, for tests that change its schema."""
    with RecoveryFixture(database_url) as ward:
        yield ward
