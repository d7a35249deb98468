"""The testing kit for Django's tasks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import SimpleTestCase, TestCase, TransactionTestCase
from django.utils import timezone
from shop import tasks
from shop.models import Order

from gw_core.contrib.django import using
from gw_core.contrib.django.testing import assert_enqueued, drain, refute_enqueued


@pytest.fixture(autouse=True)
def _empty() -> None:
    """Leave the connection to the test cases of Django."""


class InATransaction(TestCase):
    """Nothing is committed."""

    def test_tasks_are_drained_and_see_the_transaction(self) -> None:
        Order.objects.create(item="first")
        tasks.create_order.enqueue("book", lane="slow")
        tasks.create_order_async.enqueue("pen")
        assert len(drain().completed) == 2
        assert [order.item for order in Order.objects.order_by("pk")] == ["first", "book", "pen"]

    def test_one_task_is_drained(self) -> None:
        tasks.create_order.enqueue("book")
        tasks.noop.enqueue(1)
        drain("shop.tasks.noop")
        assert_enqueued(tasks.create_order)
        drain(tasks.create_order)
        refute_enqueued(tasks.create_order)

    def test_what_a_task_raises_is_raised_in_the_test(self) -> None:
        tasks.fail_until.enqueue(2)
        with pytest.raises(RuntimeError, match="attempt 1"):
            drain()
        assert drain(with_scheduled=True).completed

    def test_tasks_are_found_by_their_arguments(self) -> None:
        tasks.create_order.enqueue("book", lane="slow")
        [job] = assert_enqueued(tasks.create_order, "book", lane="slow")
        assert_enqueued("shop.tasks.create_order", "book")
        assert job.payload["args"] == ["book"]
        refute_enqueued(tasks.create_order, "pen")
        refute_enqueued("shop.tasks.noop")
        with pytest.raises(AssertionError, match="differs in payload"):
            assert_enqueued(tasks.create_order, "pen")

    def test_tasks_are_found_by_their_options(self) -> None:
        later = timezone.now() + timedelta(days=1)
        using(tasks.noop, job_key="daily", priority=5, run_after=later).enqueue(1)
        assert_enqueued(tasks.noop, 1)
        assert_enqueued(using(tasks.noop, job_key="daily", priority=5, run_after=later), 1)
        refute_enqueued(using(tasks.noop, job_key="weekly"))
        refute_enqueued(tasks.noop.using(queue_name="slow"))

    def test_each_lane_has_its_tasks(self) -> None:
        slow = tasks.create_order.using(queue_name="slow")
        slow.enqueue("book")
        assert_enqueued(slow, "book")
        refute_enqueued(tasks.create_order)
        assert len(drain().completed) == 1


class WithCommits(TransactionTestCase):
    """The default `CONN_MAX_AGE` closes connections after requests."""

    def test_tasks_are_drained(self) -> None:
        assert connection.settings_dict["CONN_MAX_AGE"] == 0
        tasks.create_order.enqueue("book")
        assert_enqueued(tasks.create_order, "book")
        assert len(drain().completed) == 1
        assert Order.objects.count() == 1


class WithoutTheDatabase(SimpleTestCase):
    """Django forbids databases that a test case does not list."""

    @classmethod
    def setUpClass(cls) -> None:
        connection.ensure_connection()
        super().setUpClass()

    def test_the_queue_is_forbidden_too(self) -> None:
        for use in (drain, lambda: assert_enqueued(tasks.noop), lambda: refute_enqueued(tasks.noop)):
            with pytest.raises(AssertionError, match="Database queries to 'default' are not allowed"):
                use()
