"""Where claimed jobs wait for a worker thread, and idle threads wait for a job."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from gw_core.domain.job.job import Job

QueueBatch = deque[Job]
"""Jobs of one named queue, to be run one after the other by one thread."""

Item = Job | QueueBatch


class Handoff:
    """A queue from one claiming thread to many workers that also knows who is idle.

    `_lock` guards `_waiters` and `_closed`; `_items` is a deque, whose ends are safe without it. `queue.SimpleQueue`
    neither reports how many threads wait nor returns jobs from its far end.

    One thread at a time wakes up. Once it runs and finds an item, it wakes the next one for the rest. So a thread that
    ends all trivial jobs before another one gets the GIL wakes one thread and not all of them.
    """

    def __init__(self, on_low: Callable[[], None]) -> None:
        self._items: deque[Item] = deque()
        self._waiters: list[threading.Lock] = []
        self._is_waking = False
        """Whether a thread was woken that does not run yet; it will see what is handed over until it runs."""
        self._lock = threading.Lock()
        self._closed = False
        self._on_low = on_low
        self._low_mark = -1

    @property
    def is_closed(self) -> bool:
        """True once no more jobs shall be started."""
        return self._closed

    @property
    def waiting(self) -> int:
        """How many items no thread has taken yet."""
        return len(self._items)

    @property
    def idle(self) -> int:
        """How many threads wait for an item that is not there yet."""
        return max(0, len(self._waiters) - len(self._items))

    def call_when_low(self, mark: int) -> None:
        """Call `on_low` once, when at most `mark` items are left or a thread finds none; -1 cancels that."""
        self._low_mark = mark

    def put(self, items: Iterable[Item]) -> None:
        """Hand items over in this order; idle threads wake up for them."""
        self._items.extend(items)
        self._wake_one()

    def _wake_one(self) -> None:
        with self._lock:
            if self._is_waking or not self._waiters:
                return
            self._is_waking = True
            # Last parked, first woken: its stack and caches are warm.
            waiter = self._waiters.pop()
        waiter.release()

    def take(self, waiter: threading.Lock) -> Item | None:
        """Return the next item, waiting for one; None once the hand-off is closed. The lock is the thread's own."""
        while not self._closed:
            try:
                item = self._items.popleft()
            except IndexError:
                if not self._wait(waiter):
                    return None
                continue
            if self._waiters and self._items and not self._is_waking:
                self._wake_one()
            if len(self._items) <= self._low_mark:
                self._signal_low()
            return item
        return None

    def remove_waiting(self) -> list[Item]:
        """Take everything that no thread has taken yet, the last claimed first."""
        taken: list[Item] = []
        while True:
            try:
                taken.append(self._items.pop())
            except IndexError:
                return taken

    def close(self) -> None:
        """Let the threads end, one after the other; what is left, or is still added, is for `remove_waiting`.

        If a thousand threads ended together, they would keep the GIL from an event loop of the program for 0.1 s.
        """
        with self._lock:
            self._closed = True
        self._end_next()

    def _end_next(self) -> None:
        with self._lock:
            waiter = self._waiters.pop() if self._waiters else None
        if waiter is not None:
            waiter.release()

    def _wait(self, waiter: threading.Lock) -> bool:
        """Wait to be woken; False when closed."""
        with self._lock:
            if self._closed:
                return False
            if self._items:  # handed over between the check and the lock
                return True
            waiter.acquire(blocking=False)
            self._waiters.append(waiter)
        self._signal_low()
        waiter.acquire()
        waiter.release()
        self._is_waking = False
        if self.is_closed:
            self._end_next()
        return True

    def _signal_low(self) -> None:
        if self._low_mark >= 0:
            self._low_mark = -1
            self._on_low()
