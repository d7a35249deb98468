"""The PostgreSQL that everything is measured on, and databases that live for one measurement."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from psycopg import sql

NUMBERS: Final = count(1)
URL: Final = re.compile("postgres(?:ql)?://[^/?]*")
CONNECTIONS: Final = 500
"""What our own server has room for: a hundred idle workers of each kind, and those who watch them."""


class Server:
    """The server at a URL, or one of our own in a temporary folder, which starts when it is first used."""

    def __init__(self, given: str | None = None) -> None:
        if given is not None and URL.match(given) is None:
            raise SystemExit("--database must be a URL: postgres://user@host:port/database")
        self._given = given
        self._ours = ExitStack()
        self._kept: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._kept.values():
            self._drop(name)
        self._ours.close()

    @cached_property
    def url(self) -> str:
        """Where it is, a database of its own included."""
        if self._given is not None:
            return self._given
        from gw_core.embedded import start_or_attach

        folder = self._ours.enter_context(tempfile.TemporaryDirectory(prefix="gw-bench-server-"))
        place = f"embedded://{Path(folder) / 'postgres'}"
        with start_or_attach(place) as first:  # which takes effect when it starts again
            ask(first.conninfo, f"alter system set max_connections = {CONNECTIONS}")
        return self._ours.enter_context(start_or_attach(place)).conninfo

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database and drop it after the block; the value is its URL."""
        name = self._new()
        try:
            yield _with_database(self.url, name)
        finally:
            self._drop(name)

    def become_copy(self, database: str, kind: str, make: Callable[[str], None]) -> None:
        """Put a copy into the place of a database; what is copied is made when its kind is first asked for, and kept.

        Copying ten million jobs takes a tenth of the time that making them takes.
        """
        if kind not in self._kept:
            self._kept[kind] = self._new()
            try:
                make(_with_database(self.url, self._kept[kind]))
            except BaseException:
                self._drop(self._kept.pop(kind))
                raise
        name = database.rpartition("/")[2].partition("?")[0]
        self._drop(name)
        # Files are copied faster than their contents are logged, but that forces checkpoints.
        is_quick = self._given is None and int(ask(self.url, "show server_version_num")) >= 150_000
        how = sql.SQL("strategy file_copy" if is_quick else "")
        kept = sql.Identifier(self._kept[kind])
        self._execute(sql.SQL("create database {} template {} {}").format(sql.Identifier(name), kept, how))

    def _new(self) -> str:
        name = f"gw_bench_{os.getpid()}_{next(NUMBERS)}"
        self._execute(sql.SQL("create database {} template template0 encoding 'UTF8'").format(sql.Identifier(name)))
        return name

    def _drop(self, name: str) -> None:
        self._execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def settle_down(self, database: str, *, analyze: bool = True) -> None:
        """Leave the traces of filling a queue behind: statistics fresh, and on our own server nothing left to write."""
        if analyze:
            ask(database, "vacuum (analyze)")
        if self._given is None:
            ask(database, "checkpoint")

    def ask(self, question: str, *values: object) -> Any:
        """Return the first value a statement answers with."""
        return ask(self.url, question, *values)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


def ask(url: str, question: str, *values: object) -> Any:
    """Run one statement and return the first value of its answer; None when it has none."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(question.encode(), values or None)
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def _with_database(url: str, name: str) -> str:
    head, question, parameters = url.partition("?")
    found = URL.match(head)
    assert found is not None, "checked when it was given"
    return f"{found[0]}/{name}{question}{parameters}"
