"""Where claimed jobs wait for a worker thread, and idle threads wait for a job."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from gw_core.domain.job import Job

QueueBatch = deque[Job]
"""Jobs of one named queue, to be run one after the other by one thread."""

Item = Job | QueueBatch


class Handoff:
    """A queue from one claiming thread to many workers that also knows who is idle.

    `_lock` guards `_parked` and `_closed`; `_items` is a deque, whose ends are safe without it. `queue.SimpleQueue`
    neither reports how many threads wait nor returns jobs from its far end.
    """

    def __init__(self, on_low: Callable[[], None]) -> None:
        self._items: deque[Item] = deque()
        self._parked: list[threading.Lock] = []
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
        """How many threads wait for an item."""
        return len(self._parked)

    def call_when_low(self, mark: int) -> None:
        """Call `on_low` once, when at most `mark` items are left or a thread finds none; -1 cancels that."""
        self._low_mark = mark

    def put(self, items: Iterable[Item]) -> None:
        """Hand items over in this order, and wake as many idle threads as there are items."""
        before = len(self._items)
        self._items.extend(items)
        fresh = len(self._items) - before
        with self._lock:
            # Last parked, first woken: its stack and caches are warm.
            woken = [self._parked.pop() for _ in range(min(max(fresh, len(self._items)), len(self._parked)))]
        for bell in woken:
            bell.release()

    def take(self, bell: threading.Lock) -> Item | None:
        """Return the next item, waiting for one; None once the hand-off is closed. `bell` is the thread's own lock."""
        while not self._closed:
            try:
                item = self._items.popleft()
            except IndexError:
                if not self._park(bell):
                    return None
                continue
            if len(self._items) <= self._low_mark:
                self._signal_low()
            return item
        return None

    def take_back(self) -> list[Item]:
        """Take everything that no thread has taken yet, the last claimed first."""
        taken: list[Item] = []
        while True:
            try:
                taken.append(self._items.pop())
            except IndexError:
                return taken

    def close(self) -> None:
        """Let the threads end; what is left, or is still added, is for `take_back`."""
        with self._lock:
            self._closed = True
            woken, self._parked = self._parked, []
        for bell in woken:
            bell.release()

    def _park(self, bell: threading.Lock) -> bool:
        """Wait to be woken; False when closed."""
        with self._lock:
            if self._closed:
                return False
            if self._items:  # handed over between the check and the lock
                return True
            bell.acquire(blocking=False)
            self._parked.append(bell)
        self._signal_low()
        bell.acquire()
        bell.release()
        return True

    def _signal_low(self) -> None:
        if self._low_mark >= 0:
            self._low_mark = -1
            self._on_low()
