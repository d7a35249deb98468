"""Threads that keep the screen from waiting: one reads, one listens, one runs actions; they only post messages."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.message import Message

from gw_core.errors import GraphileWorkerError
from gw_tui.actions import Action, Result
from gw_tui.data.messages import (
    ActionFinished,
    ActionLogFailed,
    ActionProgressed,
    Connecting,
    ConnectionLost,
    JobsAnnounced,
    ListenStateChanged,
    QueryAnswered,
    QueryFailed,
    SnapshotReceived,
)
from gw_tui.data.source import BACKGROUND_INTERVAL, DataSource, Query, classify_error
from gw_tui.rules.connection_state import FailureKind, wait_before

if TYPE_CHECKING:
    from gw_core.front_ends import JobListener
    from gw_tui.actions.log import ActionLog

Post = Callable[[Message], object]

SNAPSHOTS: Final = 45
QUERIES: Final = 45
BACKGROUND: Final = 200
"""The server works for snapshots a forty-fifth of the time at most, and a two hundredth for their background;
what the visible screen asks takes a forty-fifth as well: together 5 %."""

LAST: Final = 3
"""The median of this many snapshots determines the rest between them."""

BLURRED: Final = 10.0
"""How many times longer to rest while the terminal has no focus."""

FORBIDDEN_INTERVAL: Final = 30.0
HELD_UP: Final = 5.0
"""The longest rest after a snapshot with missing parts, in seconds."""

MAX_BACKOFF: Final = 32
"""A snapshot that timed out is repeated half as often, up to this factor."""

GATHERING: Final = timedelta(milliseconds=250)
MIN_REFRESH_INTERVAL: Final = 0.5
LISTENING: Final = timedelta(seconds=2)
UNTIL_WOKEN: Final = 3_600.0
CANCEL_AFTER: Final = 0.5
"""Seconds that a query of another screen may still take. To cancel it opens a connection, and the driver then forgets
its prepared statements: each of the next six snapshots took 8 ms in the server, otherwise 3. Beside busy workers the
doctor takes a fifth of a second, and was cancelled at each visit of Overview and Locks."""

PARTING: Final = 1.5
"""Seconds that leaving may take, whatever the database does."""


class _Wanted(NamedTuple):
    generation: int = 0
    query: Query | None = None


class RateLimiter:
    """When to ask next: every so often from start to start, seldomer when it costs much or fails."""

    def __init__(self, rarity: int) -> None:
        self.due = 0.0
        self._rarity = rarity
        self._rested = 0.0
        self._factor = 1
        self._last: deque[float] = deque(maxlen=LAST)

    def done(self, began: float, *, took: float, every: float, longest: float = UNTIL_WOKEN) -> None:
        """Plan the next start after one that took so long; one that came a little late does not delay the next."""
        self._factor = 1
        self._last.append(took)
        self._rested = began + took + min(longest, (self._rarity - 1) * self._usual)
        planned = self.due if 0 <= began - self.due < every / 2 else began
        self.due = max(planned + every, self._rested)

    def restart(self) -> None:
        """Something else is asked from now on."""
        self._last.clear()

    def run_soon(self, now: float) -> None:
        """Ask as soon as the last time has been rested from."""
        self.due = min(self.due, max(now, self._rested))

    @property
    def _usual(self) -> float:
        # The median: a short stall of the machine must not count as the cost of a snapshot.
        return sorted(self._last)[(len(self._last) - 1) // 2]

    def failed(self, now: float, *, every: float, failure: FailureKind) -> None:
        self._factor = min(MAX_BACKOFF, self._factor * 2)
        self.due = now + (FORBIDDEN_INTERVAL if failure is FailureKind.FORBIDDEN else every * self._factor)


class QueryThread:
    """Queries the queue in its own thread: the snapshot at each tick, and the visible screen's query.

    Other threads call `ask`, `refresh_now`, `request_refresh`, `set_interval` and `stop`. `turn` runs one iteration.
    """

    def __init__(
        self,
        source: DataSource,
        post: Post,
        *,
        period: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        self._post = post
        self._clock = clock
        self.chance = chance
        # Guards busy_with, so that no cancellation begins after the query that it is meant for; values that are
        # replaced as a whole, such as _wanted and _period, need no lock.
        self._lock = threading.Lock()
        self._wanted = _Wanted()
        self._period = period
        self.busy_with: int | None = None
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._cancelling: list[threading.Thread] = []
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._hurried = threading.Event()
        self.snapshots, self.asking = RateLimiter(SNAPSHOTS), RateLimiter(QUERIES)
        self._background = RateLimiter(BACKGROUND)
        self._answered: int | None = None
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="gw-tui-reader", daemon=True)

    # -- for other threads -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread. Does not block."""
        self._thread.start()

    def ask(self, query: Query | None, generation: int) -> None:
        """Ask this query from now on, starting immediately; the previous query is dropped."""
        with self._lock:
            self._wanted = _Wanted(generation, query)
            if self.busy_with is not None and self.busy_with != generation:
                self._cancel(self._cancel_unless_idle)
        self._bell.set()

    def refresh_now(self) -> None:
        """Look now, also when the next try was planned for later."""
        self._hurried.set()
        self._bell.set()

    def request_refresh(self) -> None:
        """Look soon: something has happened."""
        self.snapshots.run_soon(self._clock())
        self._bell.set()

    def set_interval(self, period: float) -> None:
        """Look this often, in seconds."""
        self._period = period
        self.refresh_now()

    def stop(self, timeout: float = PARTING) -> bool:
        """End, whatever is under way, and wait for the end as long as `timeout` allows; False when it lasts."""
        self._stopping.set()
        self._bell.set()
        if not self._thread.is_alive():
            return True
        self._cancel(self._source.cancel)
        until = time.monotonic() + timeout
        for thread in (self._thread, *self._cancelling):
            thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._await_cancellations()
            rest = self.turn()
            self._bell.wait(rest)
            self._bell.clear()

    def turn(self) -> float:
        """Do what is due, and return how many seconds to rest."""
        if self._hurried.is_set():
            self._hurried.clear()
            self.snapshots.due = self.asking.due = self._background.due = 0.0
        elif self.failures and self._clock() < self.snapshots.due:
            return self.snapshots.due - self._clock()
        if self.failures:
            self._post(Connecting())
        if self._clock() >= self.snapshots.due and not (self._read_background() and self._take_snapshot()):
            return max(0.0, self.snapshots.due - self._clock())
        wanted = self._wanted
        is_new = wanted.generation != self._answered
        if wanted.query is not None and (is_new or self._clock() >= self.asking.due) and not self._ask(wanted):
            return max(0.0, self.snapshots.due - self._clock())
        return self._rest()

    def _read_background(self) -> bool:
        """Read the background of snapshots when it is due; False when nothing can be asked."""
        began = self._clock()
        if began < self._background.due:
            return True
        every = max(self._every(None), BACKGROUND_INTERVAL.total_seconds())
        try:
            server_time = self._source.read_background()
        except Exception as error:  # noqa: BLE001 - see below
            return self._hindered(error, _Wanted(self._wanted.generation), self._background, every)
        took = self._clock() - began if server_time is None else server_time.total_seconds()
        self._background.done(began, took=took, every=every)
        return True

    def _take_snapshot(self) -> bool:
        """Take a snapshot; False when nothing can be asked."""
        period = self._every(None)
        try:
            snapshot = self._source.snapshot()
        except Exception as error:  # noqa: BLE001 - no caller could handle it, and the console continues
            return self._hindered(error, _Wanted(self._wanted.generation), self.snapshots, period)
        now = self._clock()
        self.failures = 0
        # To connect, to travel, and to be held up by others' locks takes time without giving the server any work.
        took = snapshot.took.total_seconds()
        server_time = took if snapshot.server_time is None else snapshot.server_time.total_seconds()
        longest = HELD_UP if snapshot.errors else UNTIL_WOKEN
        self.snapshots.done(now - took, took=server_time, every=period, longest=longest)
        self._post(SnapshotReceived(snapshot, took, rest=max(0.0, self.snapshots.due - now)))
        return True

    def _ask(self, wanted: _Wanted) -> bool:
        """Run the screen's queries; False when no query can succeed."""
        assert wanted.query is not None  # noqa: S101 - the caller has looked
        began, every = self._clock(), self._every(wanted.query)
        if wanted.generation != self._answered:
            self.asking.restart()
        with self._lock:
            self.busy_with = wanted.generation
            self._is_idle.clear()
        try:
            answer = wanted.query.ask(self._source)
        except Exception as error:  # noqa: BLE001 - see above
            if self._wanted.generation != wanted.generation:  # it was cancelled for another query
                return True
            self._answered = wanted.generation
            return self._hindered(error, wanted, self.asking, every)
        finally:
            with self._lock:
                self.busy_with = None
                self._is_idle.set()
        now = self._clock()
        self._answered = wanted.generation
        self.asking.done(began, took=now - began, every=every)
        self._post(QueryAnswered(wanted.generation, wanted.query, answer, now - began))
        return True

    def _hindered(self, error: Exception, wanted: _Wanted, limiter: RateLimiter, every: float) -> bool:
        failure, reason = classify_error(error)
        if self._stopping.is_set():
            return False
        # Without the snapshot there is nothing to show, unless it is only late; a query may fail alone.
        if not (failure.is_fatal or (wanted.query is None and not failure.is_transient)):
            limiter.failed(self._clock(), every=every, failure=failure)
            self._post(QueryFailed(wanted.generation, wanted.query, failure, reason))
            return True
        self.failures += 1
        wait = None if failure is FailureKind.DENIED else wait_before(self.failures, self.chance())
        self.snapshots.due = self._clock() + (UNTIL_WOKEN if wait is None else wait)
        self.asking.due = 0.0
        self._post(ConnectionLost(failure, reason, wait))
        return False

    # -- inside ----------------------------------------------------------------------------------------------------

    def _every(self, query: Query | None) -> float:
        own = None if query is None else query.every
        return self._period if own is None else max(self._period, own.total_seconds())

    def _rest(self) -> float:
        dues = [self.snapshots.due]
        wanted = self._wanted
        if wanted.query is not None:
            dues.append(self.asking.due if wanted.generation == self._answered else 0.0)
        return max(0.0, min(dues) - self._clock())

    def _cancel(self, cancel: Callable[[], None]) -> None:
        # Cancelling opens a connection, which may take long, so the caller does not wait.
        cancelling = threading.Thread(target=cancel, name="gw-tui-cancel", daemon=True)
        self._cancelling.append(cancelling)
        cancelling.start()

    def _cancel_unless_idle(self) -> None:
        if not self._is_idle.wait(CANCEL_AFTER):
            self._source.cancel()

    def _await_cancellations(self) -> None:
        """Let requests to cancel arrive first: a late one would cancel the next query instead."""
        while self._cancelling:
            self._cancelling.pop().join()


class ListenThread:
    """Receives announcements of new jobs in its own thread, informs the screen and wakes the reader."""

    def __init__(self, source: DataSource, post: Post, request_refresh: Callable[[], object]) -> None:
        self._source = source
        self._post = post
        self._request_refresh = request_refresh
        self._stopping = threading.Event()
        self._reachable = threading.Event()
        self._ear: JobListener | None = None  # `stop` closes it from another thread, which ends a wait
        self._thread = threading.Thread(target=self._run, name="gw-tui-listener", daemon=True)

    def start(self) -> None:
        """Begin; nothing is opened before the database was reached."""
        self._thread.start()

    def reached(self) -> None:
        """The database answers: it can be listened to."""
        self._reachable.set()

    def stop(self, timeout: float = PARTING) -> bool:
        """End, and wait for the end as long as `timeout` allows."""
        self._stopping.set()
        self._reachable.set()
        if not self._thread.is_alive():
            return True
        if (ear := self._ear) is not None:
            ear.close()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._reachable.wait()
            if self._stopping.is_set():
                return
            self._reachable.clear()
            try:
                self._listen()
                failures = 0
            except Exception as error:  # noqa: BLE001 - no caller could handle it; polling continues without it
                if self._stopping.is_set():
                    return
                failures += 1
                self._post(ListenStateChanged(is_listening=False, reason=classify_error(error)[1]))
                self._stopping.wait(wait_before(failures, 1.0))

    def _listen(self) -> None:
        ear = self._ear = self._source.listen()
        try:
            self._post(ListenStateChanged(is_listening=True))
            while not self._stopping.is_set():
                if received := ear.wait(LISTENING):
                    self._gather(ear, received)
        finally:
            self._ear = None
            ear.close()

    def _gather(self, ear: JobListener, received: int) -> None:
        """Report a burst of announcements as one, at most two per second."""
        until = time.monotonic() + MIN_REFRESH_INTERVAL
        self._stopping.wait(GATHERING.total_seconds())
        received += ear.wait(timedelta())
        self._post(JobsAnnounced(received))
        self._request_refresh()
        self._stopping.wait(max(0.0, until - time.monotonic()))


class ActionThread:
    """Runs actions in its own thread, one after the other, and reports the result of each."""

    def __init__(self, source: DataSource, post: Post, log: ActionLog | None = None) -> None:
        self._source = source
        self._post = post
        self._log = log
        self._acts: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self._halted: Action | None = None  # replaced as a whole, so it needs no lock
        self._thread = threading.Thread(target=self._run, name="gw-tui-actor", daemon=True)

    def start(self) -> None:
        """Begin to wait for actions."""
        self._thread.start()

    def do(self, action: Action) -> None:
        """Have this done after what is under way."""
        self._acts.put(action)

    def halt(self, action: Action) -> None:
        """Let the current batch of an action be its last."""
        self._halted = action

    def stop(self, timeout: float = PARTING) -> bool:
        """End after the action in progress, and wait for that for up to `timeout`."""
        self._acts.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (action := self._acts.get()) is not None:
            self.turn(action)

    def turn(self, action: Action) -> None:
        """Run one action, and report its results."""
        total = Result()
        try:
            for result in self._source.run(action):
                self._record(action, result)
                total = total.followed_by(result)
                self._post(ActionProgressed(action, total))
                if self._halted is action:
                    break
        except Exception as error:  # noqa: BLE001 - no caller could handle it; the operator sees it
            failure, reason = classify_error(error)
            self._record(action, Result(ids=sorted({*action.ids} - {*total.ids})), reason)
            self._post(ActionFinished(action, total, failure, reason))
        else:
            self._post(ActionFinished(action, total))

    def _record(self, action: Action, result: Result, failure: str = "") -> None:
        """Record an action before reporting it: the log must contain removed jobs whatever happens next."""
        if self._log is None:
            return
        try:
            self._log.note(self._source.info, action, result, failure)
        except OSError as error:
            self._post(ActionLogFailed(f"{self._log.path} cannot be written: {error.strerror}"))


class Poller:
    """The three threads as one."""

    def __init__(self, source: DataSource, post: Post, *, period: float = 1.0, log: ActionLog | None = None) -> None:
        self._source = source
        self.reader = QueryThread(source, self._quietly(post), period=period)
        self.listener = ListenThread(source, self._quietly(post), self.reader.request_refresh)
        self.actor = ActionThread(source, self._quietly(post), log)

    def start(self) -> None:
        """Start all threads. Does not block."""
        for each in (self.reader, self.listener, self.actor):
            each.start()

    def stop(self) -> None:
        """End; takes a second and a half at most, whatever the database does."""
        until = time.monotonic() + PARTING
        ended = [each.stop(max(0.0, until - time.monotonic())) for each in (self.listener, self.reader, self.actor)]
        # A thread that still waits for the database holds its connection; the end of the process ends both.
        if all(ended):
            with suppress(GraphileWorkerError):
                self._source.close()

    @staticmethod
    def _quietly(post: Post) -> Post:
        def safely(message: Message) -> None:
            with suppress(RuntimeError):  # the loop is closed, so no screen is left
                post(message)

        return safely
