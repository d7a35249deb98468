"""List the sessions that wait for locks, and those whose transactions keep vacuum from removing dead rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Final

from gw_core.domain.reports.lock_waits import AdvisoryLock, BackendSession, LockWait, LockWaits
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.row_security import rows
from gw_core.postgres.connection.statements import query

MOST: Final = 200
"""The number of rows of each kind that are read."""

SWEEP: Final = "sweep"


def find_lock_waits(connection: Connection, schema: str) -> LockWaits:
    """Return the current lock waits; bounded, and without reading a table of the queue."""

    ask = partial(_ask, connection, schema, MOST + 1)
    blocked = [_blockage(row) for row in ask("doctor_blocked")]
    waiting = {each.session.pid for each in blocked}
    causes = {pid for each in blocked for pid in each.blocked_by} - waiting
    sessions = [_session(row) for row in ask("doctor_sessions", pids=sorted(causes))]
    advisory = sweep_locks(ask("sweep_lock_sessions", schema=schema))
    prepared = [(name, timedelta(seconds=seconds)) for name, seconds in ask("doctor_prepared")]
    return LockWaits(
        blocked=tuple(blocked[:MOST]),
        blockers=tuple(each for each in sessions if each.pid in causes),
        advisory=tuple(advisory[:MOST]),
        oldest_transactions=tuple(each for each in sessions if each.transaction_age is not None)[:MOST],
        prepared_transactions=tuple(prepared[:MOST]),
        is_all=all(len(found) <= MOST for found in (blocked, sessions, advisory, prepared)),
    )


def sweep_locks(found: Sequence[Sequence[Any]]) -> list[AdvisoryLock]:
    """Return the locks of the rows of sweep_lock_sessions.sql."""
    return [
        AdvisoryLock(name=SWEEP, granted=granted, is_respected=may_sweep, session=_session(session))
        for granted, may_sweep, *session in found
    ]


def oldest_transaction(connection: Connection, schema: str) -> tuple[str, timedelta] | None:
    """Return the oldest transaction that keeps vacuum from removing dead rows: what it is, and its age."""
    ask = partial(_ask, connection, schema, 1)
    found = [(f"prepared transaction {name}", timedelta(seconds=seconds)) for name, seconds in ask("doctor_prepared")]
    for each in (_session(row) for row in ask("doctor_sessions", pids=[])):
        what = f"process {each.pid} of {each.user or '?'} ({each.state or '?'})"
        found.append((what, each.transaction_age or timedelta()))
    return max(found, key=itemgetter(1), default=None)


def _ask(connection: Connection, schema: str, most: int, name: str, /, **values: Any) -> list[Any]:
    return rows(connection, query(name, schema), {**values, "most": most})


def _blockage(row: Sequence[Any]) -> LockWait:
    # A parallel query counts as often among the causes as it has processes.
    *session, mode, table, kind, causes = row
    return LockWait(
        session=_session(session),
        waits_for=f"{mode} on {table or kind}" if kind else str(mode),
        blocked_by=tuple(dict.fromkeys(causes)),
    )


def _session(row: Sequence[Any]) -> BackendSession:
    pid, user, application, state, in_state, transaction, statement = row
    return BackendSession(pid, user, application, state, _duration(in_state), _duration(transaction), statement)


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=max(0.0, seconds))
