"""What the tests of acting and keeping share: a queue to act on, and the program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.jobs_in_states import Queue
from support.node_worker import NEWEST, NodeWorker, node_worker
from support.program_fixtures import gw as gw, queue as queue, relaxed_timeouts as relaxed_timeouts


@pytest.fixture(scope="session")
def node() -> NodeWorker:
    """Graphile Worker's newest version from npm."""
    return node_worker(NEWEST)


@pytest.fixture
def nodes(node: NodeWorker, empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """A queue as npm's newest version leaves it, which is the program's database."""
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    node.install_schema(empty_database_url)
    with Queue(empty_database_url) as queue:
        yield queue
