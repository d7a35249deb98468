"""The console's data on the queue of `console_queue`: tests delay it, let it fail, and see what was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import structs

from gw_core import Client
from gw_core.front_ends import FrontEnd, JobListener, LockWaits, QueueSize, QueueSnapshot, StatementTimeoutError
from gw_core.operations import Finding, QueueCounts, QueueReport, RunSeries
from gw_tui.data.source import READ_LIMITS, ClientSource
from gw_tui.rules.options import QueueInfo
from support import console_queue
from support.console_queue import CRONTAB, LOCK_WAITS, TABLE_BYTES, ConsoleQueue, QueueClock, as_seen, findings
from support.databases import running_server

POLL = timedelta(milliseconds=20)
LONG = 300.0

opened: list[QueueSource] = []
"""What a test has opened; closed at its end."""


class BreakableSubscription:
    """Receives notifications until the source fails."""

    def __init__(self, source: QueueSource, real: JobListener) -> None:
        self._source = source
        self._real = real
        self._is_closed = False

    def wait(self, timeout: timedelta) -> int:
        end = time.monotonic() + timeout.total_seconds()
        found = 0
        while not found and time.monotonic() < end and not self._is_closed:
            self._source.check()
            found = self._real.wait(min(timeout, POLL))
        return found

    def close(self) -> None:
        self._is_closed = True
        self._real.close()


class QueueSource(ClientSource):
    """Reads the queue and changes it. `failure` is raised by every call, and `hold` lets none end."""

    def __init__(self, *, jobs: int = console_queue.JOBS, read_only: bool = False) -> None:
        self.queue: ConsoleQueue = console_queue.open_queue().begin(jobs=jobs)
        self.failure: Exception | None = None
        self.subscriptions = 0
        self.snapshots = 0
        self.actions: list[Any] = []
        self.closed = False
        self.is_busy = False
        self._is_held = self._is_cancelled = False
        self._changed = threading.Condition()  # guards the three flags above
        opened.append(self)
        schema = self.queue.schema
        info = QueueInfo(where="app@demo/shop", schema=schema, is_read_only=read_only)
        super().__init__(partial(Client, self.queue.url, schema=schema), info, lambda: CRONTAB)
        self.read_client = self.queue.reader
        self.front_end = FrontEnd(self.read_client)

    # -- for tests

    @property
    def clock(self) -> QueueClock:
        """The time of the queue."""
        return self.queue.clock

    def go_down(self, error: Exception) -> None:
        """Let every call raise this from now on, and break what listens."""
        self.failure = error

    def come_back(self) -> None:
        """Answer again."""
        self.failure = None

    def hold(self) -> None:
        """Let no call end before `release`, unless it is cancelled."""
        self._is_held = True

    def release(self) -> None:
        """Let all calls end."""
        with self._changed:
            self._is_held = False
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what the test has set."""
        if self.failure is not None:
            raise self.failure

    # -- what is different each time

    def answer(self, key: str, query: Callable[[ClientSource], Any]) -> Any:
        """Answer as the test has set, late or not at all."""
        self.last()
        self.check()
        match query(self):
            case QueueCounts() as statistics:
                return structs.replace(statistics, table_bytes=TABLE_BYTES)
            case LockWaits():
                return LOCK_WAITS
            case answer:
                return answer

    def read_snapshot(self) -> QueueSnapshot:
        self.snapshots += 1
        return as_seen(FrontEnd(self.read_client).snapshot(), self.queue)

    def read_background(self) -> timedelta | None:
        """Do nothing: each snapshot reads it."""
        return timedelta()

    def read_runs(self, back: timedelta, step: timedelta, task: str | None) -> RunSeries:
        """Ask each time: the console's own answer serves for ten seconds of real time."""
        return self.read_client.tasks.statistics_over_time(back, step=step, task=task)

    def read_queues(self, after: str, limit: int, *, only_locked: bool) -> Sequence[QueueReport]:
        """Count each queue whole: how far the console counts depends on what it asked before."""
        return self.read_client.queues.list(after=after, limit=limit, only_locked=only_locked)

    def read_queue_sizes(self) -> Sequence[QueueSize]:
        """Ask each time, as for what workers recorded."""
        return self.front_end.queue_sizes()

    def read_findings(self) -> Sequence[Finding]:
        return findings(self.read_client.workers.list())

    # -- acting

    def run(self, action: Any) -> Iterator[Any]:
        self.actions.append(action)
        results = super().run(action)
        while True:
            self.last()
            self.check()
            self.queue.jobs_at_first = None
            if (result := next(results, None)) is None:
                return
            yield msgspec.structs.replace(result, findings=self.findings()) if result.findings else result

    def cancel(self) -> None:
        with self._changed:
            self._is_cancelled = self.is_busy
            self._changed.notify_all()
        if not self._is_cancelled:
            super().cancel()

    def close(self) -> None:
        self.closed = True
        self.read_client = self._client(READ_LIMITS)  # the queue's own stays open
        super().close()

    def listen(self) -> JobListener:
        self.check()
        subscription = BreakableSubscription(self, super().listen())
        self.subscriptions += 1
        return subscription

    def last(self) -> None:
        """Wait while calls are held, or until the query is cancelled."""
        with self._changed:
            if not self._is_held:
                return
            self._is_cancelled, self.is_busy = False, True
            self._changed.wait_for(lambda: self._is_cancelled or not self._is_held, LONG)
            self.is_busy, cancelled = False, self._is_cancelled
        if cancelled:
            raise StatementTimeoutError("the database could not finish the statement now: cancelled")


@contextmanager
def showing(find: Callable[[], ConsoleQueue]) -> Iterator[None]:
    """Let `QueueSource` show this queue, and close what was opened."""
    before, console_queue.open_queue = console_queue.open_queue, find
    try:
        yield
    finally:
        console_queue.open_queue = before
        while opened:
            opened.pop().close()


@contextmanager
def own_server() -> Iterator[None]:
    """Let `QueueSource` find a queue on a server of this program, for what is made outside the tests."""
    with (
        TemporaryDirectory() as folder,
        running_server(Path(folder), pg_bin=None) as conninfo,
        ConsoleQueue.made(conninfo) as queue,
        showing(lambda: queue),
    ):
        yield
