"""What the tests of recurring tasks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crontab_support import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A database with the newest schema, and a clock."""
    world = World(database_url)
    yield world
    world.close()
