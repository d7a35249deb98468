"""is_anything_runnable.sql: whether a run that ends when nothing is left may end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from statements.statement_fixture import HOUR, THEIRS, Queue


def is_anything_runnable(queue: Queue, **options: Any) -> bool:
    return queue.store.is_anything_runnable(tasks=queue.store.register_tasks(["mail"]), **options)


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_a_job_that_could_be_claimed_is(queue: Queue, queue_name: str | None) -> None:
    queue.add(queue_name=queue_name)

    assert is_anything_runnable(queue)


def test_a_job_whose_row_is_briefly_locked_is(queue: Queue) -> None:
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
            lambda queue: (queue.add(queue_name="q"), queue.claim(worker_id=THEIRS), queue.add(queue_name="q")),
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


def test_a_job_behind_very_many_of_held_queues_is_seen(queue: Queue) -> None:
    """More than are read one by one: the queues are stepped through then."""
    queue.store.register_tasks(["mail"])
    queue.run("insert into _private_job_queues (queue_name, locked_at) values ('held', now()), ('also held', now())")
    queue.run(
        "insert into _private_jobs (job_queue_id, task_id) select queues.id, tasks.id "
        "from _private_job_queues as queues, _private_tasks as tasks, generate_series(1, 600)"
    )
    assert not is_anything_runnable(queue)

    free = queue.add(queue_name="free", priority=9)
    assert is_anything_runnable(queue)

    queue.change(free, run_at="=now() + interval '1 hour'")
    assert not is_anything_runnable(queue)


def test_a_due_job_behind_later_ones_of_another_priority_is_seen(queue: Queue) -> None:
    queue.add(priority=1, run_at=HOUR)
    queue.add(priority=1, run_at=HOUR, queue_name="q")
    assert not is_anything_runnable(queue)

    due = queue.add(priority=2, queue_name="r")
    assert is_anything_runnable(queue)

    queue.change(due, job_queue_id=None)
    assert is_anything_runnable(queue)
