"""Which sessions wait for locks, and which transactions keep vacuum from removing dead rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from gw_core.domain.counted import counted

LONG_BLOCK: Final = timedelta(seconds=1)
"""Sessions that wait for a lock for longer than this are blocked."""


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

    @property
    def is_claim(self) -> bool:
        """Whether a worker of gw waits for jobs."""
        return (self.session.application or "").endswith(":claim")

    def is_of_queue(self, schema: str) -> bool:
        """Return whether it has waited for long, for a table of the queue or as a session of gw."""
        application, statement = self.session.application or "", self.session.statement or ""
        is_ours = application.startswith("gw") or "_private_" in self.waits_for or schema in statement
        return is_ours and (self.session.in_state_for or timedelta()) >= LONG_BLOCK


class Blocker(msgspec.Struct, frozen=True):
    """A session that keeps sessions of the queue waiting, and those."""

    session: BackendSession
    waiting: Sequence[LockWait]

    @property
    def age(self) -> timedelta:
        """How long one of them has waited."""
        return max(each.session.in_state_for or timedelta() for each in self.waiting)

    @property
    def description(self) -> str:
        """How many wait, for whom, and what that session runs, as a phrase."""
        who = self.session.application or self.session.user or "process"
        what = "claim" if any(each.is_claim for each in self.waiting) else "session"
        sessions = counted(len(self.waiting), f"{what} waits", f"{what}s wait")
        statement = f": {self.session.statement}" if self.session.statement else ""
        return f"{sessions} for {who} {self.session.pid}{statement}"


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

    def blockers_of(self, schema: str) -> list[Blocker]:
        """Return the sessions that keep sessions of the queue waiting, the most harmful first."""
        waiting = [each for each in self.blocked if each.is_of_queue(schema)]
        found = [
            Blocker(session, [each for each in waiting if session.pid in each.blocked_by]) for session in self.blockers
        ]
        return sorted((each for each in found if each.waiting), key=lambda each: -len(each.waiting))
