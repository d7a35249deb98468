"""The PostgreSQL that everything is measured on, and databases that live for one measurement."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from psycopg import sql

NUMBERS: Final = count(1)
URL: Final = re.compile("postgres(?:ql)?://[^/?]*")


class Server:
    """The server at a URL, or one of our own in a temporary folder, which starts when it is first used."""

    def __init__(self, given: str | None = None) -> None:
        if given is not None and URL.match(given) is None:
            raise SystemExit("--database must be a URL: postgres://user@host:port/database")
        self._given = given
        self._ours = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ours.close()

    @cached_property
    def url(self) -> str:
        """Where it is, a database of its own included."""
        if self._given is not None:
            return self._given
        from gw_core.embedded import start_or_attach

        folder = self._ours.enter_context(tempfile.TemporaryDirectory(prefix="gw-bench-server-"))
        return self._ours.enter_context(start_or_attach(f"embedded://{Path(folder) / 'postgres'}")).conninfo

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database and drop it after the block; the value is its URL."""
        name = f"gw_bench_{os.getpid()}_{next(NUMBERS)}"
        self._execute(sql.SQL("create database {} template template0 encoding 'UTF8'").format(sql.Identifier(name)))
        try:
            yield _with_database(self.url, name)
        finally:
            self._execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

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
