"""A real PgBouncer before a database, for as long as a test lasts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.accounts import account_for
from support.database_proxy import DatabaseProxy
from support.waiting import free_port, wait_until


def bouncer_program() -> str:
    """Return where PgBouncer is; the test is skipped where it is not."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip("PgBouncer is not installed; on Debian: apt-get install pgbouncer")
    return found


class PgBouncer:
    """A pooler before all databases of a server; `url` leads through it to the database of the URL it was given."""

    def __init__(self, url: str, program: str, *, mode: str, pool_size: int = 20, settings: str = "") -> None:
        # The socket of an embedded server is for its owner and for root, and PgBouncer is neither.
        self._road = DatabaseProxy(url) if str(conninfo_to_dict(url)["host"]).startswith("/") else None
        parts = conninfo_to_dict(self._road.url if self._road else url)
        self._folder = Path(tempfile.mkdtemp(prefix="gw-bouncer-"))
        self._port = free_port()
        self._pool_size = pool_size
        self._account = account_for(self._folder)
        self.url = self.through(url)
        user = str(parts.get("user") or "postgres")
        target = " ".join(f"{key}={parts[key]}" for key in ("host", "port", "password") if parts.get(key))
        (self._folder / "users").write_text(f'"{user}" ""\n')
        (self._folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = {target} user={user}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self._port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {self._folder / 'users'}\npool_mode = {mode}\n"
            f"default_pool_size = {pool_size}\n{settings}\n"
            f"logfile = {self._folder / 'log'}\npidfile = {self._folder / 'pid'}\n"
        )
        if self._account.borrowed:
            for place in (self._folder, *self._folder.iterdir()):
                os.chown(place, self._account.uid, self._account.gid)
        self._process = subprocess.Popen(
            [program, "-q", str(self._folder / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._account.switch,
        )

    def through(self, url: str) -> str:
        """Return the URL of a database of this server through the pooler."""
        return make_conninfo(url, host="127.0.0.1", port=self._port, sslmode="disable", gssencmode="disable")

    def prepare_for_others(self) -> None:
        """Prepare statements as another program with psycopg does, on every connection of the pool to the server."""
        with ExitStack() as stack:
            for _ in range(self._pool_size):
                other = stack.enter_context(psycopg.connect(self.url))  # its transaction keeps a connection to itself
                for number in range(30):
                    other.execute(f"select 'of another program', {number}, %s::text", ("",), prepare=True)

    def __enter__(self) -> Self:
        try:
            wait_until(self._answers, what="PgBouncer to answer")
        except AssertionError as error:
            self.__exit__(None, None, None)
            raise AssertionError(f"{error}: {self._words}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        if self._road is not None:
            self._road.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        self._words = (self._folder / "log").read_text() if (self._folder / "log").exists() else ""
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            with psycopg.connect(self.url, connect_timeout=10, autocommit=True) as connection:
                connection.execute("select 1", prepare=False)
        except psycopg.OperationalError:
            return False
        return True
