"""How a worker process fares, as probes ask it: what it does now, and why it might not be ready for jobs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import (
    AuthenticationError,
    DatabaseUnavailableError,
    InvalidSettingError,
    PermissionDeniedError,
    SchemaMissingError,
    TransientDatabaseError,
)

MAX_POLL_GAP: Final = timedelta(seconds=15)
"""How long a pool with idle threads may go without polling, unless its poll interval is longer."""


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The address that answers probes, and whether it serves metrics. Raises `InvalidSettingError` naming the setting.

    Example: docs/api/gw_core.md
    """

    port: int
    """The port; 0 takes any that is free."""

    host: str = "127.0.0.1"
    """The address to listen on; the default can be reached from this machine only."""

    metrics: bool = False
    """Answer `/metrics` as well, which needs the `metrics` extra."""

    sample_interval: Duration = timedelta(seconds=15)
    """How old the queue's numbers may be before a scrape queries the database again."""

    def __post_init__(self) -> None:
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port <= 65535:
            raise InvalidSettingError(f"the probe's port must be a whole number from 0 to 65535, got {self.port!r}")
        if not self.host:
            raise InvalidSettingError("the probe's host is empty; give an address such as 127.0.0.1")
        interval = as_duration("sample_interval", self.sample_interval, InvalidSettingError)
        if interval < timedelta(seconds=1):
            raise InvalidSettingError(f"sample_interval must be at least one second, got {interval}")
        msgspec.structs.force_setattr(self, "sample_interval", interval)


class PoolHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pool at one time."""

    threads: int
    running: int
    """Jobs that run now."""
    prefetched: int
    """Jobs that were claimed and have not begun."""
    unsettled: int
    """Results that wait for being written."""
    since_poll: timedelta | None
    """How long ago the pool last polled successfully; None if it never did."""


def why_not_ready(
    vitals: PoolHealth | None, *, problems: Collection[str], stopping: bool, poll: timedelta
) -> str | None:
    """Return in a line why a process takes no jobs; None when it does. `vitals` is None before the pool is there."""
    if stopping:
        return "stopping"
    if vitals is None:
        return "starting"
    if problems:
        return "; ".join(sorted(problems))
    if vitals.since_poll is None:
        return "connecting to the database"
    timeout = max(MAX_POLL_GAP, 3 * poll)
    if vitals.running < vitals.threads and vitals.since_poll > timeout:
        return f"has not polled for jobs for {int(vitals.since_poll.total_seconds())} s"
    return None


def problem(what: str, error: BaseException) -> str:
    """Describe the kind of the problem only: a client of the probe learns no names from it."""
    return f"cannot {what}: {_kind(error)}"


def _kind(error: BaseException) -> str:
    match error:
        case DatabaseUnavailableError():
            return "the database is away"
        case AuthenticationError() | PermissionDeniedError():
            return "the database denies access"
        case SchemaMissingError():
            return "the schema is missing or incomplete"
        case TransientDatabaseError():
            return "the database cannot answer now"
        case _:
            return type(error).__name__
