"""How long a worker may start what it has claimed: until its last heartbeat is too old."""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_time() -> float:
    """Return seconds by a clock that nobody sets and that, on Linux, goes on while the machine is suspended."""
    return time.clock_gettime(_CLOCK)


class Lease:
    """Renewed by each heartbeat; without heartbeats it never ends. Written by one thread, read by all."""

    def __init__(self) -> None:
        self._until = float("inf")

    @property
    def is_over(self) -> bool:
        """True when other workers may have presumed this one dead and taken its jobs."""
        return steady_time() > self._until

    def renew(self, until: float) -> None:
        """Let the lease last until then, by `steady_time`."""
        self._until = until
