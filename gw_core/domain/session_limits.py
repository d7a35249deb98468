"""How a session behaves toward a database that others need more: how long it waits, and what it may not do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta

from gw_core.domain.errors import InvalidSettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What the server holds every session of a client to; None leaves the server's own setting.

    A span bounds what the client would allow itself as well. Raises `InvalidSettingError` for a span that is not
    positive.
    """

    statement_timeout: timedelta | None = None
    """How long a statement may take."""
    lock_timeout: timedelta | None = None
    """How long a statement may wait for a lock."""
    idle_in_transaction_session_timeout: timedelta | None = None
    """How long a transaction may be left open, before the server ends the session."""
    connect_timeout: timedelta | None = None
    """How long to wait for a connection; libpq counts in seconds, and in no less than two."""
    read_only: bool = False
    """The server refuses every write of these sessions."""

    def __post_init__(self) -> None:
        for each in fields(self):
            span = getattr(self, each.name)
            if isinstance(span, timedelta) and span < timedelta(milliseconds=1):
                raise InvalidSettingError(f"{each.name} must be at least one millisecond, got {span}")

    def settings(self) -> Mapping[str, str]:
        """Return the server's settings by their names."""
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        spans = {name: getattr(self, name) for name in names}
        found = {name: milliseconds(span) for name, span in spans.items() if span is not None}
        return {**found, "default_transaction_read_only": "on"} if self.read_only else found

    def within_statement(self, span: timedelta) -> timedelta:
        """Return how long a statement may take that would be given this long."""
        return span if self.statement_timeout is None else min(span, self.statement_timeout)

    def within_lock(self, span: timedelta) -> timedelta:
        """Return how long a statement may wait for locks that would be given this long."""
        return span if self.lock_timeout is None else min(span, self.lock_timeout)


def milliseconds(span: timedelta) -> str:
    """Return a span as PostgreSQL's settings want it; zero would mean no bound at all."""
    return f"{max(1, round(span.total_seconds() * 1000))}ms"


NO_MANNERS = SessionLimits()
"""The server's own settings."""
