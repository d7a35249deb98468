"""What the tests of looking share: a queue to look at, and the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from looking_support import Program, Queue
from patience import let_readers_wait


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    let_readers_wait(monkeypatch)


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    """A database with the newest schema."""
    queue = Queue(database_url)
    yield queue
    queue.close()


@pytest.fixture
def gw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str) -> Program:
    """The program in an empty folder, on the test's database, with a wide terminal."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return Program(monkeypatch)
