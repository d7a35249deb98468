"""The PostgreSQL that everything is measured on, and databases that live for one measurement."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

NUMBERS: Final = count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """A server and the right to make databases on it."""

    url: str

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database and drop it after the block; the value is its URL."""
        name = f"gw_bench_{os.getpid()}_{next(NUMBERS)}"
        self._execute(sql.SQL("create database {} template template0 encoding 'UTF8'").format(sql.Identifier(name)))
        try:
            yield _with_database(self.url, name)
        finally:
            self._execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def ask(self, question: str, *values: object) -> Any:
        """Return the first value a statement answers with."""
        return ask(self.url, question, *values)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def server_for(given: str | None) -> Iterator[Server]:
    """The server at a URL, or one of our own in a temporary folder that ends with the block."""
    if given is not None:
        yield Server(given)
        return
    from gw_core.embedded import start_or_attach

    with (
        tempfile.TemporaryDirectory(prefix="gw-bench-server-") as folder,
        start_or_attach(f"embedded://{Path(folder) / 'postgres'}") as embedded,
    ):
        yield Server(embedded.conninfo)


def ask(url: str, question: str, *values: object) -> Any:
    """Run one statement and return the first value of its answer; None when it has none."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(question.encode(), values or None)
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def settle_down(url: str, *, analyze: bool = True) -> None:
    """Leave the traces of filling a queue behind: statistics fresh, nothing left to write."""
    if analyze:
        ask(url, "vacuum (analyze)")
    ask(url, "checkpoint")


def _with_database(url: str, name: str) -> str:
    head, question, parameters = url.partition("?")
    found = re.match(r"(postgres(?:ql)?://[^/]*)", head)
    if found is None:
        raise SystemExit("--database must be a URL: postgres://user@host:port/database")
    return f"{found[1]}/{name}{question}{parameters}"
