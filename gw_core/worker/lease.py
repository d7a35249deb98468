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

    All threads read it. The thread of the heartbeats renews it, and the one that claims begins sessions.
    """

    __slots__ = ("_lapsed_at", "_renewed_at", "_session_began", "until")

    def __init__(self) -> None:
        self.until = float("inf")
        """When it ends, by `steady_time`. A plain attribute, because every job reads it."""
        self._lapsed_at = self._renewed_at = self._session_began = float("-inf")

    def renew(self, until: float, *, sent_at: float) -> None:
        """Let it end at this time, because of a heartbeat that was sent at that one; remember that it was over."""
        if self.is_over:
            self._lapsed_at = steady_time()
        self._renewed_at = sent_at
        self.until = until

    def begin_session(self, began: float) -> None:
        """Record that claims go over a connection that was opened at this time."""
        self._session_began = began

    def was_over_since(self, time: float) -> bool:
        """Return whether it was over at any time from then until now; others may have recovered our jobs if so."""
        return self.is_over or self._lapsed_at >= time

    @property
    def is_over(self) -> bool:
        """True when other workers may have presumed this one dead and taken its jobs."""
        return steady_time() > self.until

    @property
    def allows_claims(self) -> bool:
        """True if a heartbeat that was sent since the connection for claims was opened is still valid.

        An earlier one may be lost: heartbeats wait neither for the disk nor for a standby, so the server that a
        failover or a crash left may not have it. Without it, no sweep would recover what this worker claims.
        """
        return not self.is_over and (self.has_no_heartbeats or self._renewed_at >= self._session_began)

    @property
    def has_no_heartbeats(self) -> bool:
        """True if no heartbeat was written: in a short single run, or because the role may not write any."""
        return self.until == float("inf")
