"""What views call: each change and its job are in one transaction."""

import os
from datetime import timedelta

from django.db import connection, transaction

from django_shop.models import Order
from gw_core import Client

client = Client(os.environ["DATABASE_URL"])


def place_order(customer: str, total: int) -> Order:
    """Store an order, and add the jobs that charge it now and remind the customer tomorrow."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer, total=total)
        client.add("charge", {"order": order.pk, "total": total}, queue_name=f"order-{order.pk}", conn=connection)
        client.add("remind", {"order": order.pk}, run_at=timedelta(days=1), conn=connection)
        if total < 0:
            raise ValueError("an order cannot cost less than nothing")
    return order


def cancel_order(order: Order) -> None:
    """Cancel an order, and add the job that refunds it if it was paid."""
    with transaction.atomic():
        if order.status == "paid":
            client.add("refund", {"order": order.pk}, priority=-10, job_key=f"refund-{order.pk}", conn=connection)
        order.status = "cancelled"
        order.save()
