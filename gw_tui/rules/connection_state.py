"""The state of the console's connection, as a function of the last answer and the current time; without a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

FIRST_WAIT: Final = 0.5
MAX_WAIT: Final = 30.0
MIN_WAIT: Final = 0.1
LATE_AFTER: Final = 3
"""This many periods without an answer make what is shown stale."""
LATE_AT_LEAST: Final = 5.0
"""And at least this many seconds, because queries on a busy database may take that long within their timeouts."""


class ConnectionPhase(StrEnum):
    """How things stand, in one word."""

    CONNECTING = "connecting"
    """There was no answer yet."""
    LIVE = "live"
    STALE = "stale"
    """The database has not answered for three periods, five seconds at least; it may only be slow."""
    DOWN = "down"
    """The connection is gone; the next try is counted down."""
    RETRYING = "retrying"
    """A try is under way."""
    DENIED = "denied"
    """The server denies access; retrying does not help until that is fixed."""
    NO_SCHEMA = "no schema"
    """The database answers, but there is no queue in it that we understand."""

    @property
    def is_answered(self) -> bool:
        """True while the database answers, perhaps late."""
        return self in (ConnectionPhase.LIVE, ConnectionPhase.STALE)


class FailureKind(StrEnum):
    """What kept an answer from us."""

    LOST = "lost"
    DENIED = "denied"
    NO_SCHEMA = "no schema"
    SLOW = "slow"
    """The statement took longer than it may."""
    LOCKED = "locked"
    """Another session has locked a table."""
    FORBIDDEN = "forbidden"
    """The role lacks a right."""
    READ_ONLY = "read-only"
    """A write was tried where none is allowed."""
    ERROR = "error"
    """Anything else: perhaps a bug in gw."""

    @property
    def is_transient(self) -> bool:
        """True when the same query may succeed a little later."""
        return self in (FailureKind.SLOW, FailureKind.LOCKED)

    @property
    def is_fatal(self) -> bool:
        """True when no query can succeed, not only this one."""
        return self in (FailureKind.LOST, FailureKind.DENIED, FailureKind.NO_SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState:
    """The last answer or failure; times are seconds of a monotonic clock."""

    answered_at: float | None = None
    failure: FailureKind | None = None
    reason: str = ""
    attempt: int = 0
    """How many tries failed since the last answer."""
    retry_at: float | None = None
    is_trying: bool = True

    def answered(self, now: float) -> ConnectionState:
        """An answer arrived."""
        return ConnectionState(answered_at=now, is_trying=False)

    def lost(self, now: float, failure: FailureKind, reason: str, *, retry_in: float | None) -> ConnectionState:
        """A try failed; the next one comes after `retry_in` seconds, or when asked for."""
        return replace(
            self,
            failure=failure,
            reason=reason,
            attempt=self.attempt + 1,
            retry_at=None if retry_in is None else now + retry_in,
            is_trying=False,
        )

    def trying(self) -> ConnectionState:
        """A try has begun."""
        return replace(self, is_trying=True, retry_at=None)

    def phase(self, now: float, period: float) -> ConnectionPhase:
        """Return the phase at a time, when an answer is due every `period` seconds."""
        match self.failure:
            case FailureKind.DENIED | FailureKind.FORBIDDEN:
                return ConnectionPhase.RETRYING if self.is_trying else ConnectionPhase.DENIED
            case FailureKind.NO_SCHEMA:
                return ConnectionPhase.NO_SCHEMA
            case None:
                if self.answered_at is None:
                    return ConnectionPhase.CONNECTING
                is_late = now - self.answered_at > max(LATE_AT_LEAST, LATE_AFTER * period)
                return ConnectionPhase.STALE if is_late else ConnectionPhase.LIVE
            case _:
                return ConnectionPhase.RETRYING if self.is_trying else ConnectionPhase.DOWN

    def unanswered_for(self, now: float) -> float | None:
        """Return how long ago the last answer was; None before the first."""
        return None if self.answered_at is None else max(0.0, now - self.answered_at)

    def next_try_in(self, now: float) -> float | None:
        """Return the seconds until the next try; None when none is planned."""
        return None if self.retry_at is None else max(0.0, self.retry_at - now)


def wait_before(attempt: int, chance: float) -> float:
    """Return how long to wait before the next try: growing, and spread by `chance` (0 to 1) over all consoles."""
    ceiling: float = min(MAX_WAIT, FIRST_WAIT * 2.0 ** min(attempt, 16))
    return max(MIN_WAIT, ceiling * chance)
