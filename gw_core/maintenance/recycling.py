"""End a worker that has run for long enough, so that its supervisor starts a fresh one."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from gw_core.domain.rules.settings import WorkerSettings
from gw_core.runtime.service import Service

CHECK_INTERVAL: Final = timedelta(seconds=1)


class RecycleMonitor(Service):
    """Checks every second, and when woken, whether a limit is reached; then requests one shutdown."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        ended: Callable[[], int],
        on_limit_reached: Callable[[str], None],
    ) -> None:
        super().__init__("gw-bounds")
        self._settings = settings
        self._ended = ended
        self._on_limit_reached = on_limit_reached
        self._began = time.monotonic()
        self._has_asked = False

    def step(self) -> timedelta:
        """Check the limits; rest until the next check."""
        lived = timedelta(seconds=time.monotonic() - self._began)
        rss = memory_in_use() if self._settings.max_rss is not None else None
        reason = self._settings.limit_reached(ended=self._ended(), lived=lived, rss=rss)
        if reason is not None and not self._has_asked:
            self._has_asked = True
            self._on_limit_reached(reason)
        if self._settings.max_lifetime is None or self._has_asked:
            return CHECK_INTERVAL
        return min(CHECK_INTERVAL, max(timedelta(milliseconds=1), self._settings.max_lifetime - lived))


def memory_in_use() -> int | None:
    """Return how many bytes of memory this process uses; where only the peak is known, that; else None."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource  # not on every system
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
