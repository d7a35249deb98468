"""A Django project: jobs in the transaction of a request, and tasks of gw beside those of Django."""

from django.db import connection, transaction

from gw_core import Client, TaskRegistry
from gw_core.contrib.django import GraphileWorkerBackend

queue = Client("postgres:///shop")
registry = TaskRegistry()


@registry.task("receipts/send")
def send_receipt(payload: dict[str, int]) -> None: ...


def checkout(order: int) -> int:
    with transaction.atomic(using="default"):  # pyright: ignore # Django has no types
        job = queue.add(send_receipt.job({"order": order}), conn=connection)
        queue.add("receipts/send", {"order": order}, conn="default")
    return job.id


class Backend(GraphileWorkerBackend):
    """A backend of the project's own."""


queue.add(send_receipt.job({"order": "17"}), conn=connection)  # wrong
queue.add(send_receipt, [17], conn=connection)  # wrong
queue.jobs.retry(order=7)  # wrong
