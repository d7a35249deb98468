"""`client.jobs`: a call acts and returns what it did; only `in_batches` gives iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from support.jobs_in_states import Queue

from gw_core import Client, Selection
from gw_core.errors import InvalidInputError
from gw_core.front_ends import JobBatches, Jobs, SkipReason
from gw_core.operations import ActionResult

ACTIONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "complete": (lambda jobs, which: jobs.complete(which), "not exists (select from graphile_worker._private_jobs)"),
    "fail": (
        lambda jobs, which: jobs.fail(which, "by hand"),
        "(select last_error = 'by hand' and attempts = max_attempts from graphile_worker._private_jobs)",
    ),
    "reschedule": (
        lambda jobs, which: jobs.reschedule(which, run_at=timedelta(0), attempts=0),
        "(select run_at <= now() and attempts = 0 from graphile_worker._private_jobs)",
    ),
    "retry": (
        lambda jobs, which: jobs.retry(which),
        "(select run_at <= now() and attempts = 0 from graphile_worker._private_jobs)",
    ),
}


@pytest.fixture
def client(queue: Queue) -> Iterator[Client]:
    with Client(queue.url, max_pool_size=1) as client:
        yield client


@pytest.fixture(params=ACTIONS.values(), ids=ACTIONS)
def action(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    "which", [lambda job: Selection.of(state="failed"), lambda job: [job]], ids=["by a filter", "by ids"]
)
def test_a_call_acts_and_says_which_jobs_it_changed(
    client: Client, queue: Queue, action: Any, which: Callable[[int], Any]
) -> None:
    act, is_done = action
    job = queue.failed()

    result = act(client.jobs, which(job))

    assert queue.value(f"select {is_done}")
    assert (result.ids, result.skipped, result.skipped_by_reason) == ((job,), (), {})
    assert result.changed[0].task == "mail"


def test_a_batch_is_run_when_it_is_asked_for(client: Client, queue: Queue, action: Any) -> None:
    act, is_done = action
    job = queue.failed()

    batches = act(client.jobs.in_batches(), [job])
    assert not queue.value(f"select {is_done}")

    assert [batch.ids for batch in batches] == [(job,)]
    assert queue.value(f"select {is_done}")


def test_jobs_that_were_skipped_are_named_with_the_reason(client: Client, queue: Queue) -> None:
    held, ready, failed, gone = queue.running(), queue.ready(), queue.failed(), 10**9

    result = client.jobs.retry([held, ready, failed, gone])

    assert result.ids == (failed,)
    assert [(each.id, each.reason, each.locked_by) for each in result.skipped] == [
        (held, SkipReason.LOCKED, "pool-1"),
        (ready, SkipReason.NOT_FAILED, None),
        (gone, SkipReason.NOT_FOUND, None),
    ]
    assert result.skipped_by_reason == {SkipReason.LOCKED: 1, SkipReason.NOT_FAILED: 1, SkipReason.NOT_FOUND: 1}


def test_a_call_on_more_jobs_than_one_batch_acts_on_all(client: Client, queue: Queue) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 2500)")
    ids = queue.ids()

    assert client.jobs.count(Selection()).jobs == 2500
    assert client.jobs.count(Selection())
    assert not client.jobs.count("task:unknown")
    assert client.jobs.complete(Selection.of(task="mail")).ids == tuple(ids)
    assert queue.ids() == []


def test_no_job_is_an_empty_result(client: Client, queue: Queue) -> None:
    assert client.jobs.retry(Selection.of(state="failed")) == ActionResult()
    assert client.jobs.complete([]) == ActionResult()


def test_the_actions_and_their_batches_have_the_same_names() -> None:
    for name in ("complete", "fail", "reschedule", "retry"):
        assert callable(getattr(Jobs, name))
        assert callable(getattr(JobBatches, name))
        assert not hasattr(Client, name)


def test_a_batch_holds_at_least_one_job(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="0 jobs"):
        client.jobs.in_batches(0)
