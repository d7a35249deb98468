"""What the tests of recurring tasks share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from crontab_support import World
from node_crontab import Ancestor, install_ancestor


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A database with the newest schema, and a clock."""
    world = World(database_url)
    yield world
    world.close()


@pytest.fixture(scope="session")
def ancestor(gw_run: Any) -> Ancestor:
    """The ancestor from npm, installed once for this run."""
    return install_ancestor(gw_run.folder / "npm-crontab")
