"""Every kind of connection that a caller may pass as `conn`, opened as its users open it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from connections.kinds import AUTOCOMMIT_KINDS, KINDS, CallersTransaction, Kind
from psycopg.rows import TupleRow


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def callers(request: pytest.FixtureRequest, database_url: str) -> Iterator[CallersTransaction]:
    """A transaction of the caller's, with each kind of connection in turn."""
    yield from _opened(request.param, database_url)


@pytest.fixture(params=AUTOCOMMIT_KINDS, ids=lambda kind: kind.name)
def autocommit(request: pytest.FixtureRequest, database_url: str) -> Iterator[CallersTransaction]:
    """A connection that commits each statement, of each kind in turn."""
    yield from _opened(request.param, database_url)


def _opened(kind: Kind, url: str) -> Iterator[CallersTransaction]:
    for module in kind.needs:
        pytest.importorskip(module)
    with kind.open(url) as callers:
        yield callers


@pytest.fixture
def outside(database_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Another session, which sees what is committed."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection
