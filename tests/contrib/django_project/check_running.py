"""What a worker does with the tasks."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

import extra_tasks
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import override_settings
from settings import TASKS
from shop import tasks
from shop.models import Order
from worker import URL, let_retries_wait, make_due, recorded_signals, run_jobs

from gw_core import Client, Runner, WorkerSettings, run_once
from gw_core.contrib.django.compat import logger
from gw_core.contrib.django.worker import refresh_connections, registry


def items() -> list[str]:
    return sorted(Order.objects.values_list("item", flat=True))


def wait_for_an_order() -> None:
    """Wait until a task that has begun has written one."""
    deadline = time.monotonic() + 60
    while not Order.objects.exists():
        assert time.monotonic() < deadline, "the task did not begin"
        time.sleep(0.01)


def test_tasks_run_with_their_arguments() -> None:
    tasks.create_order.enqueue("book", lane="front")
    tasks.create_order_async.enqueue("pen")
    result = run_jobs()

    assert (result.completed, result.failed) == (2, 0)
    assert items() == ["book", "pen"]
    assert Order.objects.get(item="book").lane == "front"


def test_the_context_has_the_result_and_the_job() -> None:
    result = tasks.create_with_context.enqueue("book")
    run_jobs()

    order = Order.objects.get()
    assert (order.item, order.attempt) == (f"book {result.id} {result.id}", 1)


def test_tasks_run_in_the_order_of_their_priority() -> None:
    for priority in (1, 50, -3, 0):
        tasks.create_order.using(priority=priority).enqueue(str(priority))
    run_once(URL, tasks=registry(), settings=WorkerSettings(concurrency=1), migrate=False, handle_signals=False)

    assert list(Order.objects.order_by("id").values_list("item", flat=True)) == ["50", "1", "0", "-3"]


def test_a_worker_serves_the_lanes_it_is_given() -> None:
    tasks.create_order.enqueue("default")
    tasks.create_order.using(queue_name="slow").enqueue("slow")

    run_jobs(["slow"])
    assert items() == ["slow"]
    run_jobs()
    assert items() == ["default", "slow"]


def test_an_unknown_lane_is_rejected() -> None:
    with pytest.raises(ImproperlyConfigured, match="no lane 'fast'"):
        registry(lanes=["fast"])


def test_tasks_of_further_modules_are_found() -> None:
    extra_tasks.extra.enqueue()
    run_jobs()

    assert items() == ["extra"]


def test_jobs_of_a_renamed_task_still_run() -> None:
    with Client(URL) as client:
        client.add("shop.old.create_order", {"args": ["book"], "kwargs": {}})
        client.add("slow/shop.old.create_order", {"args": ["pen"]})
    run_jobs()

    assert items() == ["book", "pen"]


def test_an_alias_of_a_task_that_does_not_exist_is_rejected() -> None:
    changed = {**TASKS["default"], "OPTIONS": {"ALIASES": {"old": "shop.tasks.gone"}}}
    with override_settings(TASKS={"default": changed}), pytest.raises(ImproperlyConfigured, match=r"shop\.tasks\.gone"):
        registry()


def test_each_signal_is_sent_once_for_a_task_that_succeeds() -> None:
    with recorded_signals() as signals:
        tasks.create_order.enqueue("book")
        run_jobs()

    assert [(name, status) for name, status, _ in signals] == [
        ("enqueued", "READY"),
        ("started", "RUNNING"),
        ("finished", "SUCCESSFUL"),
    ]
    assert signals[2][2].return_value == Order.objects.get().pk


def test_started_is_sent_for_each_attempt_and_finished_once() -> None:
    with recorded_signals() as signals:
        tasks.fail_until.using(max_attempts=3).enqueue(3)
        for _ in range(3):
            run_jobs()
            make_due()

    assert [name for name, _, _ in signals] == ["enqueued", "started", "started", "started", "finished"]
    finished = signals[-1][2]
    assert (str(finished.status), finished.attempts, finished.errors) == ("SUCCESSFUL", 3, [])


def test_the_last_failure_finishes_a_task(caplog: pytest.LogCaptureFixture) -> None:
    with recorded_signals() as signals, caplog.at_level(logging.ERROR):
        tasks.fail_until.using(max_attempts=1).enqueue(9)
        run_jobs()

    assert [name for name, _, _ in signals] == ["enqueued", "started", "finished"]
    finished = signals[-1][2]
    assert str(finished.status) == "FAILED"
    assert finished.errors[0].exception_class is RuntimeError
    assert "attempt 1" in finished.errors[0].traceback
    [record] = [each for each in caplog.records if each.name.startswith("django")]
    assert record.exc_info is not None
    assert record.exc_info[0] is RuntimeError


def test_a_task_that_gives_up_is_finished() -> None:
    with recorded_signals() as signals:
        tasks.give_up.enqueue()
        run_jobs()

    assert [name for name, _, _ in signals] == ["enqueued", "started", "finished"]


@pytest.mark.parametrize(("error", "finished"), [("denied", 1), ("lost", 0)])
def test_the_retry_rules_of_a_task_decide_whether_it_is_finished(error: str, finished: int) -> None:
    with recorded_signals() as signals:
        added = tasks.fail_with.enqueue(error)
        run_jobs()

    assert [name for name, _, _ in signals] == ["enqueued", "started", *["finished"] * finished]
    with Client(URL) as client:
        job = client.jobs.get(int(added.id))
    assert job is not None
    assert job.is_last_attempt == bool(finished)
    waits_an_hour = timedelta(minutes=50) < job.run_at - job.updated_at < timedelta(minutes=70)
    assert waits_an_hour == (error == "lost")


def test_a_snoozed_task_is_not_finished() -> None:
    with recorded_signals() as signals:
        tasks.snooze_once.using(max_attempts=1).enqueue()
        run_jobs()

    assert [name for name, _, _ in signals] == ["enqueued", "started", "started", "finished"]


def test_a_task_that_is_interrupted_at_a_step_is_not_finished() -> None:
    with recorded_signals() as signals:
        tasks.end_with_the_worker.using(max_attempts=1).enqueue()
        runner = Runner(URL, tasks=registry(), migrate=False, handle_signals=False)
        runner.start()
        wait_for_an_order()
        runner.stop("the test asked")
        runner.wait()
        assert [name for name, _, _ in signals] == ["enqueued", "started"]
        run_jobs()

    assert [(name, str(status)) for name, status, _ in signals[2:]] == [
        ("started", "RUNNING"),
        ("finished", "SUCCESSFUL"),
    ]


@pytest.mark.parametrize(("max_attempts", "finished"), [(1, ["FAILED"]), (11, [])])
def test_a_task_that_returns_after_its_timeout_has_not_succeeded(max_attempts: int, finished: list[str]) -> None:
    with recorded_signals() as signals:
        tasks.return_too_late.using(max_attempts=max_attempts).enqueue()
        let_retries_wait()
        run_jobs()

    assert [str(status) for name, status, _ in signals if name == "finished"] == finished


@pytest.mark.parametrize(("max_attempts", "retry", "finished"), [(2, False, True), (2, True, False), (1, True, True)])
def test_a_cancelled_task_has_failed_unless_it_runs_again(max_attempts: int, retry: bool, finished: bool) -> None:
    with recorded_signals() as signals:
        running = tasks.wait_for_stop.using(max_attempts=max_attempts).enqueue()
        let_retries_wait()
        runner = Runner(URL, tasks=registry(), migrate=False, handle_signals=False)
        runner.start()
        wait_for_an_order()
        with Client(URL) as client:
            client.jobs.cancel([int(running.id)], retry=retry, by="a test", timeout=60)
        runner.stop("the test asked")
        runner.wait()

    assert [(name, str(status)) for name, status, _ in signals][2:] == [("finished", "FAILED")] * finished


def test_a_return_value_that_json_cannot_hold_fails_the_task(jobs: Any) -> None:
    tasks.return_object.enqueue()
    result = run_jobs()

    assert result.failed == 1


def test_a_payload_of_another_shape_fails_permanently(jobs: Any) -> None:
    with Client(URL) as client:
        client.add("shop.tasks.noop", [1, 2])
    run_jobs()

    [job] = jobs()
    assert job["attempts"] == job["max_attempts"]


def test_a_connection_that_broke_does_not_fail_the_next_task() -> None:
    for each in (tasks.create_order, tasks.end_own_connection, tasks.create_order):
        each.enqueue(*(["book"] if each is tasks.create_order else []))
    result = run_once(
        URL, tasks=registry(), settings=WorkerSettings(concurrency=1), migrate=False, handle_signals=False
    )

    assert (result.completed, result.failed) == (3, 0)


def test_a_run_on_a_thread_with_a_transaction_leaves_it_open() -> None:
    with transaction.atomic():
        Order.objects.create(item="open")
        refresh_connections(clear_queries=True)
        Order.objects.create(item="inner")
        refresh_connections()
        assert connection.in_atomic_block
        assert Order.objects.count() == 2


def test_the_query_log_of_a_thread_is_cleared_for_each_task() -> None:
    with override_settings(DEBUG=True):
        Order.objects.count()
        assert len(connection.queries) >= 1
        refresh_connections(clear_queries=True)

        assert connection.queries == []


@pytest.mark.parametrize(("level", "number"), [("INFO", 2), ("WARNING", 0)])
def test_djangos_log_of_tasks_follows_its_level(caplog: pytest.LogCaptureFixture, level: str, number: int) -> None:
    tasks.noop.enqueue(1)
    with caplog.at_level(level, logger=logger.name):
        run_jobs()

    assert len([each for each in caplog.records if each.name == logger.name]) == number


def test_a_receiver_gets_the_signals_while_the_log_is_off(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger=logger.name), recorded_signals() as signals:
        tasks.noop.enqueue(1)
        run_jobs()

    assert [name for name, _, _ in signals] == ["enqueued", "started", "finished"]
