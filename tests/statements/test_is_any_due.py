"""is_any_available.sql and is_any_due.sql: whether an idle worker's next claim could find a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statements.statement_fixture import HOUR, Queue


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda queue: queue.add(), id="ready"),
        pytest.param(lambda queue: queue.add("unknown here", queue_name="q"), id="of another task and a queue"),
        pytest.param(lambda queue: (queue.add(run_at=HOUR), queue.add(priority=5)), id="behind a scheduled one"),
    ],
)
def test_any_job_that_is_due_counts(queue: Queue, arrange: Callable[[Queue], object]) -> None:
    arrange(queue)

    assert not queue.store.claims.is_nothing_due()
    assert not queue.store.claims.is_nothing_due()


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda queue: None, id="no job at all"),
        pytest.param(lambda queue: queue.claimed(), id="running"),
        pytest.param(lambda queue: queue.change(queue.add(), attempts=25), id="permanently failed"),
        pytest.param(lambda queue: queue.add(run_at=HOUR), id="scheduled"),
        pytest.param(lambda queue: queue.add(run_at=HOUR, queue_name="q"), id="scheduled in a queue"),
    ],
)
def test_other_jobs_do_not_count(queue: Queue, arrange: Callable[[Queue], object]) -> None:
    arrange(queue)

    assert queue.store.claims.is_nothing_due()
    assert queue.store.claims.is_nothing_due()


def test_the_answer_follows_the_jobs(queue: Queue) -> None:
    later = queue.add(run_at=HOUR)
    assert queue.store.claims.is_nothing_due()
    assert not queue.store.claims.is_nothing_due(queue.now() + 2 * HOUR)

    queue.change(later, run_at="=now()")
    assert not queue.store.claims.is_nothing_due()

    queue.complete(queue.claimed(run_at=-HOUR), *queue.claim())
    assert queue.store.claims.is_nothing_due()
    queue.add()
    assert not queue.store.claims.is_nothing_due()


def test_one_of_ten_polls_claims_without_asking(queue: Queue) -> None:
    assert [queue.store.claims.is_nothing_due() for _ in range(10)] == [True] * 9 + [False]
