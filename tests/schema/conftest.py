"""A schema at our newest state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.schema_fixture import SchemaFixture, connected


@pytest.fixture
def schema(database_url: str) -> Iterator[SchemaFixture]:
    with connected(database_url) as schema:
        yield schema
