"""Which sessions wait for locks, and which transactions keep vacuum from removing dead rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec


class BackendSession(msgspec.Struct, frozen=True):
    """A session of the server. Names and statements are data: not fit for a terminal as they are.

    `statement` is the beginning of what it runs or ran last; None when our role may not see it.
    """

    pid: int
    user: str | None
    application: str | None
    state: str | None
    in_state_for: timedelta | None
    transaction_age: timedelta | None
    statement: str | None

    def __str__(self) -> str:
        return f"process {self.pid} of role {self.user or '?'} (application {self.application or '?'})"


class LockWait(msgspec.Struct, frozen=True, kw_only=True):
    """A session that waits for a lock, what it waits for, and the processes that keep it waiting."""

    session: BackendSession
    waits_for: str
    """The kind of lock and, where it is a table's, the table: `RowExclusiveLock on _private_jobs`."""
    blocked_by: Sequence[int]


class AdvisoryLock(msgspec.Struct, frozen=True, kw_only=True):
    """One of the advisory locks that workers of this queue take, and the session that holds it or waits for it."""

    name: str
    granted: bool
    session: BackendSession
    is_respected: bool = True
    """False for a holder that may not sweep or keeps the lock for minutes: gw sweeps all the same."""


class LockWaits(msgspec.Struct, frozen=True, kw_only=True):
    """What stands still in this database, each list up to a bound; `is_all` is false when a bound was met."""

    blocked: Sequence[LockWait] = ()
    blockers: Sequence[BackendSession] = ()
    """The sessions that block others and wait for no lock themselves."""
    advisory: Sequence[AdvisoryLock] = ()
    oldest_transactions: Sequence[BackendSession] = ()
    """Those that have been open for longest, the oldest first."""
    prepared_transactions: Sequence[tuple[str, timedelta]] = ()
    """Transactions prepared for a two-phase commit, with their ages."""
    is_all: bool = True
