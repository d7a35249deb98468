"""The tasks of the shop."""

from dataclasses import dataclass

from django.db import transaction

from django_shop.models import Order
from gw_core import GiveUp, JobContext, TaskRegistry

tasks = TaskRegistry()


@dataclass
class Charge:
    """The payload of `charge`."""

    order: int
    total: int


@tasks.task("charge")
def charge(payload: Charge, context: JobContext) -> None:
    """Charge an order, and add the job that sends the receipt."""
    if payload.total > 1_000:
        raise GiveUp("the card was declined")
    with transaction.atomic():
        Order.objects.filter(pk=payload.order).update(status="paid")
        context.add("receipt", {"order": payload.order, "number": f"R-{payload.order}"})


@tasks.task("receipt")
def receipt(payload: dict) -> None:
    """Give an order its receipt; numbers are unique."""
    Order.objects.filter(pk=payload["order"]).update(receipt=payload["number"])


@tasks.task("refund")
def refund(payload: dict) -> None:
    """Refund an order."""
    Order.objects.filter(pk=payload["order"]).update(status="refunded")


@tasks.task("remind")
def remind(payload: dict) -> None:
    """Remind the customer of an order that is not paid."""
    Order.objects.filter(pk=payload["order"], status="new").update(status="reminded")
