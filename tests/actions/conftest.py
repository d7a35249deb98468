"""What the tests of acting and keeping share: a queue to act on, and the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.node_worker import NEWEST, NodeWorker, node_worker
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
    """Run the program in an empty folder, on the test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return CliProgram(capsys, monkeypatch)


@pytest.fixture(scope="session")
def node() -> NodeWorker:
    """Graphile Worker's newest version from npm."""
    return node_worker(NEWEST)


@pytest.fixture
def nodes(node: NodeWorker, empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """A queue as npm's newest version leaves it, which is the program's database."""
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    node.install_schema(empty_database_url)
    with Queue(empty_database_url) as queue:
        yield queue
