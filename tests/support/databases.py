"""The databases of one run of the test suite: what they are called, how they come and go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from gw_core import Client
from gw_core.operations import MigrationReport
from support import spare_sessions
from support.waiting import wait_until

HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]
NAME = re.compile(r"gw_test_(?P<host>[0-9a-f]{6})_(?P<pid>\d+)_(?P<began>\d+)_")
NUMBERS = count(1)
A_DAY = 24 * 60 * 60
MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3


END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the suite: its name is the same in all its xdist workers, and so is its folder."""

    prefix: str
    folder: Path

    @property
    def template(self) -> str:
        return f"{self.prefix}template"

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Let one process of the run at a time do what has this name."""
        with (self.folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True, slots=True)
class Databases:
    """Creates and drops the databases of this run on one server."""

    conninfo: str
    run: Run
    worker: str

    def url(self, name: str) -> str:
        return with_database(self.conninfo, name)

    def create(self, name: str, *, template: str = "template0") -> None:
        statement = sql.SQL("create database {} template {} encoding 'UTF8'").format(
            sql.Identifier(name), sql.Identifier(template)
        )
        self._execute(statement + sql.SQL(_strategy(self.conninfo)), without=template)

    def made_template(self, server: str) -> str:
        """Return the name of a database with the newest schema, which one process of the run makes on each server."""
        with self.run.alone("template"):
            ready = self.run.folder / f"template.{server}"
            if not ready.exists():
                self.drop(self.run.template)
                self.create(self.run.template)
                install_schema(self.url(self.run.template))
                ready.touch()
        return self.run.template

    def drop(self, name: str) -> None:
        self._execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)), without=name)

    def _execute(self, statement: sql.Composed, *, without: str) -> None:
        """Run a statement that needs a database without sessions; the server waits five seconds for those that end."""

        def is_done() -> bool:
            with psycopg.connect(self.conninfo, autocommit=True) as connection, suppress(psycopg.errors.ObjectInUse):
                # PostgreSQL 12 has no `drop database … with (force)`.
                connection.execute(END_SESSIONS, (without,))
                connection.execute(statement)
                return True
            return False

        wait_until(is_done, what=f"the sessions of {without} to end")

    def names(self) -> list[str]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            rows = connection.execute("select datname from pg_database where starts_with(datname, 'gw_test_')")
            return [str(name) for (name,) in rows]


@cache
def _strategy(conninfo: str) -> LiteralString:
    """Return how to copy a database: as files, which takes half of the time, where the server lets one choose."""
    with psycopg.connect(conninfo) as connection:
        return " strategy file_copy" if connection.info.server_version >= 150_000 else ""


def with_database(conninfo: str, name: str) -> str:
    """The same server, another database, as a URL: that is what other programs of a test understand as well."""
    if not re.match(r"postgres(ql)?://", conninfo):
        return psycopg.conninfo.make_conninfo(conninfo, dbname=name)
    head, question, parameters = conninfo.partition("?")
    scheme, _, rest = head.partition("://")
    authority = rest.partition("/")[0]
    return f"{scheme}://{authority}/{name}{question}{parameters}"


def install_schema(url: str, schema: str = "graphile_worker") -> MigrationReport:
    """Install or upgrade the schema, as a program does."""
    with Client(url, schema=schema) as client:
        return client.migrate()


@contextmanager
def new_database(there: Databases, template: str = "template0") -> Iterator[str]:
    """Make a database in which every role may create objects in `public`, and drop it after the block."""
    name = f"{there.run.prefix}{there.worker}_open_{next(NUMBERS)}"
    there.create(name, template=template)
    try:
        with psycopg.connect(there.url(name), autocommit=True) as connection:
            connection.execute("grant create, usage on schema public to public")
        yield there.url(name)
    finally:
        there.drop(name)


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
    for left in (left for place in {MEMORY, _place()} for left in place.glob("gw-test-*-*")):
        pid = left.name.split("-")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"gw-test-{os.getpid()}-", dir=_place()))


def _place() -> Path:
    """Return where the server's files go: into memory if it has room, because emptying tables creates many files."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        return MEMORY
    return Path(tempfile.gettempdir())


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
            for setting in ("fsync", "full_page_writes"):
                connection.execute(f"alter system set {setting} = off".encode())
            connection.execute("select pg_reload_conf()")
        yield embedded.conninfo


# What a test may change beside rows: objects, rights, settings and statistics. `truncate` changes `pg_class` too, so
# the state is read again after it.
STATE = """
select md5(coalesce(string_agg(item, ' ' order by item), '')) from (
    select 'class ' || oid || ' ' || xmin || ' ' || relpages || ' ' || reltuples from pg_class where oid >= 16384
    union all select 'attribute ' || attrelid || ' ' || attnum || ' ' || xmin from pg_attribute where attrelid >= 16384
    union all select 'function ' || oid || ' ' || xmin from pg_proc where oid >= 16384
    union all select 'type ' || oid || ' ' || xmin from pg_type where oid >= 16384
    union all select 'constraint ' || oid || ' ' || xmin from pg_constraint where oid >= 16384
    union all select 'trigger ' || oid || ' ' || xmin from pg_trigger
    union all select 'rule ' || oid || ' ' || xmin from pg_rewrite where oid >= 16384
    union all select 'policy ' || oid || ' ' || xmin from pg_policy
    union all select 'default ' || oid || ' ' || xmin from pg_attrdef
    union all select 'namespace ' || oid || ' ' || xmin from pg_namespace
    union all select 'rights ' || oid || ' ' || xmin from pg_default_acl
    union all select 'statistics ' || count(*) from pg_statistic where starelid >= 16384
    union all select 'database ' || xmin from pg_database where datname = current_database()
    union all select 'setting ' || xmin from pg_db_role_setting
    union all select 'step ' || id || ' ' || xmin from graphile_worker.migrations
    union all select 'step of gw ' || id || ' ' || xmin from graphile_worker._private_gw_migrations
) as state (item)
"""
TOUCHED = """
select format('%I.%I', schemaname, relname) from pg_stat_user_tables
 where schemaname = 'graphile_worker' and relname not like '%migrations' and (pg_relation_size(relid) > 0 or exists (
    select from pg_depend join pg_sequence on seqrelid = objid
     where refobjid = relid and deptype in ('a', 'i') and pg_sequence_last_value(seqrelid) is not null))
"""
# A session that ends hands in what it has counted, and is listed until then.
RESET_STATISTICS = """
select pg_stat_reset() where not exists (
    select from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
"""


class ReusedDatabase:
    """A clone of the template for one test after another: emptied between them, replaced if more than rows changed.

    Emptying takes a tenth of the time that a new clone takes.
    """

    def __init__(self, databases: Databases, template: str, name: str = "reused") -> None:
        self._databases = databases
        self._template = template
        self._name = f"{databases.run.prefix}{databases.worker}_{name}"
        self._state: str | None = None

    def url(self) -> str:
        """Return the URL of the database, which has the newest schema and no rows."""
        if self._state is None:
            self._databases.create(self._name, template=self._template)
            with self._connected() as connection:
                self._state = _state_of(connection)
        return self._databases.url(self._name)

    def empty(self) -> None:
        """Disconnect everyone and delete all rows; drop the database if a test changed more than rows."""
        try:
            with self._connected() as connection:
                connection.execute(END_SESSIONS, (self._name,))
                if _state_of(connection) == self._state:
                    self._truncate(connection)
                    return
        except psycopg.Error:
            pass  # for example because the schema is gone
        self.drop()

    def drop(self) -> None:
        self._databases.drop(self._name)
        self._state = None

    def _connected(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        return spare_sessions.borrowed(self._databases.url(self._name))

    def _truncate(self, connection: psycopg.Connection[Any]) -> None:
        if touched := [str(name) for (name,) in connection.execute(TOUCHED)]:
            connection.execute(f"truncate {', '.join(touched)} restart identity cascade".encode())
            self._state = _state_of(connection)
        wait_until(lambda: connection.execute(RESET_STATISTICS).rowcount, what="other sessions to end", every=0.002)


def _state_of(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute(STATE).fetchone()
    assert row is not None
    return str(row[0])
