"""LISTEN on a connection that is also used for statements, and wait for its socket beside other things."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import psycopg

from gw_core.domain.errors import DatabaseUnavailableError
from gw_core.domain.rules.settings import PoolerMode
from gw_core.postgres.connection.database import QueueConnection
from gw_core.postgres.connection.error_mapping import translate

Notification = psycopg.Notify
"""What arrived: `channel`, `payload`, `pid`."""

JOBS: Final = "jobs:insert"
MIGRATIONS: Final = "worker:migrate"
"""The channels of Graphile Worker; they are not scoped by schema, so schemas in one database wake each other."""

MAX_NOTIFIED: Final = 1_000_000
"""Jobs that one notification may announce; what claims more is not to be trusted with more."""

PING: Final = "gw:echo"
"""The channel of heartbeats, for all pools: receiving another pool's ping proves that listening works."""


CLAIM_RULES: Final = "gw:rules"
"""The channel that announces changed claim rules; what they are is read from the tables."""


def own_channel(worker_id: str) -> str:
    """Return the channel on which one pool is spoken to; the statements make the same name with SQL's `md5`."""
    return f"gw:{hashlib.md5(worker_id.encode(), usedforsecurity=False).hexdigest()}"


def worker_channels(worker_id: str) -> tuple[str, ...]:
    """Return the channels that a worker listens to."""
    return (JOBS, MIGRATIONS, PING, CLAIM_RULES, own_channel(worker_id))


class Subscription:
    """Subscribes a connection; `on_notify` is called in the connection's own thread, also while a statement runs.

    Has `fileno()`, so it can be given to a selector; when that is readable call `receive()`.
    Behind a pooler in transaction mode it receives nothing: LISTEN would stay on a connection that others use.
    """

    def __init__(
        self, connection: QueueConnection, on_notify: Callable[[Notification], None], channels: Iterable[str]
    ) -> None:
        self._connection = connection
        self._on_notify = on_notify
        self._fileno = connection.fileno()
        # Not the driver's own list of handlers, which decodes strictly and would raise out of any statement.
        connection.pgconn.notify_handler = self._take
        if connection.pooling is PoolerMode.TRANSACTION:
            return
        try:
            # One round trip, and so one transaction: all of them or none.
            connection.execute("; ".join(f'listen "{channel}"' for channel in channels))
        except psycopg.Error as error:
            raise translate(error) from error

    def fileno(self) -> int:
        """Return the connection's socket; stays the same after the connection broke, so a selector can let go of it."""
        return self._fileno

    def receive(self) -> None:
        """Take what has arrived; raises `DatabaseUnavailableError` when what arrived is the end of the connection."""
        connection = self._connection.pgconn
        try:
            connection.consume_input()
        except psycopg.Error as error:
            raise translate(error) from error
        while (notice := connection.notifies()) is not None:
            self._take(notice)
        if connection.status != psycopg.pq.ConnStatus.OK:
            raise DatabaseUnavailableError("the connection that listens was closed by the server")

    def _take(self, notice: psycopg.pq.PGnotify) -> None:
        self._on_notify(Notification(_text(notice.relname), _text(notice.extra), notice.be_pid))


def announced_jobs(payload: str | bytes) -> int:
    """Return how many jobs a notification announces: one when it does not say, none when it is of a removal.

    Any client can send one, so the payload is untrusted: anything that is not a small number counts as one.
    """
    try:
        news = msgspec.json.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return 1
    count = news.get("count", 1) if isinstance(news, dict) else 1
    if not isinstance(count, int):
        return 1
    return max(0, min(count, MAX_NOTIFIED))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
