"""Limits of tasks across all gw workers: at most N at a time, and at most N per period."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from gw_core.domain.counted import counted
from gw_core.domain.durations import format_duration
from gw_core.domain.errors import InvalidInputError

BURST_SECONDS: Final = 0.1
"""A bucket holds the jobs of this time by default: workers claim less often than once for each job."""

MAX_COUNT: Final = 1_000_000

_FIELD: Final = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63}){0,9}")


class TaskLimit(msgspec.Struct, frozen=True, kw_only=True):
    """At most `running` jobs of a task at a time, and at most `per_period` starts per `period`; None: no such limit.

    `burst` jobs may start at the same time after an idle time. With `field`, a place in the payload such as `tenant_id`
    or `customer.id`, the limit counts for each value there. Raises `InvalidInputError` for wrong values.

    Example: docs/api/parts.md
    """

    task: str
    running: int | None = None
    per_period: int | None = None
    period: timedelta | None = None
    burst: int | None = None
    field: str | None = None
    set_by: str = ""
    set_at: datetime | None = None
    locked: int = 0
    """How many of its jobs are locked now."""
    has_index: bool = True
    """Whether the index for `field` is there; without it, no jobs of the task are claimed."""
    startable: float | None = None
    """How many of its jobs may start now by `per_period`; None with `field`, which has a number for each value."""

    def __post_init__(self) -> None:
        if self.running is None and self.per_period is None:
            raise InvalidInputError("a limit needs a number of running jobs, a number per period, or both")
        if (self.per_period is None) != (self.period is None):
            raise InvalidInputError("give the number per period and the period together")
        for name, value in (("running", self.running), ("per_period", self.per_period), ("burst", self.burst)):
            if value is not None and not 1 <= value <= MAX_COUNT:
                raise InvalidInputError(f"{name} is {value}; it must lie between 1 and {MAX_COUNT}")
        if self.field is not None and _FIELD.fullmatch(self.field) is None:
            raise InvalidInputError(
                f"field {self.field!r}: give the name of a field of the payload, such as tenant_id or customer.id"
            )
        if self.period is not None and not timedelta(milliseconds=1) <= self.period <= timedelta(days=366):
            raise InvalidInputError("the period must lie between 1 ms and 366 days")

    @property
    def is_full(self) -> bool:
        """Whether as many of its jobs are locked as may be, or started lately as may start."""
        is_locked = self.running is not None and self.field is None and self.locked >= self.running
        # Workers wait until half of the bucket is there: a claim for each job would be too much.
        is_spent = self.startable is not None and self.startable < max(1.0, self.bucket_size / 2)
        return is_locked or is_spent

    @property
    def description(self) -> str:
        """What is allowed, and how many of its jobs are locked, as a phrase."""
        parts = [] if self.running is None else [f"{self.locked} of at most {_locked(self.running)}"]
        if self.field is not None and self.running is not None:
            parts = [f"at most {_locked(self.running)}"]
        if self.per_period is not None and self.period is not None:
            parts.append(f"at most {self.per_period} start in {format_duration(self.period)}")
        if self.field is not None:
            parts[-1] += f" for each {self.field}"
            parts.append(f"{self.locked} are locked in all")
        return ", ".join(parts)

    @property
    def bucket_size(self) -> float:
        """How many jobs may start at the same time."""
        if self.burst is not None or self.per_period is None or self.period is None:
            return float(self.burst or 1)
        return max(1.0, self.per_period * BURST_SECONDS / self.period.total_seconds())


class LimitRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What a limit leaves at one time; None where there is no such limit."""

    free: int | None
    tokens: float | None
    tokens_per_second: float | None
    bucket_size: float | None

    @property
    def jobs(self) -> int | None:
        """How many jobs may be claimed now; None: any number."""
        left = [
            each for each in (self.free, None if self.tokens is None else math.floor(self.tokens)) if each is not None
        ]
        return max(0, min(left)) if left else None

    @property
    def seconds_until_start(self) -> float:
        """Return how long until the rate allows the next start."""
        if self.tokens is None or not self.tokens_per_second:
            return 0.0
        return max(0.0, (1.0 - self.tokens) / self.tokens_per_second)

    @property
    def seconds_until_tokens(self) -> float:
        """Return how long until half of the bucket, and one token at least, is there: a claim for each is too much."""
        if self.tokens is None or not self.tokens_per_second or self.bucket_size is None:
            return 0.0
        return max(0.0, (max(1.0, self.bucket_size / 2) - self.tokens) / self.tokens_per_second)


def _locked(jobs: int) -> str:
    return counted(jobs, "job is locked", "jobs are locked")
