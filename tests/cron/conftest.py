"""What the tests of recurring tasks share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crontab_support import World
from node_crontab import Ancestor

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

from node_worker import NEWEST, node_worker


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A database with the newest schema, and a clock."""
    world = World(database_url)
    yield world
    world.close()


@pytest.fixture(scope="session")
def ancestor() -> Ancestor:
    """The ancestor from npm."""
    newest = node_worker(NEWEST)
    return Ancestor(node=str(newest.node), entry=str(newest.package / "dist" / "index.js"))
