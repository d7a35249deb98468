"""Receive notifications of new jobs on a dedicated connection: for programs that watch a queue and run no jobs."""

from __future__ import annotations

import selectors
import socket
import threading
from time import monotonic
from typing import Self

from gw_core.domain.durations import Duration, as_duration
from gw_core.postgres.connection.database import Database
from gw_core.postgres.connection.notifications import JOBS, Notification, Subscription, announced_jobs


class JobListener:
    """Reports how many jobs are added, whatever the schema; `client.listen()` opens one.

    `wait` belongs to one thread; `close` may be called from any, and ends a wait that is under way.
    """

    def __init__(self, database: Database) -> None:
        self._connection = database.connect("listen", listens=True)
        self._use = threading.Lock()  # held during a wait; guards the closing of what a wait uses
        self._is_closed = False
        self._waker, self._woken = socket.socketpair()
        self._sockets = selectors.DefaultSelector()
        self._sockets.register(self._woken, selectors.EVENT_READ)
        self._sockets.register(self._connection.fileno(), selectors.EVENT_READ)
        self._count = 0
        try:
            self._subscription = Subscription(self._connection, self._take, [JOBS])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, timeout: Duration) -> int:
        """Wait until jobs are announced, and return how many were; 0 after the timeout or when this is closed.

        Raises `DatabaseUnavailableError` when the connection is gone.
        """
        deadline = monotonic() + as_duration("timeout", timeout).total_seconds()
        with self._use:
            while not self._is_closed:
                if count := self._announced():
                    return count
                left = deadline - monotonic()
                if left <= 0:
                    break
                self._sockets.select(left)
        return 0

    def close(self) -> None:
        """Close the connection; may be called again."""
        was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        self._waker.send(b"x")
        with self._use:
            self._sockets.close()
            self._waker.close()
            self._woken.close()
            self._connection.close()

    def _announced(self) -> int:
        """Take what has arrived, and return how many jobs that is."""
        self._subscription.receive()
        count, self._count = self._count, 0
        return count

    def _take(self, notice: Notification) -> None:
        self._count += announced_jobs(notice.payload)
