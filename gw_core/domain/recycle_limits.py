"""How long a worker may go on before it makes room for a fresh one."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from gw_core.domain.durations import format_duration

MEGABYTE = 1024 * 1024


class RecycleLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a long-running worker exits gracefully on its own; None never."""

    max_jobs: int | None = None
    max_lifetime: timedelta | None = None
    max_rss: int | None = None
    """Bytes of memory in use."""

    def __bool__(self) -> bool:
        """True when there is any."""
        return (self.max_jobs, self.max_lifetime, self.max_rss) != (None, None, None)

    def limit_reached(self, *, ended: int, lived: timedelta, rss: int | None) -> str | None:
        """Return why the worker should end now, or None; `ended` counts the attempts that were settled."""
        if self.max_jobs is not None and ended >= self.max_jobs:
            return f"{ended} jobs have run, of at most {self.max_jobs}"
        if self.max_lifetime is not None and lived >= self.max_lifetime:
            return f"its lifetime of {format_duration(self.max_lifetime)} is over"
        if self.max_rss is not None and rss is not None and rss >= self.max_rss:
            return f"it uses {rss // MEGABYTE} MB of memory, of at most {self.max_rss // MEGABYTE} MB"
        return None
