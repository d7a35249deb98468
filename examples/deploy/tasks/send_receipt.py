"""Replace this task with your own."""

from __future__ import annotations

from typing import Any

from gw_core import JobContext


def send_receipt(payload: dict[str, Any], context: JobContext) -> None:
    """Log the order whose receipt would be sent."""
    context.logger.info(f"receipt for order {payload['order']}")
