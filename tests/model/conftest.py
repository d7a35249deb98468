"""What the tests of the model share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow
from queue_model import World, make_witness, without_waiting


@pytest.fixture(scope="session")
def model_hands(databases: Any, template: str) -> Iterator[tuple[str, psycopg.Connection[DictRow]]]:
    """One database for all of these tests; each world begins by emptying it."""
    name = f"{databases.run.prefix}{databases.worker}_model"
    databases.create(name, template=template)
    hands = make_witness(databases.url(name))
    yield databases.url(name), hands
    hands.close()
    databases.drop(name)


@pytest.fixture
def a_world(model_hands: tuple[str, psycopg.Connection[DictRow]]) -> Iterator[Callable[..., World]]:
    worlds: list[World] = []

    def make(**options: Any) -> World:
        worlds.append(World(*model_hands, **options))
        return worlds[-1]

    with without_waiting():
        yield make
        for world in worlds:
            world.close()
