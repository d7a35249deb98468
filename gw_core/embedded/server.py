"""Start an embedded server or attach to the one that runs, and leave it again."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from gw_core.domain.errors import EmbeddedError
from gw_core.embedded import watchdog
from gw_core.embedded.account import Account, account_for, can_reach, take_over
from gw_core.embedded.address import PORT, ROLE, conninfo_for, folder_of
from gw_core.embedded.binaries import LONGEST_PATH, Binaries, find_binaries, runnable
from gw_core.embedded.home import PATIENCE, PAUSE, Home, Usage

SETTINGS = """
# Written when this folder was made; yours to change.
max_connections = 200
log_checkpoints = off
"""
# On the command line, where no configuration file can undo them.
INVARIANTS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "port": str(PORT),
    "log_destination": "stderr",
    "logging_collector": "off",
    "cluster_name": "gw",
}
# The question every server answers with one byte before anybody has logged in.
SSL_REQUEST = struct.pack("!II", 8, 80877103)
# A killed server first reads its log again, and would begin anew each time it was given up too early.
START_PATIENCE = 300.0
# After this long without an answer, what is left of a server that nobody watches is taken for dead.
ORPHANS_AFTER = 3.0


class EmbeddedServer:
    """One use of an embedded PostgreSQL; the last use that is closed stops the server."""

    def __init__(self, home: Home, user: int, conninfo: str) -> None:
        self._home = home
        self._user: int | None = user
        self.conninfo = conninfo

    @property
    def folder(self) -> Path:
        """Where the data, the log and the locks lie."""
        return self._home.folder

    def close(self) -> None:
        """Leave the server; who leaves last waits until it has stopped. May be called again."""
        user, self._user = self._user, None
        if user is None:
            return
        os.close(user)
        with suppress(OSError, EmbeddedError):
            _see_it_out(self._home)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_or_attach(connection: str, *, pg_bin: Path | None = None) -> EmbeddedServer:
    """A running PostgreSQL for an `embedded:` connection string, started now unless somebody has started it already."""
    home = Home(folder_of(connection))
    try:
        home.prepare()
        with home.alone():
            user = home.join()
            try:
                _ensure_server(home, pg_bin)
                return EmbeddedServer(home, user, conninfo_for(home.socket_folder))
            except BaseException:
                os.close(user)
                raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise EmbeddedError(
            f"the embedded PostgreSQL in {str(home.folder)!r} cannot be used: {reason}"
            f" ({str(error.filename or home.folder)!r}); put that right or name another folder: embedded:///path"
        ) from error


def _see_it_out(home: Home) -> None:
    with home.alone():
        if home.usage() is Usage.OTHERS:
            _ensure_watchdog(home)
            return
        deadline = time.monotonic() + PATIENCE
        while not _has_ended(home) and time.monotonic() < deadline:
            time.sleep(PAUSE)
        home.forget_link()


def _has_ended(home: Home) -> bool:
    watched = home.is_held("watchdog.lock")
    if home.is_held("server.lock") and not watched:
        _ensure_watchdog(home)
        return False
    return not watched


# -- attach --------------------------------------------------------------------------------------------------------


def _ensure_server(home: Home, pg_bin: Path | None) -> None:
    began = time.monotonic()
    while (server_lock := home.try_lock("server.lock")) is None:
        if _answers(home):
            _ensure_watchdog(home)
            return
        waited = time.monotonic() - began
        if waited > ORPHANS_AFTER and not home.is_held("watchdog.lock") and _lost_its_head(home):
            watchdog.end_orphans(str(home.data))
        if waited > PATIENCE:
            raise _trouble(home, f"runs but has not answered for {PATIENCE:g} s", max(0, _size(home.log) - 4096))
        time.sleep(PAUSE)
    try:
        _start(home, pg_bin, server_lock)
    finally:
        # The watchdog and the server keep the lock through copies of this descriptor.
        os.close(server_lock)


def _answers(home: Home) -> bool:
    if not watchdog.is_ready(str(home.data)):
        return False
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(os.fsencode(home.socket_folder / f".s.PGSQL.{PORT}"))
            # To be connected is not enough: the orphans of a killed server keep its socket open for a while.
            connection.sendall(SSL_REQUEST)
            return connection.recv(1) in {b"N", b"S"}
        except OSError:
            return False


def _lost_its_head(home: Home) -> bool:
    """Whether server processes are left whose postmaster was killed."""
    processes = watchdog.processes_of(str(home.data))
    return bool(processes) and watchdog.server_pid(str(home.data)) not in processes


def _ensure_watchdog(home: Home) -> None:
    """Give a running server whose watchdog was killed a new one."""
    pid = watchdog.server_pid(str(home.data))
    watchdog_lock = home.try_lock("watchdog.lock") if pid else None
    if watchdog_lock is None:
        return
    server_lock = home.open("server.lock")
    try:
        account = account_for(home.data)
        binaries = runnable(find_binaries(None, major=home.major(), folder=home.folder), account)
        _launch(home, account, binaries, server_lock, watchdog_lock, adopt=pid)
    except EmbeddedError:
        # The server runs; that nobody could be found to restart it is no reason to refuse it.
        return
    finally:
        os.close(server_lock)
        os.close(watchdog_lock)


# -- start ---------------------------------------------------------------------------------------------------------


def _start(home: Home, pg_bin: Path | None, server_lock: int) -> None:
    major = home.major()
    account = account_for(home.data)
    binaries = runnable(find_binaries(pg_bin, major=major, folder=home.folder), account)
    if major is None:
        _create_data(home, account, binaries)
    take_over(home.data, account)
    _refuse_if_served_by_hand(home)
    watchdog_lock = home.wait_for_lock("watchdog.lock", fcntl.LOCK_EX)
    try:
        _launch(home, account, binaries, server_lock, watchdog_lock, adopt=None)
    finally:
        os.close(watchdog_lock)


def _create_data(home: Home, account: Account, binaries: Binaries) -> None:
    if not account.has_name:
        raise EmbeddedError(
            f"user {account.uid} has no name, and initdb needs one to create the embedded PostgreSQL in"
            f" {str(home.folder)!r}; add an entry to /etc/passwd or run as a user that has one"
        )
    shutil.rmtree(home.unfinished, ignore_errors=True)
    home.unfinished.mkdir(mode=0o700)
    take_over(home.unfinished, account)
    _initdb(home, account, binaries)
    with (home.unfinished / "postgresql.conf").open("a") as file:
        file.write(SETTINGS)
    # One sync for everything is many times faster than initdb's own, file by file.
    os.sync()
    home.unfinished.rename(home.data)
    # Without this a power cut could bring the old name back, and the next start would throw the data away.
    _sync(home.folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _initdb(home: Home, account: Account, binaries: Binaries) -> None:
    for locale in _locales(binaries.major):
        with _Folder(home.unfinished, account) as folder:
            answer = subprocess.run(  # noqa: S603 - no shell, and the programs are those we found
                [
                    *(binaries.initdb, "-D", folder.path, "-U", ROLE, "--auth=trust", "--encoding=UTF8"),
                    *("--no-sync", *locale),
                ],
                **account.switch,
                cwd="/",
                env=_environment(),
                pass_fds=(folder.descriptor,),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        if answer.returncode == 0:
            return
        _empty(home.unfinished)
    words = " ".join(answer.stderr.split())[-1000:]
    raise EmbeddedError(
        f"initdb could not create the embedded PostgreSQL in {str(home.folder)!r}:"
        f" {''.join(c if c.isprintable() else '?' for c in words)}"
    )


def _locales(major: int) -> list[list[str]]:
    """Sort by code point, which is fastest, and know every letter; the plain C locale where that cannot be had."""
    if major >= 17:
        return [["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
    return [["--locale=C", "--lc-ctype=C.UTF-8"], ["--locale=C"]]


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _refuse_if_served_by_hand(home: Home) -> None:
    # Nobody holds `server.lock`, so no process of a server we started is left.
    if watchdog.processes_of(str(home.data)):
        raise EmbeddedError(
            f"a PostgreSQL that gw did not start works in {str(home.data)!r}; stop it with: pg_ctl stop -D"
            f" {str(home.data)!r}"
        )


class _Folder:
    """A folder's path as the server can use it: its own, or the way through an open descriptor.

    The descriptor leads past folders the server's account may not enter, `/root` for one, and is short.
    """

    def __init__(self, folder: Path, account: Account) -> None:
        self.descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = str(folder)
        if account.borrowed or len(os.fsencode(folder)) > LONGEST_PATH:
            through = f"/proc/self/fd/{self.descriptor}"
            if os.path.isdir(through):
                self.path = through
            elif not can_reach(folder, account):
                os.close(self.descriptor)
                raise EmbeddedError(
                    f"the account that runs PostgreSQL for root may not enter {str(folder)!r};"
                    " name a folder it can reach, for instance embedded:///var/lib/gw"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def _launch(
    home: Home, account: Account, binaries: Binaries, server_lock: int, watchdog_lock: int, *, adopt: int | None
) -> None:
    log_start = _size(home.log)
    log, users = home.open_log(), home.open("users.lock")
    report, reporter = os.pipe()
    try:
        with _Folder(home.data, account) as folder:
            orders = watchdog.Orders(
                command=[binaries.postgres, "-D", folder.path, *(f"--{k}={v}" for k, v in INVARIANTS.items())],
                data=folder.path,
                users=users,
                server=server_lock,
                report=reporter,
                inherited=[folder.descriptor, server_lock],
                account=dict(account.switch),
                adopt=adopt,
            )
            subprocess.run(  # noqa: S603 - this interpreter and a file of ours
                [sys.executable, "-I", "-S", "-B", watchdog.__file__, json.dumps(asdict(orders))],
                env=_environment(),
                pass_fds=(folder.descriptor, server_lock, watchdog_lock, users, reporter),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        # Only the watchdog may hold the writing end, so that its death is the end of the file.
        os.close(reporter)
        reporter = -1
        if not _reads_ready(report):
            raise _trouble(home, "did not start", log_start)
    finally:
        for descriptor in (log, users, report, reporter):
            if descriptor >= 0:
                os.close(descriptor)


def _reads_ready(report: int) -> bool:
    poll = select.poll()
    poll.register(report, select.POLLIN)
    return bool(poll.poll(START_PATIENCE * 1000)) and os.read(report, 16).startswith(b"ready")


def _environment() -> dict[str, str]:
    """Ours without what would lead PostgreSQL elsewhere, and with messages in one language."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "PYTHON"))}
    return {**kept, "LC_ALL": "C"}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _trouble(home: Home, what: str, log_start: int) -> EmbeddedError:
    tail = home.log_tail(log_start)
    words = f"the last lines of {str(home.log)!r} say:\n{tail}" if tail else f"{str(home.log)!r} says nothing"
    return EmbeddedError(f"the embedded PostgreSQL in {str(home.folder)!r} {what}; {words}")
