"""What the tests of acting and keeping share: a queue to act on, and the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_program import CliProgram, Queue
from support.relax_timeouts import relax_read_timeouts


@pytest.fixture(autouse=True)
def relaxed_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    relax_read_timeouts(monkeypatch)


@pytest.fixture
def queue(database_url: str) -> Queue:
    """A database with the newest schema."""
    return Queue(database_url)


@pytest.fixture
def gw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> CliProgram:
    """Run the program in an empty folder, on the test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return CliProgram(capsys, monkeypatch)
