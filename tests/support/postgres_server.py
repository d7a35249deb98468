"""Real PostgreSQL servers of a test's own: to stop, crash, fail over and fill up."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import pytest

from gw_core.embedded.binaries import find_binaries
from gw_core.front_ends import EmbeddedError
from support.accounts import account_for
from support.waiting import free_port, wait_until

SETTINGS = """
fsync = off
shared_buffers = 16MB
max_connections = 40
wal_level = replica
hot_standby = on
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
"""


def new_folder() -> Path:
    """Return a folder for a server, in memory where that is possible."""
    folder = Path(tempfile.mkdtemp(prefix="gw-server-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    folder.chmod(0o755)
    return folder


def server_programs() -> Path:
    """Return the folder of a whole PostgreSQL installation; the test is skipped where there is none."""
    try:
        folder = find_binaries(None, major=None, folder=Path(tempfile.gettempdir())).folder
    except EmbeddedError as error:
        pytest.skip(f"PostgreSQL's programs are not here ({error}); on Debian: apt-get install postgresql")
    if not (folder / "pg_basebackup").exists():
        pytest.skip(f"{folder} has no pg_basebackup; on Debian: apt-get install postgresql")
    return folder


class Server:
    """One server on loopback, made immediately and started; `url` leads to its first database."""

    def __init__(self, *, copy_of: Server | None = None, settings: str = "", data: Path | None = None) -> None:
        self._programs = server_programs()
        self.folder = new_folder()
        self._data = data or self.folder / "data"
        self.account = account_for(self.folder)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if self.account.borrowed:
            os.chown(self.folder, self.account.uid, self.account.gid)
        self._make(copy_of)
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write(f"{SETTINGS}port = {self.port}\n{settings}")
        self.start()

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self.account.switch,
            )
        wait_until(self.answers, what="the server to answer")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: fast, or immediately with SIGQUIT, or as a crash with SIGKILL; may be called twice."""
        if self._process is None:
            return
        children = _children_of(self._process.pid)
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None
        # After a crash its children exit on their own, and hold the port and the shared memory until then.
        wait_until(lambda: not any(map(_runs, children)), what="the processes of the server to end")
        wait_until(lambda: not self.is_listening(), what="the port to be free")

    def answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            psycopg.connect(self.url, connect_timeout=10).close()
        except psycopg.OperationalError:
            return False
        return True

    def is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def run(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def promote(self) -> None:
        """Make the primary of a standby."""
        self.run("select pg_promote()")
        wait_until(lambda: self.run("select pg_is_in_recovery()") == [(False,)], what="the promotion")

    def _make(self, copy_of: Server | None) -> None:
        if copy_of is None:
            subprocess.run(["cp", "-a", _empty_data(self._programs), self._data], check=True)
        else:
            # With -R it begins as a standby of the server it is copied from.
            command = ["pg_basebackup", "-D", self._data, "-d", copy_of.url, "-c", "fast", "-X", "stream", "-R"]
            _ended_well(self._programs, command, self.account.switch)


def _children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended, or the system does not list children
        return []


def _runs(pid: int) -> bool:
    """Whether the process runs; it does not if it has ended and was not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@cache
def _empty_data(programs: Path) -> Path:
    """Make the data of an empty server once; all others are copies."""
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    account = account_for(folder)
    if account.borrowed:
        os.chown(folder, account.uid, account.gid)
    data = folder / "data"
    command = ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    _ended_well(programs, command, account.switch)
    return data


def _ended_well(programs: Path, command: list[str | Path], switch: Mapping[str, Any]) -> None:
    done = subprocess.run(
        [programs / command[0], *command[1:]], capture_output=True, text=True, timeout=120, cwd="/", **switch
    )
    assert done.returncode == 0, done.stderr
