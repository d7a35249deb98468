"""A partition of history that is made while other sessions read and write: they wait, and then miss nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.rows import SCHEMA
from support.waiting import wait_until

from gw_core import Job
from gw_core.domain.job.history import Keep
from gw_core.front_ends import Completed
from gw_core.postgres.connection.statements import query
from statements.statement_fixture import OURS, Queue, a_failure

KEEPS = {"mail": Keep(timedelta(days=7))}
FUNCTION = "_private_gw_make_history_partition"
MAKE = f"select {FUNCTION}((now() at time zone 'UTC')::date + 7)"
PAGE = {
    "finished_at": "infinity",
    "job_id": 2**63 - 1,
    "attempt": 2**31 - 1,
    "limit": 9,
    "with_result": False,
    "with_payload": False,
}


@pytest.fixture(autouse=True)
def _no_partitions(queue: Queue) -> Iterator[None]:
    """Rows wait in the default partition, as before a worker has made the first partition."""
    queue.wait_for_midnight()
    drop_partitions(queue)
    # A session that waits gives up after 200 ms, and the machine may pause for longer than that.
    queue.run(f"alter function {FUNCTION} set lock_timeout = '1min'")
    yield
    queue.run(f"alter function {FUNCTION} set lock_timeout = '200ms'")
    drop_partitions(queue)


def drop_partitions(queue: Queue) -> None:
    queue.drop_history_partitions()
    queue.run("truncate _private_gw_history")


def waiting_pids(queue: Queue) -> list[int]:
    found = queue.rows(
        "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return [pid for (pid,) in found]


@contextmanager
def making_a_partition(queue: Queue) -> Iterator[Callable[[], Any]]:
    """Keep open the transaction that makes the partition; the function commits it."""
    with psycopg.connect(queue.url, options=f"-c search_path={SCHEMA}") as maker:
        maker.execute(MAKE)
        yield maker.commit


def beside(queue: Queue, action: Callable[[], Any]) -> Any:
    """Run the action until it waits for the transaction that makes a partition, then let that one commit."""
    answers: list[Any] = []

    def act() -> None:
        try:
            answers.append(action())
        except psycopg.Error as error:
            answers.append(error)

    with making_a_partition(queue) as commit:
        thread = threading.Thread(target=act)
        thread.start()
        wait_until(lambda: waiting_pids(queue), what="the session to wait for the lock")
        commit()
        thread.join(60)
    return answers[0]


def complete(queue: Queue, *jobs: Job) -> Set[int]:
    return queue.store.complete([Completed(job, 0.1) for job in jobs], worker_id=OURS, keeps=KEEPS).ids


def read(queue: Queue, name: str, values: dict[str, Any]) -> list[Any]:
    with psycopg.connect(queue.url) as reader:
        return reader.execute(query(name, SCHEMA, SELECTION="true"), values).fetchall()


@pytest.mark.parametrize("name", ["job_end", "job_history", "list_history", "count_history"])
def test_a_reader_finds_rows_that_move_to_their_partition(queue: Queue, name: str) -> None:
    job = queue.claimed()
    complete(queue, job)
    values = {"job_end": {"job_id": job.id, "schema": SCHEMA}, "job_history": {"job_id": job.id}, "list_history": PAGE}

    rows = beside(queue, lambda: read(queue, name, values.get(name, {})))

    assert len(rows) == 1
    assert job.id in rows[0] or name == "count_history"


@pytest.mark.parametrize("kind", ["complete", "fail"])
def test_an_outcome_is_recorded_while_its_partition_is_made(queue: Queue, kind: str) -> None:
    job = queue.claimed()

    def settle() -> Set[int]:
        if kind == "complete":
            return complete(queue, job)
        return queue.store.fail([a_failure(job)], worker_id=OURS, keeps=KEEPS).ids

    assert beside(queue, settle) == {job.id}
    assert queue.value("select count(*) from _private_gw_history") == 1
    assert queue.value("select count(*) from _private_gw_history_default") == 0


def test_of_two_workers_that_make_a_partition_the_second_finds_it_made(queue: Queue) -> None:
    def make() -> Any:
        with psycopg.connect(queue.url, options=f"-c search_path={SCHEMA}", autocommit=True) as second:
            return second.execute(MAKE).fetchone()

    assert beside(queue, make) == (True,)
