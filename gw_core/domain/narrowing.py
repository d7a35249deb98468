"""Conditions that narrow a look at jobs further than names do: numbers, moments, and what a payload holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job import Job

Numbers = tuple[int | None, int | None]
"""The least and the greatest, both included; None is no bound."""

Moments = tuple[datetime | None, datetime | None]
"""The earliest and the latest, both included; None is no bound."""

DEEPEST: Final = 50
LONGEST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What jobs must meet beside the other conditions of a `JobFilter`; None sets none.

    `payload_path` leads to a value by names and, in lists, by places from 0; the value must read as `payload_value`, a
    text without its quotes. `payload_text` stands anywhere in the payload, in any case. Acts refuse it.
    """

    priority: Numbers | None = None
    attempts: Numbers | None = None
    run_at: Moments | None = None
    started_at: Moments | None = None
    payload_path: Sequence[str] | None = None
    payload_value: str | None = None
    payload_text: str | None = None

    def __post_init__(self) -> None:
        if (self.payload_path is None) != (self.payload_value is None):
            raise InvalidInputError("a path into the payload and the value there belong together; give both or none")
        if self.payload_path is not None:
            object.__setattr__(self, "payload_path", tuple(self.payload_path))
        texts = [*(self.payload_path or ()), self.payload_value, self.payload_text]
        if len(texts) > DEEPEST or any(len(text) > LONGEST for text in texts if text is not None):
            raise InvalidInputError(f"a payload is searched by at most {LONGEST} characters, {DEEPEST} levels deep")

    @property
    def needs_payload(self) -> bool:
        """True when a payload has to be read to judge."""
        return self.payload_path is not None or self.payload_text is not None

    def matches(self, job: Job) -> bool:
        """Tell whether a job meets every condition."""
        return (
            _is_between(job.priority, self.priority)
            and _is_between(job.attempts, self.attempts)
            and _is_in_time(job.run_at_epoch, self.run_at)
            and _is_in_time(job.started_epoch, self.started_at)
            and (self.payload_path is None or _at(job.payload, self.payload_path) == self.payload_value)
            and (self.payload_text is None or self.payload_text.lower() in job.payload.lower())
        )


def _is_between(value: int, bounds: Numbers | None) -> bool:
    least, greatest = bounds or (None, None)
    return (least is None or least <= value) and (greatest is None or value <= greatest)


def _is_in_time(epoch: float | None, bounds: Moments | None) -> bool:
    if bounds is None:
        return True
    earliest, latest = bounds
    return (
        epoch is not None
        and (earliest is None or earliest.timestamp() <= epoch)
        and (latest is None or epoch <= latest.timestamp())
    )


def _at(payload: str, path: Sequence[str]) -> str | None:
    """Return what stands at a path, as the database writes it; None for nothing, and for null."""
    try:
        value = json.loads(payload, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    for step in path:
        value = _within(value, step)
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else None


def _within(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value):
        return value[int(step)]
    return None
