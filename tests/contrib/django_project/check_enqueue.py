"""What `enqueue` stores, and in which transaction."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from api import InvalidTask, TaskResultStatus, task, task_backends
from django.db import IntegrityError, transaction
from django.test import override_settings
from django.utils import timezone
from shop import tasks
from shop.models import Order
from worker import recorded_signals

from gw_core.errors import InvalidJobError


def options(**values: Any) -> dict[str, Any]:
    from settings import GRAPHILE

    return {"default": {"BACKEND": GRAPHILE, "QUEUES": ["default", "slow"], "OPTIONS": values}}


def test_a_task_becomes_a_job_with_its_arguments(jobs: Any) -> None:
    result = tasks.create_order.enqueue("book", lane="front")

    [job] = jobs()
    assert job["task"] == "shop.tasks.create_order"
    assert job["payload"] == {"args": ["book"], "kwargs": {"lane": "front"}}
    assert (result.id, result.status, result.attempts) == (str(job["id"]), TaskResultStatus.READY, 0)
    assert abs(result.enqueued_at - timezone.now()) < timedelta(minutes=1)


def test_a_task_belongs_to_the_surrounding_transaction(jobs: Any) -> None:
    with transaction.atomic():
        Order.objects.create(item="book")
        tasks.create_order.enqueue("book")
        assert jobs() == []

    assert len(jobs()) == 1


def test_a_rolled_back_transaction_leaves_no_job(jobs: Any) -> None:
    with suppress(IntegrityError), transaction.atomic():
        tasks.create_order.enqueue("book")
        raise IntegrityError

    assert jobs() == []


def test_a_rolled_back_savepoint_takes_only_its_own_jobs(jobs: Any) -> None:
    with transaction.atomic():
        kept = tasks.create_order.enqueue("kept")
        with suppress(IntegrityError), transaction.atomic():
            tasks.create_order.enqueue("undone")
            raise IntegrityError

    assert [str(job["id"]) for job in jobs()] == [kept.id]


def test_aenqueue_adds_a_job_too(jobs: Any) -> None:
    result = asyncio.run(tasks.create_order.aenqueue("book"))

    assert [str(job["id"]) for job in jobs()] == [result.id]


def test_a_larger_priority_of_django_is_a_smaller_one_of_the_queue(jobs: Any) -> None:
    tasks.create_order.using(priority=7).enqueue("book")
    tasks.create_order.using(priority=-100).enqueue("book")

    assert [job["priority"] for job in jobs()] == [-7, 100]


def test_priorities_and_attempts_start_from_the_options(jobs: Any) -> None:
    with override_settings(TASKS=options(PRIORITY_BASE=10, MAX_ATTEMPTS=4)):
        tasks.create_order.using(priority=7).enqueue("book")
        tasks.with_options.enqueue()

    assert [(job["priority"], job["max_attempts"]) for job in jobs()] == [(3, 4), (10, 3)]


def test_a_job_carries_the_trace_of_the_request(jobs: Any) -> None:
    pytest.importorskip("opentelemetry")
    from opentelemetry import context, propagate

    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    token = context.attach(propagate.extract({"traceparent": traceparent}))
    try:
        with override_settings(TASKS=options(PLUGINS=["gw_core.contrib.opentelemetry:OpenTelemetry"])):
            tasks.create_order.enqueue("book")
    finally:
        context.detach(token)

    [job] = jobs()
    assert job["payload"]["args"] == ["book"]
    assert job["payload"]["_trace"]["traceparent"] == traceparent


def test_run_after_is_when_the_job_may_run(jobs: Any) -> None:
    when = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    tasks.create_order.using(run_after=when).enqueue("book")

    assert [job["run_at"] for job in jobs()] == [when]


def test_a_naive_run_after_counts_in_the_time_zone_of_the_project(jobs: Any) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        tasks.create_order.using(run_after=datetime(2030, 1, 2, 9)).enqueue("book")

    assert [job["run_at"] for job in jobs()] == [datetime(2030, 1, 2, 0, tzinfo=UTC)]


def test_the_options_of_a_task_are_those_of_its_jobs(jobs: Any) -> None:
    tasks.with_options.enqueue()

    [job] = jobs()
    assert (job["max_attempts"], job["queue_name"], job["flags"]) == (3, "ledger", {"heavy": True})


def test_a_job_key_keeps_one_waiting_job(jobs: Any) -> None:
    keyed = tasks.create_order.using(job_key="daily")
    keyed.enqueue("first")
    keyed.enqueue("second")
    keyed.using(job_key_mode="preserve_run_at").enqueue("third")

    assert [(job["key"], job["payload"]["args"]) for job in jobs()] == [("daily", ["third"])]


def test_using_keeps_the_options_it_does_not_name() -> None:
    changed = tasks.with_options.using(priority=5)

    assert (changed.max_attempts, changed.serial_queue, changed.priority) == (3, "ledger", 5)


def test_a_queue_name_is_a_lane_and_no_serial_queue(jobs: Any) -> None:
    tasks.create_order.using(queue_name="slow").enqueue("book")

    [job] = jobs()
    assert (job["task"], job["queue_name"]) == ("slow/shop.tasks.create_order", None)


def test_without_queues_there_is_one_lane(jobs: Any) -> None:
    with override_settings(TASKS={"default": {**options()["default"], "QUEUES": []}}):
        tasks.create_order.using(queue_name="anything").enqueue("book")
        found = [problem.id for problem in task_backends["default"].check()]

    assert [job["task"] for job in jobs()] == ["shop.tasks.create_order"]
    assert found == ["graphile_worker.W001"]


def test_enqueued_is_sent_once_after_the_job_exists() -> None:
    with recorded_signals() as signals:
        result = tasks.create_order.enqueue("book")

    assert [(name, status) for name, status, _ in signals] == [("enqueued", "READY")]
    assert signals[0][2] is result


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_rejected(value: float, jobs: Any) -> None:
    with pytest.raises(InvalidJobError):
        tasks.create_order.enqueue(value)
    assert jobs() == []


def test_arguments_that_json_cannot_hold_are_rejected(jobs: Any) -> None:
    with pytest.raises(TypeError):
        tasks.create_order.enqueue(object())
    assert jobs() == []


@pytest.mark.parametrize(
    "values",
    [
        {"priority": 101},
        {"priority": 1.5},
        {"queue_name": "unknown"},
        {"run_after": datetime(2030, 1, 1)},
        {"max_attempts": 0},
        {"job_key": "k" * 600},
        {"job_key_mode": "sometimes"},
        {"flags": [""]},
    ],
    ids=str,
)
def test_an_invalid_value_is_rejected_when_the_task_is_made(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidTask):
        tasks.create_order.using(**values)


def test_a_function_inside_another_is_no_task() -> None:
    def inner() -> None: ...

    with pytest.raises(InvalidTask):
        task(inner)


def test_a_task_that_takes_a_context_has_it_first() -> None:
    with pytest.raises(InvalidTask):
        task(takes_context=True)(tasks.noop.func)


def test_a_path_longer_than_an_identifier_is_rejected() -> None:
    def function() -> None: ...

    function.__qualname__ = "f" * 130
    with pytest.raises(InvalidTask):
        task(function)


def test_a_task_of_the_main_program_is_rejected_when_it_is_enqueued(jobs: Any) -> None:
    def function() -> None: ...

    function.__qualname__, function.__module__ = "function", "__main__"
    made = task(function)

    with pytest.raises(InvalidTask, match="cannot be imported"):
        made.enqueue()


def test_results_are_not_supported() -> None:
    result = tasks.create_order.enqueue("book")

    assert not task_backends["default"].supports_get_result
    with pytest.raises(NotImplementedError):
        result.refresh()
