"""A service: one named thread that runs steps, rests between them, can be woken and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import MaintenanceFailed

TICK: Final = timedelta(seconds=0.02)
"""How often to check whether a thread has ended that has a deadline."""

STALL_THRESHOLD: Final = 0.2
"""Seconds: a check that comes later than this means that the whole machine stalled."""

TICKS_AFTER_STALL: Final = 10
"""Extra time after a stall, for what the other threads would have done during it."""

MAX_EXTENSIONS: Final = 10
"""How often the end of a wait is extended, so that a machine that stalls again and again does not make it endless."""


class Service:
    """Runs `step` in a thread of its own until stopped.

    `step()` does one iteration and returns how long to rest. It is an ordinary method, so a test calls it.
    `_wake_up` is the only state shared between threads; a subclass documents the owners of its own state.
    """

    stops_after_jobs = False
    """Whether it stops only after the last job, because it writes what the last jobs did."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.on_crash: Callable[[str, BaseException], None] | None = None
        """Called with the thread's name and what ended it; the owner sets it before the start."""
        self._wake_up = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Does not block."""
        # A daemon: code in a task that never returns must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def step(self) -> timedelta:
        """Do one iteration and return how long to rest before the next."""
        raise NotImplementedError

    def wake(self) -> None:
        """Cut the rest short; safe from any thread, also before the rest begins."""
        self._wake_up.set()

    def request_stop(self) -> None:
        """Request shutdown after the current iteration. Does not block; idempotent."""
        self._stopping.set()
        self.wake()

    def stop(self, timeout: timedelta | None = None) -> bool:
        """Request shutdown and wait for it; returns whether the thread has ended within `timeout`."""
        self.request_stop()
        return self.join(timeout)

    def join(self, timeout: timedelta | None = None) -> bool:
        """Wait for the thread to end; True when it has (or never started)."""
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(None if timeout is None else max(0.0, timeout.total_seconds()))
        return not self._thread.is_alive()

    def join_until(self, time_left: Callable[[], timedelta], *, at_least: timedelta = timedelta(0)) -> bool:
        """Wait for the thread to end while there is time left, which may become less; True when it has ended.

        After a stall of the whole machine the thread gets a short extension.
        """
        started = checked_at = time.monotonic()
        spare = extensions = 0
        while not self.join(TICK):
            now = time.monotonic()
            is_over = now - started >= at_least.total_seconds() and time_left() <= timedelta(0)
            if now - checked_at > STALL_THRESHOLD and extensions < MAX_EXTENSIONS:
                spare = TICKS_AFTER_STALL
                extensions += is_over
            checked_at = now
            if is_over and not spare:
                return False
            spare = max(0, spare - 1)
        return True

    @property
    def is_stopping(self) -> bool:
        """True once shutdown was requested."""
        return self._stopping.is_set()

    def _run(self) -> None:
        try:
            self.setup()
            while not self._stopping.is_set():
                rest = self.step()
                self._rest(rest)
            self.teardown()
        except BaseException as error:  # noqa: BLE001 - the owner decides; nothing above a thread catches errors
            if self.on_crash is not None:
                self.on_crash(self.name, error)

    def setup(self) -> None:
        """Prepare, in the service's own thread, before the first step."""

    def teardown(self) -> None:
        """Clean up, in the service's own thread, after the last step."""

    def _rest(self, duration: timedelta) -> None:
        if duration > timedelta(0):
            self._wake_up.wait(duration.total_seconds())
        self._wake_up.clear()


class MaintenanceService(Service):
    """Emits an event for the first of several failures in a row; a subclass runs again at its next interval."""

    def __init__(self, name: str, events: Events) -> None:
        super().__init__(name)
        self._events = events
        self._has_complained = False

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """End the block at an error of gw's, and report it."""
        try:
            yield
            self._has_complained = False
        except GraphileWorkerError as error:
            if not self._has_complained:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._has_complained = True
