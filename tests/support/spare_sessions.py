"""Sessions that one test leaves to the next: a new one costs the server about ten milliseconds of processor time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

Session = psycopg.Connection[Any]

# Before 15, a session reports its statistics when it ends or at a time of its own choice.
REPORTS_STATISTICS_WHEN_ASKED = 150_000
_SPARE: dict[str, Session] = {}


def take(url: str) -> Session:
    """Return a session that commits each statement: the spare one, or a new one."""
    spare = _SPARE.pop(url, None)
    if spare is not None:
        if _reset(spare):
            return spare
        spare.close()
    # The driver does not notice every time that its prepared statements are discarded.
    return psycopg.connect(url, autocommit=True, prepare_threshold=None)


def leave(url: str, session: Session) -> None:
    """End the use of a session; it becomes the spare one if there is none."""
    if url not in _SPARE and _reset(session):
        _SPARE[url] = session
    else:
        session.close()


@contextmanager
def borrowed(url: str) -> Iterator[Session]:
    """Take a session for a block; an error closes it."""
    session = take(url)
    try:
        yield session
    except BaseException:
        session.close()
        raise
    leave(url, session)


def close_all() -> None:
    """Close the spare sessions."""
    while _SPARE:
        _SPARE.popitem()[1].close()


def _reset(session: Session) -> bool:
    """Make a session like a new one; return whether it is."""
    if session.info.transaction_status != TransactionStatus.IDLE or not session.autocommit:
        return False
    if session.info.server_version < REPORTS_STATISTICS_WHEN_ASKED:
        return False
    try:
        session.execute("discard all")
        session.execute("select pg_stat_force_next_flush()")
    except psycopg.Error:
        return False
    return True
