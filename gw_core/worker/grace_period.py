"""The grace period of a stop: running jobs may finish, are notified after a while, and are interrupted at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from gw_core.domain.rules.settings import WorkerSettings
from gw_core.worker.thread import WorkerThread


class GracePeriod:
    """How long a stopping worker waits for its jobs: until the period has passed, or a later signal ends it.

    One thread calls `begin` and `wait`; `force` and `note_end` may be called from any thread, also a signal's.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._length = settings.grace_period.total_seconds()
        self._notify_after = settings.effective_notify_delay.total_seconds()
        self._began_at = float("inf")
        self._forced_at = float("inf")
        self._changed = threading.Event()

    def begin(self) -> None:
        """Start the period now."""
        self._began_at = time.monotonic()

    def force(self) -> None:
        """End the period now."""
        self._forced_at = min(self._forced_at, time.monotonic())
        self._changed.set()

    def note_end(self) -> None:
        """Record that a thread has ended."""
        self._changed.set()

    def time_left(self, beyond: timedelta = timedelta(0)) -> timedelta:
        """Return how much time is left until the period has ended, and `beyond` after it; not less than none."""
        # A signal that ends it before the stop began does not remove the second after it.
        end_at = min(self._began_at + self._length, max(self._forced_at, self._began_at))
        return max(timedelta(0), timedelta(seconds=end_at - time.monotonic()) + beyond)

    def wait(self, threads: Sequence[WorkerThread], *, notify_tasks: Callable[[], None]) -> bool:
        """Wait for the threads within the period; notify their tasks in time. True when all have ended."""
        notify_at, end_at = self._began_at + self._notify_after, self._began_at + self._length
        while True:
            self._changed.clear()
            # Not whether they are alive: a thread still is when it calls `note_end`, and nothing is set afterwards.
            if all(thread.has_ended for thread in threads):
                for thread in threads:
                    thread.join(None)
                return True
            now = time.monotonic()
            if self._forced_at <= now or now >= end_at:
                return False
            if now >= notify_at:
                notify_tasks()
            # A job that began during the notification is notified a little later.
            next_check = min(end_at, notify_at if now < notify_at else now + 0.5)
            self._changed.wait(max(0.0, next_check - now))
