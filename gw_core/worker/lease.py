"""How long a worker may start what it has claimed: until its last heartbeat is too old."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

steady_time: Final = partial(time.clock_gettime, _CLOCK)
"""Seconds of a clock that cannot be set; on Linux it also runs while the machine is suspended."""


class Lease:
    """Renewed by each heartbeat. Without heartbeats it never ends, unless the pool waits for the first one.

    Written by one thread, read by all.
    """

    __slots__ = ("_lapsed_at", "until")

    def __init__(self) -> None:
        self.until = float("inf")
        """When it ends, by `steady_time`. A plain attribute, because every job reads it."""
        self._lapsed_at = float("-inf")

    def renew(self, until: float) -> None:
        """Let it end at this time; remember that it was over."""
        if self.is_over:
            self._lapsed_at = steady_time()
        self.until = until

    def was_over_since(self, time: float) -> bool:
        """Return whether it was over at any time from then until now; others may have recovered our jobs if so."""
        return self.is_over or self._lapsed_at >= time

    @property
    def is_over(self) -> bool:
        """True when other workers may have presumed this one dead and taken its jobs."""
        return steady_time() > self.until
