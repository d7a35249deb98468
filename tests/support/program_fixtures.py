"""Fixtures of the tests that run `gw` in their process: a queue, and the program on it. Conftests import them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.relax_timeouts import relax_read_timeouts


@pytest.fixture(autouse=True)
def relaxed_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    relax_read_timeouts(monkeypatch)


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    """A database with the newest schema."""
    with Queue(database_url) as queue:
        yield queue


@pytest.fixture
def gw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> CliProgram:
    """The program in an empty folder, on the test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return CliProgram(capsys, monkeypatch)
