"""What the tests of failures share with those of pools and runners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cli_program import CliProgram
from support.pgbouncer import PgBouncer, bouncer_program
from support.queue_fixture import QueueFixture


@pytest.fixture
def gw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CliProgram:
    """The program, in the process of the test."""
    return CliProgram(capsys, monkeypatch)


@pytest.fixture
def bouncer(site: QueueFixture) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode before that database."""
    with PgBouncer(site.url, bouncer_program(), mode="transaction") as bouncer:
        yield bouncer


@pytest.fixture
def session_bouncer(site: QueueFixture) -> Iterator[PgBouncer]:
    """A PgBouncer in session mode before that database."""
    with PgBouncer(site.url, bouncer_program(), mode="session") as bouncer:
        yield bouncer
