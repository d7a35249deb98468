"""Which event loop runs in this thread, without importing asyncio for those who have none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in the calling thread, or None."""
    # Another thread may be importing it right now.
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    return None if running is None else running()
