"""What the tests of acting and keeping share: a queue to act on, and the program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from acting_support import Program, Queue
from patience import let_readers_wait


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    let_readers_wait(monkeypatch)


@pytest.fixture
def queue(database_url: str) -> Queue:
    """A database with the newest schema."""
    return Queue(database_url)


@pytest.fixture
def gw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> Program:
    """Run the program in an empty folder, on the test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return Program(capsys, monkeypatch)
