"""SQLAlchemy: a session in a transaction that is rolled back, and the tasks' own sessions in the same one."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy_shop import Base, Parcel, make_session, send_parcel, tasks

from gw_core import Client, TaskRegistry
from gw_core.testing import (
    Clock,
    DrainResult,
    Queue,
    ScratchDatabase,
    assert_enqueued,
    drain,
    enqueued,
    inline,
    perform,
    refute_enqueued,
)


@pytest.fixture(scope="session")
def engine(gw_database: ScratchDatabase) -> Iterator[Engine]:
    """An engine on the database of the fixture `gw`."""
    engine = create_engine(gw_database.url.replace("postgresql:", "postgresql+psycopg:", 1))
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """A session whose commits end a savepoint; the transaction around it is rolled back."""
    with engine.connect() as connection, connection.begin() as transaction:
        make_session.configure(bind=connection, join_transaction_mode="create_savepoint")
        with make_session() as session:
            yield session
        transaction.rollback()


@pytest.fixture
def client(gw_database: ScratchDatabase) -> Client:
    """A client that only adds jobs on connections of the test."""
    return Client(gw_database.conninfo)


Drain = Callable[..., DrainResult]


def test_a_parcel_adds_its_jobs(session: Session, client: Client) -> None:
    parcel = send_parcel(session, client, "1 Main Street")
    assert_enqueued(session, "ship", {"parcel": parcel.id}, queue_name="ship")
    assert_enqueued(session, "track", {"parcel": parcel.id}, run_at=timedelta(hours=6))


def test_the_jobs_of_other_tests_are_not_seen(session: Session) -> None:
    assert enqueued(session) == []


def test_a_parcel_is_shipped_and_gets_a_label(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel = send_parcel(session, client, "1 Main Street")
    result = gw_drain(session)
    assert [job.task for job in result.completed] == ["ship", "label"]
    session.refresh(parcel)
    assert (parcel.status, parcel.label) == ("shipped", f"L-{parcel.id}")


def test_tracking_begins_after_six_hours(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel, clock = send_parcel(session, client, "1 Main Street"), Clock()
    clock.advance(timedelta(hours=6, minutes=1))
    gw_drain(session, now=clock)
    session.refresh(parcel)
    assert parcel.status == "arrived"


def test_a_parcel_without_an_address_waits(session: Session, client: Client, gw_drain: Drain) -> None:
    send_parcel(session, client, "")
    result = gw_drain(session, raises=False)
    assert [str(each.error) for each in result.failed] == ["the address is missing"]
    [job] = assert_enqueued(session, "ship")
    assert job.run_at - job.created_at >= timedelta(hours=1)


def test_an_sql_error_of_a_task_undoes_only_that_task(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel = send_parcel(session, client, "1 Main Street")
    session.add(Parcel(address="elsewhere", label=f"L-{parcel.id}"))
    session.commit()
    result = gw_drain(session, raises=False)
    assert [type(each.error) for each in result.failed] == [IntegrityError]
    session.refresh(parcel)
    assert (parcel.status, parcel.label) == ("shipped", None)


def test_the_exception_of_a_task_reaches_the_test(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel = send_parcel(session, client, "1 Main Street")
    session.add(Parcel(address="elsewhere", label=f"L-{parcel.id}"))
    with pytest.raises(IntegrityError):
        gw_drain(session)


def test_unwritten_changes_of_the_session_are_seen_by_tasks(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel = send_parcel(session, client, "")
    parcel.address = "1 Main Street"
    assert len(gw_drain(session).completed) == 2


def test_a_task_that_commits_the_session_of_the_test_works(session: Session, client: Client, gw_drain: Drain) -> None:
    parcel = Parcel(address="1 Main Street")
    session.add(parcel)
    session.flush()
    client.add("commit", conn=session)
    own = TaskRegistry()
    own.register("commit", lambda payload: session.commit())
    assert len(drain(session, tasks=own).completed) == 1
    assert session.scalars(select(Parcel)).all() == [parcel]


def test_a_connection_can_be_drained(session: Session, client: Client, gw_drain: Drain) -> None:
    send_parcel(session, client, "1 Main Street")
    assert len(gw_drain(session.connection()).completed) == 2


def test_a_task_performs_without_a_queue(session: Session) -> None:
    parcel = Parcel(address="1 Main Street")
    session.add(parcel)
    session.commit()
    perform("ship", {"parcel": parcel.id}, tasks=tasks, conn=session)
    session.refresh(parcel)
    assert parcel.status == "shipped"
    assert_enqueued(session, "label")


def test_jobs_run_where_they_are_added(session: Session, client: Client) -> None:
    with inline(tasks) as attempts:
        parcel = send_parcel(session, client, "1 Main Street")
    assert [attempt.job.task for attempt in attempts] == ["label", "ship", "track"]
    session.refresh(parcel)
    assert parcel.status == "arrived"
    refute_enqueued(session, "ship")


def test_the_fixture_gw_has_a_queue_of_its_own(gw: Queue) -> None:
    gw.clock.advance(timedelta(days=1))
    gw.client.add("later", {"n": 1}, run_at=timedelta(hours=1))
    gw.assert_enqueued("later", {"n": 1}, run_at=timedelta(hours=1))
    assert len(gw.enqueued()) == 1


def test_the_fixture_gw_starts_empty(gw: Queue) -> None:
    assert gw.enqueued() == []


def test_the_fixture_gw_drains(gw: Queue) -> None:
    seen: list[dict] = []
    own = TaskRegistry()
    own.register("see", seen.append)
    gw.client.add("see", {"n": 1})
    assert gw.drain(tasks=own)
    assert seen == [{"n": 1}]
