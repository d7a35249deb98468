"""Every test of the console may show its queue, and a slow machine ends none of its statements and threads early."""

import pytest
from support.console_queue import relax_limits
from support.relax_timeouts import relax_read_timeouts


@pytest.fixture(autouse=True)
def _console_queue(console_queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    relax_read_timeouts(monkeypatch)
    relax_limits(monkeypatch)
    # A thread that is left behind would disturb the next test.
    monkeypatch.setattr("gw_tui.data.poller.PARTING", 60.0)
