"""What the tests of recurring tasks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node_crontab import NodeCrontab
from support.cron_fixture import CronFixture
from support.node_worker import NEWEST, node_worker


@pytest.fixture
def world(database_url: str) -> Iterator[CronFixture]:
    """A database with the newest schema, and a clock."""
    world = CronFixture(database_url)
    yield world
    world.close()


@pytest.fixture(scope="session")
def node() -> NodeCrontab:
    """Graphile Worker from npm."""
    newest = node_worker(NEWEST)
    return NodeCrontab(node=str(newest.node), entry=str(newest.package / "dist" / "index.js"))
