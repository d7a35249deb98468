"""The queue in which workers of Node.js and ours run jobs side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mixed_workers import MixedQueue


@pytest.fixture
def site(database_url: str) -> Iterator[MixedQueue]:
    with MixedQueue(database_url) as site:
        yield site
