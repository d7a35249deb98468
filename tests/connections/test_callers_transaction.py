"""Jobs that are added and removed on the caller's connection belong to the caller's transaction."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product

import psycopg
import pytest
from connections.kinds import CallersTransaction

from gw_core import JobSpec
from gw_core.errors import GraphileWorkerError, InvalidJobError

Outside = psycopg.Connection[tuple[int, ...]]

BULK = 20
"""How many jobs one statement adds in these tests: each kind of connection sends several statements."""

STARTS = {"first statement": None, "after a statement": "select 1"}


@pytest.fixture(autouse=True)
def _small_bulks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.postgres.road.add_calls.BULK", BULK)


def count(outside: Outside) -> int:
    row = outside.execute("select count(*) from graphile_worker._private_jobs").fetchone()
    assert row is not None
    return row[0]


def specs(number: int, *, keyed: bool) -> list[JobSpec]:
    return [JobSpec(task="mail", payload={"n": n}, job_key=f"key {n}" if keyed else None) for n in range(number)]


ADDS: dict[str, tuple[int, Callable[[CallersTransaction], object]]] = {
    "add": (1, lambda callers: callers.add(JobSpec(task="mail", payload={"n": "ü"}, flags=["a"], queue_name="q"))),
    "add_many, one statement": (3, lambda callers: callers.add_many(specs(3, keyed=False))),
    "add_many, keyed": (3, lambda callers: callers.add_many(specs(3, keyed=True))),
    "add_many, several statements": (BULK + 1, lambda callers: callers.add_many(specs(BULK + 1, keyed=False))),
}


@pytest.mark.parametrize(("number", "add"), ADDS.values(), ids=ADDS)
def test_jobs_appear_with_the_commit_and_vanish_with_the_rollback(
    callers: CallersTransaction, outside: Outside, number: int, add: Callable[[CallersTransaction], object]
) -> None:
    for start, is_kept in product(STARTS, [False, True]):
        if statement := STARTS[start]:
            callers.execute(statement)

        add(callers)

        assert count(outside) == 0, (start, is_kept)
        if not is_kept:
            callers.rollback()
        callers.commit()
        assert count(outside) == (number if is_kept else 0), (start, is_kept)
        outside.execute("delete from graphile_worker._private_jobs")


@pytest.mark.parametrize(("number", "add"), ADDS.values(), ids=ADDS)
def test_jobs_vanish_with_a_savepoint(
    callers: CallersTransaction, outside: Outside, number: int, add: Callable[[CallersTransaction], object]
) -> None:
    callers.add(JobSpec(task="kept"))
    callers.in_savepoint(lambda: add(callers), undone=True)
    callers.in_savepoint(lambda: callers.add(JobSpec(task="kept too")), undone=False)
    callers.commit()

    assert count(outside) == 2


def test_a_removal_belongs_to_the_transaction(callers: CallersTransaction, outside: Outside) -> None:
    callers.add(JobSpec(task="mail", job_key="k"))
    callers.commit()

    assert callers.remove("k").job.job_key == "k"
    assert count(outside) == 1
    callers.rollback()
    assert count(outside) == 1
    callers.remove("k")
    callers.commit()
    assert count(outside) == 0
    assert callers.remove("k") is None


def test_a_job_is_returned_as_it_was_stored(callers: CallersTransaction, outside: Outside) -> None:
    job = callers.add(JobSpec(task="mail", payload={"text": "100 % ü 🚂 :name $1"}, priority=-3, flags=["b", "a"]))
    callers.commit()

    row = outside.execute("select id, payload::text from graphile_worker._private_jobs where priority = -3").fetchone()
    assert row == (job.id, job.payload_json)
    assert (job.payload, set(job.flags)) == ({"text": "100 % ü 🚂 :name $1"}, {"a", "b"})
    assert job.created_at.tzinfo is not None


@pytest.mark.parametrize("time", [datetime.max, datetime.min], ids=["max", "min"])
def test_the_ends_of_time_are_not_the_time_of_a_job_that_waits_for_others(
    callers: CallersTransaction, outside: Outside, time: datetime
) -> None:
    callers.add(JobSpec(task="mail", run_at=time.replace(tzinfo=UTC)))
    callers.commit()

    assert outside.execute("select isfinite(run_at)::int from graphile_worker._private_jobs").fetchone() == (1,)


def test_an_error_of_the_database_is_one_of_gw(callers: CallersTransaction) -> None:
    with pytest.raises(InvalidJobError, match="calm"):
        callers.add(JobSpec(task="mail", priority=-10))
    callers.rollback()


@pytest.mark.parametrize("bulk", [False, True], ids=["one job", "a bulk"])
def test_an_error_of_the_database_shows_no_payload(callers: CallersTransaction, bulk: bool) -> None:
    """PostgreSQL quotes the rejected row below its message, and SQLAlchemy quotes the values."""
    spec = JobSpec(task="a", payload={"token": "tok_live_x9"}, priority=-10)
    with pytest.raises(InvalidJobError, match="calm") as caught:
        callers.add_many([spec, spec]) if bulk else callers.add(spec)

    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.__cause__)
    assert "calm" in str(caught.value.__cause__)
    assert "tok_live_x9" not in shown


def test_a_failed_bulk_leaves_the_transaction_usable(callers: CallersTransaction, outside: Outside) -> None:
    callers.add(JobSpec(task="kept"))

    with pytest.raises(GraphileWorkerError):
        callers.add_many([*specs(BULK, keyed=False), JobSpec(task="mail", priority=-10)])
    callers.commit()

    assert count(outside) == 1


def test_without_a_transaction_jobs_are_committed_with_each_call(
    autocommit: CallersTransaction, outside: Outside
) -> None:
    autocommit.add(JobSpec(task="mail", job_key="k"))
    assert count(outside) == 1
    with pytest.raises(GraphileWorkerError):
        autocommit.add_many([*specs(BULK, keyed=False), JobSpec(task="mail", priority=-10)])
    assert count(outside) == 1
    autocommit.add_many(specs(BULK + 1, keyed=False))
    assert count(outside) == BULK + 2
    autocommit.remove("k")
    assert count(outside) == BULK + 1
