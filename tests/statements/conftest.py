"""What the tests of single statements share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from statements.statement_fixture import Queue


@pytest.fixture
def queue(shared_url: str) -> Iterator[Queue]:
    """A job store on a database with the newest schema and no rows, shared by the tests of a process."""
    with Queue(shared_url) as queue:
        yield queue.empty()
