"""The querying threads: intervals, load, failures and generations, step by step; and that they end in time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from msgspec import structs
from support.console_source import QueueSource
from support.task_builders import a_job
from support.waiting import wait_until
from textual.message import Message

from gw_core.errors import DatabaseUnavailableError, PermissionDeniedError, SchemaMissingError
from gw_core.front_ends import AuthenticationError, LockTimeoutError, QueueSnapshot, StatementTimeoutError
from gw_tui.actions import Fail, Retry
from gw_tui.data.messages import (
    ActionFinished,
    Connecting,
    ConnectionLost,
    JobsAnnounced,
    ListenStateChanged,
    QueryAnswered,
    QueryFailed,
    SnapshotReceived,
)
from gw_tui.data.poller import (
    BACKGROUND,
    BLURRED,
    FORBIDDEN_INTERVAL,
    QUERIES,
    SNAPSHOTS,
    UNTIL_WOKEN,
    ActionThread,
    ListenThread,
    Poller,
    QueryThread,
)
from gw_tui.data.source import DataSource, Query, classify_error
from gw_tui.rules.connection_state import FailureKind

GONE = DatabaseUnavailableError("the database is not available: gone")


@dataclass(frozen=True)
class HowMany(Query):
    """Counts queues."""

    number: int = 0

    def ask(self, source: DataSource) -> object:
        return len(source.queues())


@dataclass(frozen=True)
class Seldom(HowMany):
    """The same, now and then."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)


class Room:
    """A reader whose clock the test controls, on a source with configurable duration and failures."""

    def __init__(self, *, period: float = 1.0) -> None:
        self.now = 1_000.0
        self.takes = 0.002
        self.source = QueueSource()
        self.posted: list[Message] = []
        self.reader = QueryThread(
            self.source, self.posted.append, period=period, clock=lambda: self.now, chance=lambda: 0.5
        )
        snapshot, queues = self.source.snapshot, self.source.queues
        self.source.snapshot = self._lasting(snapshot)
        self.source.queues = self._lasting(queues)

    def _lasting(self, read: Callable[..., object]) -> Callable[..., object]:
        def lasting(*arguments: object) -> object:
            self.now += self.takes
            answer = read(*arguments)
            return (
                structs.replace(answer, took=timedelta(seconds=self.takes))
                if isinstance(answer, QueueSnapshot)
                else answer
            )

        return lasting

    def count_counts(self, server_time: timedelta = timedelta(milliseconds=2)) -> list[float]:
        """Note from now on when it is counted what workers hold."""
        counts: list[float] = []

        def read_background() -> timedelta:
            counts.append(self.now)
            return server_time

        self.source.read_background = read_background
        return counts

    def until_next_snapshot(self) -> float:
        return self.reader.snapshots.due - self.now

    def turn(self) -> float:
        self.posted.clear()
        return self.reader.turn()

    def rest(self) -> list[str]:
        """Advance by the rest that the previous step returned, and return the next one."""
        self.now += self.turn()
        self.turn()
        return self.kinds

    @property
    def kinds(self) -> list[str]:
        return [type(each).__name__ for each in self.posted]


@pytest.fixture
def room() -> Room:
    return Room()


# -- paces -------------------------------------------------------------------------------------------------------------


def test_a_step_brings_the_snapshot_and_the_answer(room: Room) -> None:
    room.reader.ask(HowMany(), 1)

    rest = room.turn()

    assert room.kinds == ["SnapshotReceived", "QueryAnswered"]
    assert 0.9 < rest <= 1.0


def test_nothing_is_asked_before_it_is_due(room: Room) -> None:
    room.reader.ask(HowMany(), 1)
    room.turn()
    room.now += 0.5

    room.turn()

    assert room.kinds == []


def test_a_seldom_question_is_asked_seldom(room: Room) -> None:
    room.reader.ask(Seldom(), 1)
    room.turn()
    answers = 0
    for _ in range(10):
        room.now += 1.01
        room.turn()
        answers += room.kinds.count("QueryAnswered")

    assert answers == 2


@pytest.mark.parametrize("takes", [0.001, 0.02, 0.1, 0.4])
def test_the_console_never_takes_more_than_a_twentieth_of_the_time(room: Room, takes: float) -> None:
    room.takes = takes
    room.reader.ask(HowMany(), 1)
    began, busy = room.now, 0.0
    for _ in range(30):
        before = room.now
        rest = room.turn()
        busy += room.now - before
        room.now += rest

    assert busy / (room.now - began) <= 0.05 + 3 * takes / (room.now - began)


def test_five_cheap_refreshes_a_second_are_five(room: Room) -> None:
    room.reader.set_interval(0.2)
    room.reader.ask(HowMany(), 1)
    began, received = room.now, 0
    while room.now < began + 20:
        room.now += room.turn() + 0.005  # waiting threads wake a little late
        received += room.kinds.count("SnapshotReceived")

    assert received in range(99, 102)


def test_locks_of_workers_are_counted_rarely_however_often_the_console_refreshes(room: Room) -> None:
    counts = room.count_counts()
    room.reader.set_interval(0.2)
    began = room.now
    while room.now < began + 19.5:
        room.now += room.turn()

    assert counts == [pytest.approx(began + 2 * each, abs=0.3) for each in range(10)]


def test_locks_of_workers_are_counted_immediately_on_a_manual_refresh(room: Room) -> None:
    counts = room.count_counts()
    room.turn()
    room.reader.refresh_now()
    room.turn()

    assert len(counts) == 2


def test_an_expensive_count_of_locks_is_made_less_often_than_snapshots(room: Room) -> None:
    counts = room.count_counts(server_time=timedelta(milliseconds=50))
    began, received = room.now, 0
    while room.now < began + 19.5:
        room.now += room.turn()
        received += room.kinds.count("SnapshotReceived")

    assert (len(counts), received) == (2, 20)


def test_without_a_database_what_workers_hold_is_not_counted_either(room: Room) -> None:
    def gone() -> timedelta:
        raise GONE

    room.turn()
    room.source.read_background = gone
    room.reader.refresh_now()
    room.turn()

    assert room.kinds == ["ConnectionLost"]


def test_one_slow_refresh_among_fast_ones_makes_no_long_pause(room: Room) -> None:
    room.now += room.turn()
    room.now += room.turn()
    room.takes = 5.0
    rest = room.turn()
    room.now += rest

    assert rest <= 1.0
    assert room.turn() > 100  # two of three are slow: now it is the database
    received = [each for each in room.posted if isinstance(each, SnapshotReceived)]
    assert received[-1].rest > 100


def test_what_another_question_cost_says_nothing_of_a_new_one(room: Room) -> None:
    room.reader.ask(HowMany(1), 1)
    for _ in range(3):
        room.now += room.turn()
    room.takes = 0.4
    room.reader.ask(HowMany(2), 2)
    room.turn()

    assert room.reader.asking.due - room.now == pytest.approx(0.4 * (QUERIES - 1))


def test_a_new_question_is_asked_immediately_whatever_the_last_one_cost(room: Room) -> None:
    room.takes = 0.4
    room.reader.ask(HowMany(1), 1)
    room.turn()
    room.reader.ask(HowMany(2), 2)

    room.turn()

    assert [each.generation for each in room.posted if isinstance(each, QueryAnswered)] == [2]


def test_a_longer_period_refreshes_less_often(room: Room) -> None:
    room.reader.set_interval(BLURRED)

    assert room.turn() > BLURRED - 0.5


def test_an_announcement_refreshes_immediately(room: Room) -> None:
    room.turn()
    room.now += 0.2
    room.reader.request_refresh()

    room.turn()

    assert room.kinds == ["SnapshotReceived"]


def test_announcements_refresh_no_more_often_than_an_expensive_refresh_allows(room: Room) -> None:
    room.takes = 0.1
    room.turn()
    room.now += 1.0
    room.reader.request_refresh()

    assert room.turn() == pytest.approx(0.1 * SNAPSHOTS - 1.1, abs=0.1)
    assert room.kinds == []


def test_the_way_to_the_database_does_not_count_as_work_for_the_server(room: Room) -> None:
    snapshot = room.source.snapshot
    room.takes = 0.3
    room.source.snapshot = lambda: structs.replace(snapshot(), server_time=timedelta(milliseconds=2))
    room.turn()

    assert room.until_next_snapshot() < 1.0


def test_connecting_does_not_count_as_work_for_the_server(room: Room) -> None:
    def connecting() -> QueueSnapshot:
        room.now += 3.0
        return QueueSource().snapshot()

    room.source.snapshot = connecting
    room.turn()

    assert room.until_next_snapshot() < 1.0


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_lost_database_is_tried_again_at_growing_intervals(room: Room) -> None:
    room.source.go_down(GONE)
    waits = []
    for _ in range(10):
        rest = room.turn()
        (lost,) = [each for each in room.posted if isinstance(each, ConnectionLost)]
        waits.append(lost.retry_in)
        room.now += rest

    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == 15.0


def test_nothing_is_tried_before_its_time_and_every_try_is_reported(room: Room) -> None:
    room.source.go_down(GONE)
    room.turn()

    assert room.turn() > 0
    assert room.kinds == []
    assert room.rest() == ["Connecting", "ConnectionLost"]


def test_hurrying_tries_immediately_and_all_is_well_again_without_a_key(room: Room) -> None:
    room.reader.ask(HowMany(), 1)
    room.turn()
    room.source.go_down(GONE)
    room.reader.refresh_now()
    room.turn()
    room.source.come_back()
    room.reader.refresh_now()

    room.turn()

    assert room.kinds == ["Connecting", "SnapshotReceived", "QueryAnswered"]


def test_a_rejected_client_waits_for_a_key(room: Room) -> None:
    room.source.go_down(AuthenticationError("the server rejected the connection: password"))

    assert room.turn() == pytest.approx(UNTIL_WOKEN)
    assert [each.retry_in for each in room.posted if isinstance(each, ConnectionLost)] == [None]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        pytest.param(StatementTimeoutError("too long"), FailureKind.SLOW, id="slow"),
        pytest.param(LockTimeoutError("locked"), FailureKind.LOCKED, id="locked"),
        pytest.param(PermissionDeniedError("no right"), FailureKind.FORBIDDEN, id="forbidden"),
        pytest.param(SchemaMissingError("none"), FailureKind.NO_SCHEMA, id="no schema"),
        pytest.param(GONE, FailureKind.LOST, id="lost"),
        pytest.param(AuthenticationError('database "x" does not exist'), FailureKind.LOST, id="no database yet"),
        pytest.param(AuthenticationError('role "x" does not exist'), FailureKind.DENIED, id="no such role"),
        pytest.param(ZeroDivisionError("by zero"), FailureKind.ERROR, id="our own fault"),
    ],
)
def test_every_error_is_one_kind_of_failure(error: Exception, failure: FailureKind) -> None:
    assert classify_error(error)[0] is failure


def test_a_slow_question_is_asked_half_as_often_and_hinders_nothing_else(room: Room) -> None:
    def slow(*_: object, **__: object) -> object:
        raise StatementTimeoutError("too long")

    room.source.queues = slow
    room.reader.ask(HowMany(), 1)
    room.turn()
    assert room.kinds == ["SnapshotReceived", "QueryFailed"]

    found = []
    for _ in range(20):
        room.now += 1.01
        room.turn()
        found += room.kinds
    assert found.count("SnapshotReceived") == 20
    assert found.count("QueryFailed") == 3


def test_a_question_without_a_right_is_asked_rarely(room: Room) -> None:
    def forbidden(*_: object, **__: object) -> object:
        raise PermissionDeniedError("no right")

    room.source.queues = forbidden
    room.reader.ask(HowMany(), 1)
    room.turn()
    room.now += FORBIDDEN_INTERVAL - 1
    room.turn()
    assert room.kinds == ["SnapshotReceived"]

    room.now += 2
    room.turn()
    assert "QueryFailed" in room.kinds


def test_a_snapshot_that_is_only_slow_is_no_loss(room: Room) -> None:
    room.source.go_down(StatementTimeoutError("too long"))

    room.turn()

    assert room.kinds == ["QueryFailed"]


def test_a_defect_of_ours_does_not_end_the_thread(room: Room) -> None:
    room.source.go_down(ZeroDivisionError("division by zero"))

    room.turn()

    (lost,) = [each for each in room.posted if isinstance(each, ConnectionLost)]
    assert (lost.failure, lost.reason) == (FailureKind.ERROR, "ZeroDivisionError: division by zero")


# -- with threads ------------------------------------------------------------------------------------------------------


class Post:
    """Takes what is posted from any thread."""

    def __init__(self) -> None:
        self.posted: list[Message] = []

    def __call__(self, message: Message) -> None:
        self.posted.append(message)

    def find(self, kind: type[Message]) -> list[Message]:
        return [each for each in self.posted if isinstance(each, kind)]


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def source() -> Any:
    return QueueSource()


@pytest.fixture
def poller(source: Any, post: Post) -> Iterator[Poller]:
    poller = Poller(source, post, period=0.05)
    poller.start()
    yield poller
    poller.stop()


def names() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("gw-tui")}


def busy_reader(source: Any, post: Post) -> QueryThread:
    """Return a reader whose first question is held."""
    reader = QueryThread(source, post, period=30.0)
    reader.start()
    wait_until(lambda: post.find(SnapshotReceived))
    source.hold()
    reader.ask(HowMany(1), 1)
    wait_until(lambda: source.is_busy)
    return reader


def test_a_question_given_up_is_cancelled_and_its_answer_dropped(source: Any, post: Post) -> None:
    reader = busy_reader(source, post)

    reader.ask(HowMany(2), 2)

    wait_until(lambda: reader.busy_with == 2)  # the first was cancelled: nothing else ends it
    source.release()
    wait_until(lambda: post.find(QueryAnswered))
    assert [each.generation for each in post.find(QueryAnswered)] == [2]
    assert not post.find(QueryFailed)
    assert reader.stop(60)


def test_a_late_cancellation_does_not_reach_the_next_query(source: Any, post: Post) -> None:
    """A request to cancel opens a connection, so the query may end before the request arrives."""
    order: list[str] = []
    may_end, has_begun = threading.Event(), threading.Event()

    @dataclass(frozen=True)
    class Slow(Query):
        def ask(self, source: DataSource) -> object:
            return may_end.wait(30)

    @dataclass(frozen=True)
    class Next(Query):
        def ask(self, source: DataSource) -> object:
            order.append("next query")
            return has_begun.set()

    def cancel() -> None:
        may_end.set()
        has_begun.wait(0.3)
        order.append("cancelled")

    source.cancel = cancel
    reader = QueryThread(source, post, period=30.0)
    reader.start()
    reader.ask(Slow(), 1)
    wait_until(lambda: reader.busy_with == 1)

    reader.ask(Next(), 2)

    wait_until(lambda: len(order) == 2)
    assert order == ["cancelled", "next query"]
    assert reader.stop(60)


def test_a_query_that_ends_soon_is_not_cancelled(source: Any, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_tui.data.poller.CANCEL_AFTER", 60.0)
    cancelled: list[None] = []
    source.cancel = lambda: cancelled.append(None)
    reader = busy_reader(source, post)

    reader.ask(HowMany(2), 2)
    source.release()

    wait_until(lambda: post.find(QueryAnswered) and post.find(QueryAnswered)[-1].generation == 2)
    assert cancelled == []
    assert reader.stop(60)


def test_announcements_are_gathered_into_one_refresh(source: Any, post: Post, poller: Poller) -> None:
    wait_until(lambda: post.find(SnapshotReceived))
    poller.listener.reached()
    wait_until(lambda: post.find(ListenStateChanged))
    source.queue.announce(3)
    source.queue.announce(4)

    wait_until(lambda: sum(each.jobs for each in post.find(JobsAnnounced)) == 7)


def test_a_listener_that_misses_notifications_listens_again_when_the_database_is_back(source: Any, post: Post) -> None:
    listener = ListenThread(source, post, lambda: None)
    listener.start()
    listener.reached()
    wait_until(lambda: post.find(ListenStateChanged))
    source.go_down(GONE)
    wait_until(lambda: len(post.find(ListenStateChanged)) == 2)
    source.come_back()
    listener.reached()
    wait_until(lambda: len(post.find(ListenStateChanged)) == 3)

    assert [each.is_listening for each in post.find(ListenStateChanged)] == [True, False, True]
    assert listener.stop(60)


def test_acts_are_answered_one_after_the_other(source: Any, post: Post) -> None:
    actor = ActionThread(source, post)
    job = next(each for each in source.queue.states() if each.state == "failed").job
    missing = Fail(jobs=[a_job(id=1)])

    actor.turn(Retry(jobs=[job]))
    actor.turn(missing)
    source.go_down(GONE)
    actor.turn(missing)

    done, skipped, failed = post.find(ActionFinished)
    assert done.result.done == (str(job.id),)
    assert skipped.result.skipped[0].why == "gone"
    assert failed.failure is FailureKind.LOST


def test_leaving_cancels_the_query_and_closes_the_source(source: Any, post: Post) -> None:
    poller = Poller(source, post, period=0.05)
    poller.start()
    wait_until(lambda: post.find(SnapshotReceived))
    source.hold()
    poller.reader.refresh_now()
    wait_until(lambda: source.is_busy)

    poller.stop()

    assert source.closed  # it stays open while a thread waits for an answer
    wait_until(lambda: not names())


def test_a_try_is_reported_before_it_is_made(source: Any, post: Post) -> None:
    source.go_down(GONE)
    reader = QueryThread(source, post, chance=lambda: 0.0)
    reader.start()

    wait_until(lambda: len(post.find(ConnectionLost)) >= 2)

    assert isinstance(post.posted[1], Connecting)
    assert reader.stop(60)


def test_the_shares_of_all_lanes_are_a_twentieth_together() -> None:
    assert 1 / SNAPSHOTS + 1 / QUERIES + 1 / BACKGROUND <= 0.05
