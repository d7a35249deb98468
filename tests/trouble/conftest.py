"""What the tests of trouble share with those of pools and runners."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

from bouncer import Bouncer, bouncer_program
from core_support import Site


@pytest.fixture
def site(own_site: Site) -> Site:
    """The same, under the name the builders of pools use."""
    return own_site


@pytest.fixture
def own_site(database_url: str) -> Iterator[Site]:
    """A database of the test's own with the newest schema and nothing in it."""
    site = Site(database_url)
    yield site
    site.close()


@pytest.fixture
def bouncer(own_site: Site, tmp_path_factory: Any) -> Iterator[Bouncer]:
    """A PgBouncer in transaction mode before that database."""
    with Bouncer(own_site.url, bouncer_program(), mode="transaction") as bouncer:
        yield bouncer


@pytest.fixture
def session_bouncer(own_site: Site) -> Iterator[Bouncer]:
    """A PgBouncer in session mode before that database."""
    with Bouncer(own_site.url, bouncer_program(), mode="session") as bouncer:
        yield bouncer
