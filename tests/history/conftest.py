"""What the tests of history share."""

from __future__ import annotations

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture
def site(site: QueueFixture) -> QueueFixture:
    """The shared database without the partitions of tests before."""
    site.drop_history_partitions()
    return site
