"""Every test of the console may show its queue, and a slow machine ends none of its statements and threads early."""

from collections.abc import Iterator

import pytest
from shared_styles import share_styles
from support.console_queue import relax_limits
from support.relax_timeouts import relax_read_timeouts


@pytest.fixture(autouse=True)
def _console_queue(console_queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    relax_read_timeouts(monkeypatch)
    relax_limits(monkeypatch)
    # A thread that is left behind would disturb the next test.
    monkeypatch.setattr("gw_tui.data.poller.PARTING", 60.0)


@pytest.fixture(scope="session", autouse=True)
def _shared_styles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        share_styles(patch)
        yield
