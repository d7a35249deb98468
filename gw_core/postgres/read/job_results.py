"""Wait for the results of jobs: by LISTEN, and by asking with growing pauses."""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any, Final

import msgspec
import psycopg

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    GraphileWorkerError,
    LockTimeoutError,
    ResultTimeoutError,
    StatementTimeoutError,
)
from gw_core.domain.job.history import JobEnd, JobPendingError
from gw_core.domain.job.job import listed_ids
from gw_core.domain.job.task_of_function import task_behind
from gw_core.postgres.connection.database import Database, QueueConnection
from gw_core.postgres.connection.deadlines import ending_within, time_left
from gw_core.postgres.connection.notifications import Notification, Subscription
from gw_core.postgres.connection.statement_steps import run_steps
from gw_core.runtime import forks

CHANNEL: Final = "gw:done"
"""Announces ids of finished jobs whose results are kept; other schemas of the database use it too."""

FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 2.0
"""Seconds between two questions. Whatever ends a job without a notification is noticed within this time."""

LAST_ANSWER: Final = 2.0
"""Seconds that the last answer may take beyond the timeout of a call; also a timeout of 0 gets one."""

LINGER: Final = 10.0
"""Seconds for which the connection is kept after the last waiter has left."""

TICK: Final = 0.2
"""Seconds between two checks whether a caller still waits."""
RECONNECT_DELAY: Final = 1.0

Wake = Callable[[], None]


def awaiting(
    job_id: int, timeout: Duration | None, task: Callable[..., object] | None = None
) -> Generator[float | None, JobEnd, Any]:
    """Return the result of a job once it has ended; raises `ResultError` when none will come, or in time.

    The annotation of `task` decides what the result becomes.

    Yields None to be sent how the job ended, and seconds to wait: first 0, then short ones, for jobs that end soon.
    A timeout of None is forever, and a number is seconds.
    """
    listed_ids(job_id)
    seconds = inf if timeout is None else as_duration("timeout", timeout).total_seconds()
    deadline = time.monotonic() + seconds
    read = msgspec.json.decode if task is None else task_behind(task)._read_result
    unknown = f"the database did not answer within {seconds:g} s whether job {job_id} has ended"
    was_answered, pause = False, 0.0
    with ending_within(seconds + LAST_ANSWER):
        while True:
            text = f"job {job_id} did not end within {seconds:g} s"
            cause: DatabaseError | None = None
            try:
                return (yield None).outcome(job_id, read)
            except JobPendingError:
                was_answered = True
            except (LockTimeoutError, StatementTimeoutError) as error:
                text, cause = unknown, error
            except DatabaseUnavailableError as error:
                if time_left() <= 0:
                    raise ResultTimeoutError(job_id, unknown) from error
                if not was_answered:
                    raise
                was_answered, text, cause = False, unknown, error  # a connection was lost; the next tries another
            left = deadline - time.monotonic()
            if left <= 0:
                raise ResultTimeoutError(job_id, text) from cause
            yield min(pause, left)
            pause = min(MAX_PAUSE, max(FIRST_PAUSE, pause * 1.5))


def wait_for_result(
    read_end: Callable[[], JobEnd],
    listener: ResultListener,
    job_id: int,
    timeout: Duration | None,
    task: Callable[..., object] | None = None,
) -> Any:
    """Return the result of a job once it has ended; the listener wakes this thread if it has not yet."""
    ended = threading.Event()
    with ExitStack() as stack:

        def act(pause: float | None) -> Any:
            if pause is None:
                return read_end()
            if not pause:
                stack.enter_context(listener.waiting(job_id, ended.set))
            ended.wait(pause)
            return ended.clear()

        return run_steps(awaiting(job_id, timeout, task), act)


class ResultListener:
    """Wakes those who wait when one of their jobs ends: one connection and one thread for all waiters of a client.

    The connection is opened for the first waiter and closed some seconds after the last. Without one, for example on a
    standby or behind a pooler in transaction mode, the waiters poll instead. `_lock` guards `_waiters` and
    `_thread`; the thread alone uses the connection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._waiters: dict[int, list[Wake]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._left_at = 0.0
        forks.abandon_in_children(self)

    @contextmanager
    def waiting(self, job_id: int, wake: Wake) -> Iterator[None]:
        """Call `wake` when the job ends, from another thread, and perhaps when it has not ended."""
        with self._lock:
            self._waiters.setdefault(job_id, []).append(wake)
            self._is_closed = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gw-results", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._waiters[job_id].remove(wake)
                if not self._waiters[job_id]:
                    del self._waiters[job_id]
                self._left_at = time.monotonic()

    def close(self) -> None:
        """Close the connection soon; waiters go on without it."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(5 * TICK)

    def abandon(self) -> None:
        """In a forked child: the thread and the connection are the parent's."""
        self._lock = threading.Lock()
        self._waiters, self._thread = {}, None

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_over():
            try:
                with self._database.connect("results", listens=True) as connection:
                    self._listen(connection)
            except (GraphileWorkerError, psycopg.Error, OSError):
                time.sleep(RECONNECT_DELAY)

    def _listen(self, connection: QueueConnection) -> None:
        subscription = Subscription(connection, self._take, [CHANNEL])
        self._wake_all()  # what ended before we listened
        with selectors.DefaultSelector() as selector:
            selector.register(subscription, selectors.EVENT_READ)
            while not self._is_over():
                if selector.select(TICK):
                    subscription.receive()

    def _take(self, notice: Notification) -> None:
        """Wake those who wait for these jobs. Every role can notify, so the content only decides who asks again."""
        for text in notice.payload.split(","):
            if text.isascii() and text.isdigit() and len(text) < 20:
                self._wake(int(text))

    def _wake(self, job_id: int) -> None:
        with self._lock:
            woken = list(self._waiters.get(job_id, ()))
        for wake in woken:
            wake()

    def _wake_all(self) -> None:
        with self._lock:
            woken = [wake for each in self._waiters.values() for wake in each]
        for wake in woken:
            wake()

    def _is_over(self) -> bool:
        """Return whether the thread is no longer needed; then it is no longer the listener's."""
        with self._lock:
            is_idle = not self._waiters and time.monotonic() - self._left_at > LINGER
            if not is_idle and not self._is_closed:
                return False
            if self._thread is threading.current_thread():
                self._thread = None
            return True
