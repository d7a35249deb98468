"""How a session behaves toward a database that others need more: how long it waits, and what it may not do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidSettingError

_TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "connect_timeout")


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that the server enforces on every session of a client; None leaves the server's own setting.

    A timeout also limits what the client sets itself. Raises `InvalidSettingError` for one that is not
    positive.

    Example: docs/api/gw_core.md
    """

    statement_timeout: Duration | None = None
    """How long a statement may take."""
    lock_timeout: Duration | None = None
    """How long a statement may wait for a lock."""
    idle_in_transaction_session_timeout: Duration | None = None
    """How long a transaction may be left open, before the server ends the session."""
    connect_timeout: Duration | None = None
    """How long to wait for a connection; libpq counts in seconds, and in no less than two."""
    read_only: bool = False
    """The server rejects every write of these sessions."""

    def __post_init__(self) -> None:
        # A struct and not `settings`: each command imports this class, and a dataclass takes half a millisecond.
        for name in _TIMEOUTS:
            if (given := getattr(self, name)) is not None:
                timeout = as_duration(name, given, InvalidSettingError)
                if timeout < timedelta(milliseconds=1):
                    raise InvalidSettingError(f"{name} must be at least one millisecond, got {timeout}")
                msgspec.structs.force_setattr(self, name, timeout)

    def settings(self) -> Mapping[str, str]:
        """Return the server's settings by their names."""
        timeouts = {name: getattr(self, name) for name in _TIMEOUTS if name != "connect_timeout"}
        found = {name: milliseconds(timeout) for name, timeout in timeouts.items() if timeout is not None}
        return {**found, "default_transaction_read_only": "on"} if self.read_only else found

    def cap_statement_timeout(self, timeout: timedelta) -> timedelta:
        """Return how long a statement may take that would be given this long."""
        return _earlier(timeout, self.statement_timeout)

    def cap_lock_timeout(self, timeout: timedelta) -> timedelta:
        """Return how long a statement may wait for locks that would be given this long."""
        return _earlier(timeout, self.lock_timeout)


def _earlier(timeout: timedelta, limit: Duration | None) -> timedelta:
    return timeout if limit is None else min(timeout, as_duration("the limit", limit))


def milliseconds(timeout: timedelta) -> str:
    """Return a duration in the form of PostgreSQL's settings: zero would mean no limit, and the most is 24 days."""
    return f"{min(max(1, round(timeout.total_seconds() * 1000)), 2**31 - 1)}ms"


NO_LIMITS = SessionLimits()
"""The server's own settings."""
