"""is_anything_runnable.sql: whether a run that ends when nothing is left may end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from statements.statement_support import HOUR, THEIRS, Queue


def is_anything_runnable(queue: Queue, **options: Any) -> bool:
    return queue.store.is_anything_runnable(tasks=queue.store.register_tasks(["mail"]), **options)


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_a_job_that_could_be_claimed_is(queue: Queue, queue_name: str | None) -> None:
    queue.add(queue_name=queue_name)

    assert is_anything_runnable(queue)


def test_a_job_whose_row_is_locked_for_a_moment_is(queue: Queue) -> None:
    queue.add()
    with queue.locking("select from _private_jobs for update"):
        assert is_anything_runnable(queue)


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda queue: None, id="no job at all"),
        pytest.param(lambda queue: queue.add(run_at=HOUR), id="scheduled"),
        pytest.param(lambda queue: queue.claimed(), id="running"),
        pytest.param(lambda queue: queue.change(queue.add(), attempts=25), id="failed for good"),
        pytest.param(lambda queue: queue.add("unknown here"), id="another task"),
        pytest.param(lambda queue: queue.add(flags=["no"]), id="a forbidden flag"),
        pytest.param(
            lambda queue: (queue.add(queue_name="q"), queue.claim(pool=THEIRS), queue.add(queue_name="q")),
            id="of a held queue",
        ),
    ],
)
def test_a_job_that_cannot_be_claimed_is_not(queue: Queue, arrange: Callable[[Queue], object]) -> None:
    arrange(queue)

    assert not is_anything_runnable(queue, forbidden_flags=["no"])


def test_the_clients_clock_counts_when_given(queue: Queue) -> None:
    queue.add(run_at=HOUR)

    assert is_anything_runnable(queue, now=queue.now() + 2 * HOUR)
    assert not is_anything_runnable(queue, now=queue.now() - timedelta(minutes=1))
