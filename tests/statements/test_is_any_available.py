"""is_any_available.sql: whether an idle worker's next claim could find a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statements.statement_fixture import HOUR, Queue


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda queue: queue.add(), id="ready"),
        pytest.param(lambda queue: queue.add(run_at=HOUR), id="scheduled"),
        pytest.param(lambda queue: queue.add("unknown here", queue_name="q"), id="of another task and a queue"),
    ],
)
def test_any_job_that_waits_counts(queue: Queue, arrange: Callable[[Queue], object]) -> None:
    arrange(queue)

    assert not queue.store.claims.is_nothing_waiting()


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda queue: None, id="no job at all"),
        pytest.param(lambda queue: queue.claimed(), id="running"),
        pytest.param(lambda queue: queue.change(queue.add(), attempts=25), id="permanently failed"),
    ],
)
def test_jobs_that_do_not_wait_do_not_count(queue: Queue, arrange: Callable[[Queue], object]) -> None:
    arrange(queue)

    assert queue.store.claims.is_nothing_waiting()


def test_after_a_job_that_waits_only_a_claim_that_finds_one_makes_it_ask_again(queue: Queue) -> None:
    later = queue.add(run_at=HOUR)
    assert not queue.store.claims.is_nothing_waiting()

    queue.run("delete from _private_jobs where id = %s", later)
    assert not queue.store.claims.is_nothing_waiting()

    queue.complete(queue.claimed())
    assert queue.store.claims.is_nothing_waiting()
