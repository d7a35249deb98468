"""A service: one named thread that does rounds, rests, can be woken and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

TICK: Final = timedelta(seconds=0.02)
"""How often to look whether a thread has ended that has only so much time."""

A_STALL: Final = 0.2
"""Seconds: a look that comes later than this was held up with everything else, by the machine."""

TICKS_AFTER_A_STALL: Final = 10
"""For what everything else would have done meanwhile."""


class Service:
    """Runs `turn` in a thread of its own until stopped.

    `turn()` does one round and returns how long to rest. It is an ordinary method, so a test calls it.
    `_bell` is the only state shared between threads; a subclass says which of its own state has which owner.
    """

    def __init__(self, name: str, *, on_crash: Callable[[str, BaseException], None] | None = None) -> None:
        self.name = name
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._on_crash = on_crash
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin doing rounds; returns at once."""
        # A daemon: code in a task that never returns must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def turn(self) -> timedelta:
        """Do one round and return how long to rest before the next."""
        raise NotImplementedError

    def wake(self) -> None:
        """Cut the rest short; safe from any thread, also before the rest begins."""
        self._bell.set()

    def ask_to_stop(self) -> None:
        """Ask for the end after the current round; returns at once, may be called twice."""
        self._stopping.set()
        self.wake()

    def stop(self, timeout: timedelta | None = None) -> bool:
        """Ask for the end and wait for it; returns whether the thread has ended within `timeout`."""
        self.ask_to_stop()
        return self.join(timeout)

    def join(self, timeout: timedelta | None = None) -> bool:
        """Wait for the thread to end; True when it has (or never started)."""
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(None if timeout is None else max(0.0, timeout.total_seconds()))
        return not self._thread.is_alive()

    def join_until(self, time_left: Callable[[], timedelta], *, at_least: timedelta = timedelta(0)) -> bool:
        """Wait for the thread to end while there is time left, which may become less; True when it has ended.

        A machine that stood still used up the time, and nobody did anything in it: then there is a moment more.
        """
        began = looked_at = time.monotonic()
        spare = 0
        while not self.join(TICK):
            now = time.monotonic()
            spare = TICKS_AFTER_A_STALL if now - looked_at > A_STALL else max(0, spare - 1)
            looked_at = now
            if not spare and now - began >= at_least.total_seconds() and time_left() <= timedelta(0):
                return False
        return True

    @property
    def is_stopping(self) -> bool:
        """True once somebody asked for the end."""
        return self._stopping.is_set()

    def _run(self) -> None:
        try:
            self.enter()
            while not self._stopping.is_set():
                rest = self.turn()
                self._rest(rest)
            self.leave()
        except BaseException as error:  # noqa: BLE001 - the owner decides; a thread has nobody above it
            if self._on_crash is not None:
                self._on_crash(self.name, error)

    def enter(self) -> None:
        """Prepare, in the service's own thread, before the first round."""

    def leave(self) -> None:
        """Clean up, in the service's own thread, after the last round."""

    def _rest(self, span: timedelta) -> None:
        if span > timedelta(0):
            self._bell.wait(span.total_seconds())
        self._bell.clear()
