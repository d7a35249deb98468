"""A schema at our newest state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from queue_schema import QueueSchema, connected


@pytest.fixture
def schema(database_url: str) -> Iterator[QueueSchema]:
    with connected(database_url) as schema:
        yield schema
