"""The databases of one run of the test suite: what they are called, how they come and go."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]
NAME = re.compile(r"gw_test_(?P<host>[0-9a-f]{6})_(?P<pid>\d+)_(?P<began>\d+)_")
A_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the suite: its name is the same in all its xdist workers, and so is its folder."""

    prefix: str
    folder: Path

    @property
    def template(self) -> str:
        return f"{self.prefix}template"


@dataclass(frozen=True, slots=True)
class Databases:
    """Creates and drops the databases of this run on one server."""

    conninfo: str
    run: Run
    worker: str

    def url(self, name: str) -> str:
        return with_database(self.conninfo, name)

    def execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement)

    def create(self, name: str, *, template: str = "template0") -> None:
        statement = sql.SQL("create database {} template {} encoding 'UTF8'")
        self.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def drop(self, name: str) -> None:
        # PostgreSQL 12 has no `drop database … with (force)`.
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))
            connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))

    def names(self) -> list[str]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            rows = connection.execute("select datname from pg_database where starts_with(datname, 'gw_test_')")
            return [str(name) for (name,) in rows]


def with_database(conninfo: str, name: str) -> str:
    """The same server, another database, as a URL: that is what other programs of a test understand as well."""
    if not re.match(r"postgres(ql)?://", conninfo):
        return psycopg.conninfo.make_conninfo(conninfo, dbname=name)
    head, question, parameters = conninfo.partition("?")
    scheme, _, rest = head.partition("://")
    authority = rest.partition("/")[0]
    return f"{scheme}://{authority}/{name}{question}{parameters}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def new_folder() -> Path:
    """A folder for this run; those of runs that were killed are removed first."""
    for left in Path(tempfile.gettempdir()).glob("gw-test-*-*"):
        pid = left.name.split("-")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"gw-test-{os.getpid()}-"))


def is_orphan(name: str, *, now: float) -> bool:
    """Whether a database is left over from a run of ours that ended without tidying up."""
    match = NAME.match(name)
    if not match:
        return False
    gone = match["host"] == HOST and not _is_alive(int(match["pid"]))
    return gone or now - int(match["began"]) > A_DAY


@contextmanager
def running_server(folder: Path, *, pg_bin: Path | None) -> Iterator[str]:
    """Run a server that all processes of a test run share and into which any role may log in; yield its conninfo."""
    from gw_core.embedded import start_or_attach

    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin) as embedded:
        (embedded.folder / "data" / "gw_hba.conf").write_text("local all all trust\n")
        with psycopg.connect(embedded.conninfo, autocommit=True) as connection:
            # Nothing here outlives the run, so nothing has to survive a power cut.
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
        yield embedded.conninfo
