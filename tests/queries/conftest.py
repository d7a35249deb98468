"""What the tests of queries share: a queue to read, and the program with a wide terminal."""

from __future__ import annotations

import pytest
from support.program_fixtures import gw as gw, queue as queue, relaxed_timeouts as relaxed_timeouts


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
