import os
import subprocess
import sys
from datetime import timedelta
from time import sleep

from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

from gw_core import GiveUp, cron
from gw_core.contrib.django import options
from orders.models import Cart, Invoice, Order, Report


@options(max_attempts=5, serial_queue="invoices")
@task
def make_invoice(order_id):
    order = Order.objects.get(pk=order_id)
    with transaction.atomic():
        Invoice.objects.create(order=order)
        send_receipt.enqueue(order.customer, render_to_string("receipt.html", {"order": order}))


@task(queue_name="emails")
def send_receipt(address, body):
    send_mail("Your order", body, "shop@example.org", [address])


@task(takes_context=True)
def make_report(context, report_id):
    for done in range(10_000):
        if context.job_context.should_stop.is_set():
            raise GiveUp("cancelled")
        Report.objects.filter(pk=report_id).update(lines_done=done)
        sleep(0.02)


@options(timeout=0.2, max_attempts=1)
@task(takes_context=True)
def ask_the_bank(context):
    context.job_context.should_stop.wait(100)


@task
def make_page(report_id, number):
    with transaction.atomic():
        report = Report.objects.select_for_update().get(pk=report_id)
        report.lines_done += number
        report.save()


@task
def bind_book(report_id):
    report = Report.objects.get(pk=report_id)
    report.text = f"{report.lines_done} lines"
    report.save()
    return report.text


@cron("0 3 * * *", tz="Europe/Vienna", payload={"kwargs": {"days": 30}})
@task
def delete_old_carts(days):
    Cart.objects.filter(created_at__lt=timezone.now() - timedelta(days=days)).delete()


@task
def describe_process():
    child = [sys.executable, "-c", "import os; print('GW_CONNECTION' in os.environ)"]
    return [os.getpid(), subprocess.run(child, capture_output=True, text=True, check=True).stdout.strip()]
