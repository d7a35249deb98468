"""Limits by slots: a limited job goes into one of N named queues, of which every worker runs one job at a time."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, Self

import msgspec

from gw_core.domain.errors import InvalidJobError

MAX_SLOTS: Final = 1_000
MAX_NAMES: Final = 10_000
"""Names of limits whose next slot a process remembers."""

_LIMIT: Final = re.compile(r"(.+):(\d{1,4})", re.DOTALL)
_FIELD: Final = re.compile(r"\{([^{}]*)\}")


class SlotLimit(msgspec.Struct, frozen=True):
    """At most `slots` jobs run at a time of those with one name; `{field}` in the name is filled from the payload."""

    name: str
    slots: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the limit written as `api:4` or `tenant:{tenant_id}:2`. Raises `InvalidJobError`."""
        found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
        if found is None or not 1 <= int(found[2]) <= MAX_SLOTS:
            raise InvalidJobError(f"slots {text!r}: give a name and a number from 1 to {MAX_SLOTS}, such as api:4")
        return cls(found[1], int(found[2]))

    def queue_for(self, payload: Any) -> str:
        """Return the queue for a job with this payload: the slots of a name take turns."""
        name = _FIELD.sub(lambda field: _value(payload, field[1], self.name), self.name)
        return f"{name}:{_next_slot(name, self.slots)}"


_counters: Final[dict[str, count[int]]] = {}


def _next_slot(name: str, slots: int) -> int:
    """Return the next slot of a name in this process; the first is random, so that processes spread their jobs."""
    if len(_counters) >= MAX_NAMES:
        _counters.clear()
    # Each of these calls is atomic; two concurrent threads at most skip a slot.
    return next(_counters.setdefault(name, count(random.randrange(slots)))) % slots


def _value(payload: Any, path: str, name: str) -> str:
    """Return the text or whole number that stands in the payload under a dotted path."""
    found = payload
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else getattr(found, part, None)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise InvalidJobError(f"slots {name!r}: the payload has no text or whole number in {path!r}")
    return str(found)
