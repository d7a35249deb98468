"""A queue of which one part is late: its statements wait for locks until the server ends them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from console_fixture import ClientSource, queue_source
from msgspec import structs
from support.console_source import QueueSource

from gw_core import Client, SessionLimits
from gw_core.front_ends import QueueSnapshot

LATE = timedelta(milliseconds=100)
NONE = re.compile(
    r"(?<![\w.,:/+-])(?:(?:no|nothing) [a-z]+(?![a-z…])|(?:none|nothing|never|empty|0)(?![\w.,:/%]))", re.IGNORECASE
)
"""Words for "there is nothing", unless the line is cut there."""


class LateSource(QueueSource):
    """Reads a queue; `late` reads another one, which does not answer in time."""

    def __init__(self, stuck: str) -> None:
        super().__init__()
        self.stuck = queue_source(stuck, limits=SessionLimits(statement_timeout=LATE, read_only=True))
        self.late: str | None = None
        self.asked: set[str] = set()

    def answer(self, key: str, query: Callable[[ClientSource], Any]) -> Any:
        name = key.split(" ")[0]
        self.asked.add(name)
        if name != self.late:
            return super().answer(key, query)
        found = query(self.stuck)
        # The time stands still here, and goes on there.
        return structs.replace(found, at=self.queue.now) if isinstance(found, QueueSnapshot) else found

    def close(self) -> None:
        self.stuck.close()
        super().close()


@contextmanager
def locked_queue(url: str) -> Iterator[str]:
    """Make a queue that answers nothing: a session has locked its tables, and the server's list of locks."""
    with Client(url) as client:
        client.migrate()
    with psycopg.connect(url) as blocking:
        tables = blocking.execute(
            "select string_agg(format('%I.%I', relnamespace::regnamespace, relname), ', ') from pg_class"
            " where relnamespace = 'graphile_worker'::regnamespace and relkind in ('r', 'p') and not relispartition"
        ).fetchone()
        assert tables is not None
        blocking.execute(f"lock table {tables[0]}, pg_catalog.pg_locks in access exclusive mode".encode())
        yield url


def nones_in(lines: Iterable[str]) -> set[str]:
    return {found.lower() for line in lines for found in NONE.findall(line)}
