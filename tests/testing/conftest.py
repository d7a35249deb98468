"""A transaction that is rolled back after each test, and tasks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from gw_core import Client, TaskRegistry


@pytest.fixture
def client(database_url: str) -> Iterator[Client]:
    with Client(database_url) as client:
        yield client


@pytest.fixture(params=["Cursor", "ClientCursor", "RawCursor"])
def conn(request: pytest.FixtureRequest, database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, cursor_factory=getattr(psycopg, request.param)) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def ran() -> list[Any]:
    """What the task `work` was called with."""
    return []


@pytest.fixture
def tasks(ran: list[Any]) -> TaskRegistry:
    registry = TaskRegistry()
    registry.register("work", lambda payload: ran.append(payload.get("n")))
    return registry
