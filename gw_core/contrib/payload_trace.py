"""Put the context of a trace into a payload, where graphile_worker_rs puts it too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TRACE: Final = "_trace"
"""The payload's key for the trace context."""


def with_trace(payload: Any, carrier: Mapping[str, Any]) -> Any:
    """Return the payload with `_trace`: in an object, or in each object of a list. An existing one stays."""
    if isinstance(payload, list):
        return [_with(item, carrier) for item in payload]
    return _with(payload, carrier)


def _with(value: Any, carrier: Mapping[str, Any]) -> Any:
    return {**value, TRACE: carrier} if isinstance(value, dict) and TRACE not in value else value
