"""Every test of the console may show its queue."""

import pytest


@pytest.fixture(autouse=True)
def _console_queue(console_queue: None) -> None:
    pass
