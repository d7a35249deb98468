"""Threads for what coroutines hand over with `asyncio.to_thread`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

from gw_core.runtime.thread_calls import settle

MAX_THREADS: Final = 32

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(ThreadPoolExecutor):
    """An executor whose threads are daemons.

    The interpreter waits for the standard library's threads when it exits: one blocking call would keep a stopping
    process alive. An event loop accepts only a `ThreadPoolExecutor`, so this class derives from it.
    `_lock` guards `_started` and `_is_closed`; `_idle` counts the threads that wait for work.
    """

    def __init__(self, name: str) -> None:
        super().__init__(max_workers=1)  # never started: `submit` is ours
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in one of the threads, and return the future of its result."""
        future: Future[T] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                settle(future, lambda: fn(*args, **kwargs))

        with self._lock:
            if self._is_closed:
                raise RuntimeError("the event loop is stopping; it starts no more calls in threads")
            self._calls.put(call)
            if not self._idle.acquire(blocking=False) and self._started < MAX_THREADS:
                self._started += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what they do; does not wait for them, whatever is asked."""
        with self._lock:
            self._is_closed = True
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # not kept alive while waiting for the next
            self._idle.release()
        self._calls.put(None)  # for the next thread
