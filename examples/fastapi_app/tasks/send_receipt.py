"""Runs in the worker, which is not asynchronous and uses a connection of its own."""

from gw_core import JobContext


def send_receipt(payload: dict, context: JobContext) -> None:
    context.query("update orders set receipt = 'sent for ' || item where id = %s", [payload["order"]])
