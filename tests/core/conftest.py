"""What the tests of the core share."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.program_fixtures import relaxed_timeouts as relaxed_timeouts
from support.queue_fixture import DEADLINE


@pytest.fixture
def time_to_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last outcomes be written after the grace period, however busy the server is."""
    monkeypatch.setattr("gw_core.worker.pool.MIN_SETTLE_TIMEOUT", timedelta(seconds=DEADLINE))
