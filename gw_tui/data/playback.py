"""Where the playback of a recording is: it can be paused and moved, and it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Playback:
    """The position in a recording of `length` seconds; safe to share between threads."""

    def __init__(self, length: float, clock: Callable[[], float]) -> None:
        self.length = length
        self._clock = clock
        self._lock = threading.Lock()  # guards the two below: the reader asks while the operator moves
        self._base = 0.0
        self._running_since: float | None = clock()

    @property
    def position(self) -> float:
        """Seconds since the beginning of the recording."""
        with self._lock:
            return self._position()

    @property
    def is_paused(self) -> bool:
        """True while the operator has stopped it."""
        return self._running_since is None

    @property
    def is_over(self) -> bool:
        """True when everything has been shown."""
        return self.position >= self.length

    def toggle(self) -> None:
        """Pause, or continue; at the end, start again from the beginning."""
        with self._lock:
            if self._running_since is not None and self._position() < self.length:
                self._base, self._running_since = self._position(), None
                return
            self._base = 0.0 if self._position() >= self.length else self._base
            self._running_since = self._clock()

    def seek(self, seconds: float) -> None:
        """Move by this many seconds, at most to either end."""
        with self._lock:
            self._base = min(max(0.0, self._position() + seconds), self.length)
            if self._running_since is not None:
                self._running_since = self._clock()

    def _position(self) -> float:
        passed = 0.0 if self._running_since is None else self._clock() - self._running_since
        return min(self._base + passed, self.length)
