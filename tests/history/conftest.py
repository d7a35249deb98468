"""What the tests of history share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture
def site(site: QueueFixture) -> QueueFixture:
    """The shared database without the partitions of tests before."""
    site.drop_history_partitions()
    return site


@pytest.fixture
def intruder(site: QueueFixture) -> Iterator[str]:
    """Return the name of an operator none of whose actions can be recorded."""
    site.run("alter table _private_gw_actions add constraint intruder check (by <> 'intruder')")
    try:
        yield "intruder"
    finally:
        site.run("alter table _private_gw_actions drop constraint intruder")
