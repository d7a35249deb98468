"""get_result with KEEP_RESULTS: the statuses and fields of Django's contract."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from api import TaskResultDoesNotExist, TaskResultMismatch, TaskResultStatus, task_backends
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import override_settings
from settings import TASKS
from shop import tasks
from worker import URL, let_retries_wait, make_due, run_jobs

KEEPING = deepcopy(TASKS)
KEEPING["default"]["OPTIONS"]["KEEP_RESULTS"] = timedelta(days=7)


@pytest.fixture(autouse=True)
def _keeping() -> Iterator[None]:
    with override_settings(TASKS=KEEPING):
        yield
    with connection.cursor() as cursor:
        cursor.execute("truncate graphile_worker._private_gw_history")


def result_of(result: Any) -> Any:
    return task_backends["default"].get_result(result.id)


def test_a_task_that_waits() -> None:
    enqueued = tasks.create_order.enqueue("book", lane="front")

    found = result_of(enqueued)

    assert found.status == TaskResultStatus.READY
    assert (found.id, found.task.func, found.backend) == (enqueued.id, tasks.create_order.func, "default")
    assert (found.args, found.kwargs) == (["book"], {"lane": "front"})
    assert (found.enqueued_at, found.started_at, found.finished_at) == (enqueued.enqueued_at, None, None)
    assert (found.errors, found.worker_ids, found.attempts, found.is_finished) == ([], [], 0, False)
    with pytest.raises(ValueError, match="not finished"):
        _ = found.return_value


def test_a_task_that_runs() -> None:
    enqueued = tasks.create_order.enqueue("book")
    with psycopg.connect(URL, autocommit=True) as session:
        session.execute(
            "update graphile_worker._private_jobs set locked_by = 'gw-a-1-0123456789', locked_at = now(), attempts = 1"
        )

    found = result_of(enqueued)

    assert (found.status, found.worker_ids, found.attempts) == (TaskResultStatus.RUNNING, ["gw-a-1-0123456789"], 1)
    assert found.started_at == found.last_attempted_at is not None


def test_a_task_that_has_succeeded() -> None:
    enqueued = tasks.create_order.enqueue("book", lane="x")
    run_jobs()

    enqueued.refresh()

    assert enqueued.status == TaskResultStatus.SUCCESSFUL
    assert isinstance(enqueued.return_value, int)
    assert (enqueued.args, enqueued.kwargs) == (["book"], {"lane": "x"})
    assert (enqueued.errors, enqueued.attempts, enqueued.is_finished) == ([], 1, True)
    assert enqueued.enqueued_at < enqueued.started_at == enqueued.last_attempted_at < enqueued.finished_at
    assert enqueued.worker_ids[0].startswith("gw-")


def test_a_task_that_succeeds_after_two_failures() -> None:
    enqueued = tasks.fail_until.enqueue(12)
    let_retries_wait()
    run_jobs()
    waiting = result_of(enqueued)
    assert (waiting.status, waiting.attempts, len(waiting.errors)) == (TaskResultStatus.READY, 10, 1)
    for _ in range(2):
        make_due()
        run_jobs()

    found = result_of(enqueued)

    assert (found.status, found.attempts, len(found.errors)) == (TaskResultStatus.SUCCESSFUL, 12, 2)
    assert [error.exception_class for error in found.errors] == [RuntimeError, RuntimeError]
    assert "attempt 11" in found.errors[1].traceback
    assert "tasks.py" in found.errors[1].traceback
    assert found.started_at < found.last_attempted_at


def test_a_task_that_has_failed_permanently() -> None:
    enqueued = tasks.give_up.enqueue()
    run_jobs()

    found = result_of(enqueued)

    assert (found.status, found.attempts, found.is_finished) == (TaskResultStatus.FAILED, 1, True)
    assert found.errors[0].exception_class.__name__ == "GiveUp"
    assert found.finished_at is not None
    with pytest.raises(ValueError, match="failed"):
        _ = found.return_value


def test_a_failed_task_whose_job_was_deleted_stays_failed() -> None:
    enqueued = tasks.give_up.enqueue()
    run_jobs()
    with psycopg.connect(URL, autocommit=True) as session:
        session.execute("delete from graphile_worker._private_jobs")

    assert result_of(enqueued).status == TaskResultStatus.FAILED


def test_a_result_in_the_transaction_that_enqueued_it() -> None:
    with transaction.atomic():
        enqueued = tasks.create_order.enqueue("book")
        assert result_of(enqueued).status == TaskResultStatus.READY
        transaction.set_rollback(True)

    with pytest.raises(TaskResultDoesNotExist):
        result_of(enqueued)


@pytest.mark.parametrize("result_id", ["999999999", "0", "-1", "abc", "1.5", "9" * 40, "٣"])
def test_an_id_that_is_none(result_id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(result_id)


def test_an_expired_result_does_not_exist() -> None:
    enqueued = tasks.create_order.enqueue("book")
    run_jobs()
    with psycopg.connect(URL, autocommit=True) as session:
        session.execute("update graphile_worker._private_gw_history set expires_at = now()")

    with pytest.raises(TaskResultDoesNotExist):
        result_of(enqueued)


def test_a_job_of_no_task_does_not_exist() -> None:
    with psycopg.connect(URL, autocommit=True) as session:
        row = session.execute("select id from graphile_worker.add_job('other.things')").fetchone()

    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(str(row[0]))  # type: ignore[index]


def test_a_task_finds_its_own_results_only() -> None:
    enqueued = tasks.create_order.enqueue("book")

    assert tasks.create_order.get_result(enqueued.id).id == enqueued.id
    with pytest.raises(TaskResultMismatch):
        tasks.noop.get_result(enqueued.id)


def test_a_task_on_another_lane() -> None:
    enqueued = tasks.create_order.using(queue_name="slow").enqueue("book")

    assert result_of(enqueued).task.queue_name == "slow"


def test_the_asynchronous_method() -> None:
    enqueued = tasks.create_order.enqueue("book")

    assert asyncio.run(task_backends["default"].aget_result(enqueued.id)).status == TaskResultStatus.READY


def test_results_are_supported() -> None:
    assert task_backends["default"].supports_get_result


@pytest.mark.parametrize("keep", [-7, "7d", timedelta(0), timedelta(days=40_000)], ids=str)
def test_a_period_that_is_none(keep: Any) -> None:
    wrong = deepcopy(KEEPING)
    wrong["default"]["OPTIONS"]["KEEP_RESULTS"] = keep

    with (
        override_settings(TASKS=wrong),
        pytest.raises(ImproperlyConfigured, match="KEEP_RESULTS must be a timedelta"),
    ):
        _ = task_backends["default"].supports_get_result
