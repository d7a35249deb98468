"""What the developers of the shop test; `manage.py test` runs it."""

import pytest
from django.core import mail
from django.test import TestCase, TransactionTestCase, override_settings

from gw_core.contrib.django import client, using
from gw_core.contrib.django.testing import assert_enqueued, drain, refute_enqueued
from orders.models import Invoice, Order, Report
from orders.tasks import bind_book, make_invoice, make_report, send_receipt
from orders.views import place_order


class InOneTransaction(TestCase):
    def test_an_order_becomes_an_invoice_and_a_mail(self):
        order = place_order("ann@example.org", 20)
        assert_enqueued(make_invoice, order.pk)
        refute_enqueued("orders.tasks.send_receipt")
        drain()

        assert Invoice.objects.get().order == order
        [message] = mail.outbox
        assert "20 EUR" in message.body

    def test_an_order_that_fails_leaves_nothing(self):
        with pytest.raises(ValueError):
            place_order("ann@example.org", -1)
        refute_enqueued(make_invoice)
        assert Order.objects.count() == 0

    def test_a_task_is_drained_alone(self):
        place_order("ann@example.org", 20)
        drain(make_invoice)
        assert mail.outbox == []
        assert_enqueued(send_receipt)

    def test_a_key_keeps_one_task(self):
        for _ in range(2):
            using(bind_book, job_key="the book").enqueue(1)
        assert_enqueued(using(bind_book, job_key="the book"))
        assert client().jobs.count("task:orders.tasks.bind_book").jobs == 1


class WithCommits(TransactionTestCase):
    def test_tasks_use_the_database(self):
        place_order("ann@example.org", 20)
        drain()
        assert Invoice.objects.count() == 1

    def test_no_task_is_left_by_another_test(self):
        assert client().jobs.count().jobs == 0
        place_order("ann@example.org", 20)


try:
    import django.tasks
except ImportError:
    IMMEDIATE = "django_tasks.backends.immediate.ImmediateBackend"
else:
    IMMEDIATE = f"{django.tasks.__name__}.backends.immediate.ImmediateBackend"


@override_settings(TASKS={"default": {"BACKEND": IMMEDIATE, "QUEUES": ["default", "emails"]}})
class Eager(TestCase):
    def test_options_do_not_disturb_another_backend(self):
        place_order("ann@example.org", 20)
        assert len(mail.outbox) == 1
        using(bind_book, job_key="daily").enqueue(Report.objects.create().pk)
        assert Report.objects.get().text == "0 lines"
        assert make_report.queue_name == "default"
