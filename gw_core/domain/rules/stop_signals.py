"""What a termination signal does: request a stop, repeat that request, or end the grace period."""

from __future__ import annotations

from typing import Final

from gw_core.domain.rules.events import SignalReceived

REPEAT_SECONDS: Final = 5.0
"""Seconds after the first signal in which further ones belong to the same stop, as in Graphile Worker (Node.js).

Wrappers, terminals and service managers send one request several times, to a process and again to its group.
"""


class StopSignals:
    """Judges the signals of one run, in the order of their arrival."""

    def __init__(self) -> None:
        self._first_at: float | None = None

    def receive(self, name: str, now: float) -> SignalReceived:
        """Return what this signal does; `now` is in seconds, by a clock that cannot be set."""
        if self._first_at is None:
            # Also after a stop requested otherwise, for example by a supervisor: the first signal forces nothing.
            self._first_at = now
            return SignalReceived(signal=name, forced=False)
        repeated = now - self._first_at < REPEAT_SECONDS
        return SignalReceived(signal=name, forced=not repeated, repeated=repeated)
