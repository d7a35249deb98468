"""Put the context of a trace into a payload, where graphile_worker_rs puts it too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

TRACE: Final = "_trace"
"""The payload's key for the trace context."""


def with_trace(payload: Any, carrier: Mapping[str, Any]) -> Any:
    """Return the payload with `_trace`: in an object, or in each object of a list. One that is there already stays."""
    payload = _plain(payload)
    if isinstance(payload, dict):
        return payload if TRACE in payload else {**payload, TRACE: carrier}
    if isinstance(payload, list | tuple):
        items = [_plain(item) for item in payload]
        return [{**item, TRACE: carrier} if isinstance(item, dict) and TRACE not in item else item for item in items]
    return payload


def _plain(value: Any) -> Any:
    """Return an object of a class as a dict; anything else, and what cannot be converted, as it is."""
    if value is None or isinstance(value, dict | list | tuple | str | int | float):
        return value
    if hasattr(value, "model_dump_json"):  # pydantic
        return json.loads(value.model_dump_json())
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return value  # the add rejects it
