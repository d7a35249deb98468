"""Runs in the worker, which needs no Flask application."""

from gw_core import JobContext


def send_receipt(payload: dict, context: JobContext) -> None:
    context.query("update orders set receipt = 'sent for ' || item where id = %s", [payload["order"]])
