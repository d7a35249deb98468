"""Django's TestCase: each test is a transaction that is rolled back, and its jobs run in it."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.test import TestCase, TransactionTestCase
from django_shop.models import Order
from django_shop.services import cancel_order, place_order
from django_shop.tasks import tasks

from gw_core import GiveUp
from gw_core.testing import Clock, assert_enqueued, drain, enqueued, refute_enqueued


class OrderTests(TestCase):
    """Placing and cancelling orders."""

    def setUp(self) -> None:
        self.order = place_order("ann", 20)

    def status(self) -> str:
        self.order.refresh_from_db()
        return self.order.status

    def test_an_order_adds_its_jobs(self) -> None:
        assert_enqueued(connection, "charge", {"order": self.order.pk}, queue_name=f"order-{self.order.pk}")
        assert_enqueued(connection, "remind", {"order": self.order.pk}, run_at=timedelta(days=1))
        assert len(enqueued(connection)) == 2

    def test_a_job_is_charged_and_gets_a_receipt(self) -> None:
        result = drain(connection, tasks=tasks)
        assert [job.task for job in result.completed] == ["charge", "receipt"]
        assert self.status() == "paid"
        assert self.order.receipt == f"R-{self.order.pk}"

    def test_the_jobs_of_other_tests_are_not_seen(self) -> None:
        assert_enqueued(connection, "charge", count=1)

    def test_an_order_that_fails_adds_no_job(self) -> None:
        with pytest.raises(ValueError, match="less than nothing"):
            place_order("bob", -1)
        assert_enqueued(connection, "charge", count=1)

    def test_a_reminder_comes_after_a_day(self) -> None:
        clock = Clock()
        drain(connection, tasks=tasks, task="remind", now=clock)
        assert self.status() == "new"
        clock.advance(timedelta(days=1, minutes=1))
        drain(connection, tasks=tasks, task="remind", now=clock)
        assert self.status() == "reminded"

    def test_a_paid_order_needs_no_reminder(self) -> None:
        drain(connection, tasks=tasks, with_scheduled=True)
        assert self.status() == "paid"

    def test_a_declined_card_is_not_tried_again(self) -> None:
        order = place_order("bob", 5_000)
        with pytest.raises(GiveUp, match="declined"):
            drain(connection, tasks=tasks)
        refute_enqueued(connection, "charge", {"order": order.pk})

    def test_cancelling_a_paid_order_refunds_it(self) -> None:
        drain(connection, tasks=tasks)
        self.order.refresh_from_db()
        cancel_order(self.order)
        assert_enqueued(connection, "refund", job_key=f"refund-{self.order.pk}", priority=-10)
        drain(connection, tasks=tasks)
        assert self.status() == "refunded"

    def test_cancelling_a_new_order_refunds_nothing(self) -> None:
        cancel_order(self.order)
        refute_enqueued(connection, "refund")

    def test_an_sql_error_of_a_task_leaves_the_test_its_transaction(self) -> None:
        Order.objects.create(customer="eve", total=1, receipt=f"R-{self.order.pk}")
        result = drain(connection, tasks=tasks, raises=False)
        assert [type(each.error) for each in result.failed] == [IntegrityError]
        assert self.status() == "paid"
        assert_enqueued(connection, "receipt")

    def test_several_orders_are_charged(self) -> None:
        for number in range(5):
            place_order(f"customer {number}", number)
        drain(connection, tasks=tasks)
        assert Order.objects.filter(status="paid").count() == 6

    def test_the_exception_of_a_task_reaches_the_test(self) -> None:
        Order.objects.create(customer="eve", total=1, receipt=f"R-{self.order.pk}")
        with pytest.raises(IntegrityError, match="already exists"):
            drain(connection, tasks=tasks)


class CommittedOrderTests(TransactionTestCase):
    """Without a transaction around the test, a drain runs what is committed."""

    def test_an_order_is_charged(self) -> None:
        order = place_order("ann", 20)
        assert len(drain(connection, tasks=tasks).completed) == 2
        order.refresh_from_db()
        assert order.status == "paid"
        drain(connection, tasks=tasks, with_scheduled=True)
        assert enqueued(connection) == []


@pytest.mark.django_db
def test_the_fixture_of_pytest_django_works_too() -> None:
    order = place_order("ann", 20)
    drain(connection, tasks=tasks)
    assert Order.objects.get(pk=order.pk).status == "paid"


@pytest.mark.django_db
def test_a_test_without_orders_has_no_jobs() -> None:
    assert enqueued(connection) == []
