"""Start an embedded server or attach to the one that runs, and leave it again."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import select
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

from gw_core.domain.errors import EmbeddedError
from gw_core.domain.safe_text import printable, sql_identifier
from gw_core.embedded import preparation, watchdog
from gw_core.embedded.account import ROOT, Account, can_reach, give, keeper_of, minimal_environment, name_of
from gw_core.embedded.address import PORT, ROLE, conninfo_for, folder_of
from gw_core.embedded.binaries import MAX_PATH_LENGTH, Binaries, find_binaries, runnable
from gw_core.embedded.data_folder import LOCK_TIMEOUT, PAUSE, DataFolder
from gw_core.embedded.preparation import closing

SETTINGS = """
# Written when this folder was created; you can change it.
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
# Who may connect as the superuser: the system users that `_system_users` returns. The files are written at each start
# and named on the command line, so that those which initdb made in the data folder do not count.
ACCESS = f"""\
# Written by gw at each start.
local all {ROLE} peer map=gw
local replication {ROLE} peer map=gw
local all all scram-sha-256
"""
ACCESS_FILES = {"hba_file": "gw_hba.conf", "ident_file": "gw_ident.conf"}
# The request that every server answers with one byte before authentication.
SSL_REQUEST = struct.pack("!II", 8, 80877103)
# A killed server replays its log first, and would start over each time the wait ended too early.
START_TIMEOUT = 300.0
# After this long without an answer, what is left of a server without a watchdog is presumed dead.
ORPHANS_AFTER = 3.0


class EmbeddedServer:
    """One use of an embedded PostgreSQL; the last use that is closed stops the server.

    Example: docs/api/embedded.md
    """

    def __init__(self, home: DataFolder, user: int, conninfo: str) -> None:
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
            _wait_for_exit(self._home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_or_attach(connection: str, *, pg_bin: Path | None = None) -> EmbeddedServer:
    """A running PostgreSQL for an `embedded:` connection string, started now unless it already runs.

    Example: docs/guide/embedded.md
    """
    home = DataFolder(folder_of(connection))
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
            f" ({str(error.filename or home.folder)!r}); fix this, or name another folder: embedded:///path"
        ) from error


def _wait_for_exit(home: DataFolder) -> None:
    with home.alone():
        if home.has_users():
            _ensure_watchdog(home)
            return
        deadline = time.monotonic() + LOCK_TIMEOUT
        while not _has_ended(home) and time.monotonic() < deadline:
            time.sleep(PAUSE)
        home.forget_link()


def _has_ended(home: DataFolder) -> bool:
    watched = home.is_held("watchdog.lock")
    if home.is_held("server.lock") and not watched:
        _ensure_watchdog(home)
        return False
    return not watched


# -- attach --------------------------------------------------------------------------------------------------------


def _ensure_server(home: DataFolder, pg_bin: Path | None) -> None:
    began = time.monotonic()
    while (server_lock := home.try_lock("server.lock")) is None:
        if _answers(home):
            _ensure_watchdog(home)
            return
        waited = time.monotonic() - began
        if waited > ORPHANS_AFTER and not home.is_held("watchdog.lock"):
            _end_orphans(home)
        if waited > LOCK_TIMEOUT:
            raise _failure(home, f"runs but has not answered for {LOCK_TIMEOUT:g} s", max(0, home.log_size() - 4096))
        time.sleep(PAUSE)
    with closing(server_lock):  # the watchdog and the server keep the lock through copies of this descriptor
        _start(home, pg_bin, server_lock)


def _answers(home: DataFolder) -> bool:
    with home.data_path() as data:
        if not watchdog.is_ready(data):
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


def _end_orphans(home: DataFolder) -> None:
    """End the processes that are left of a server whose postmaster was killed."""
    with home.data_path() as data:
        processes = watchdog.processes_of(data)
        if processes and watchdog.server_pid(data) not in processes:
            watchdog.end_orphans(data)


def _ensure_watchdog(home: DataFolder) -> None:
    """Give a running server whose watchdog was killed a new one."""
    with home.data_path() as data:
        pid = watchdog.server_pid(data)
    with closing(home.try_lock("watchdog.lock") if pid else None) as watchdog_lock:
        if watchdog_lock is None:
            return
        # The server runs; a missing watchdog does not justify rejecting it.
        with closing(home.open("server.lock")) as server_lock, suppress(EmbeddedError):
            account = home.account
            binaries = runnable(find_binaries(None, major=home.major(), folder=home.folder), account)
            _launch(home, account, binaries, server_lock, watchdog_lock, adopt=pid)


# -- start ---------------------------------------------------------------------------------------------------------


def _start(home: DataFolder, pg_bin: Path | None, server_lock: int) -> None:
    major = home.major()
    account = home.account
    binaries = runnable(find_binaries(pg_bin, major=major, folder=home.folder), account)
    if major is None:
        _create_data(home, account, binaries)
    home.take_over(account)
    _reject_foreign_server(home)
    with closing(home.wait_for_lock("watchdog.lock", fcntl.LOCK_EX)) as watchdog_lock:
        _launch(home, account, binaries, server_lock, watchdog_lock, adopt=None)


def _create_data(home: DataFolder, account: Account, binaries: Binaries) -> None:
    if account.name is None:
        raise EmbeddedError(
            f"user {account.uid} has no name, and initdb needs one to create the embedded PostgreSQL in"
            f" {str(home.folder)!r}; add an entry to /etc/passwd or run as a user that has one"
        )
    if account.is_shared:
        logging.getLogger("graphile_worker").warning(
            "the embedded PostgreSQL in %r runs as the user %s, so other programs of that user can read and change its"
            " data; give the folder to a separate user, or create the user postgres, before the first start",
            str(home.folder),
            account.name,
        )
    keeper = keeper_of(home.state)
    home.perform(keeper, preparation.make_unfinished, home.directory)
    with closing(preparation.open_folder(preparation.UNFINISHED, home.directory)) as data:
        if account.borrowed and not keeper.borrowed:
            # Root's own folder: the account may not create anything in it, so root has, and lets go of what is empty.
            give(data, account, str(home.unfinished))
        complaint = _fill(home, data, account, binaries)
    if complaint is not None:
        raise EmbeddedError(
            f"initdb could not create the embedded PostgreSQL in {str(home.folder)!r}: {printable(complaint)}"
        )
    home.perform(keeper, preparation.finish, home.directory)


def _fill(home: DataFolder, data: int, account: Account, binaries: Binaries) -> str | None:
    # A server that is started manually on this folder gets safe rules as well.
    rules = ("--auth-local=peer", "--auth-host=reject")
    place = path_for_server(data, home.unfinished, account)
    commands = [
        [binaries.initdb, "-D", place, "-U", ROLE, *rules, "--encoding=UTF8", "--no-sync", *locale]
        for locale in _locales(binaries.major)
    ]
    complaint: str | None = home.perform(account, preparation.fill, data, commands, SETTINGS, minimal_environment())
    return complaint


def _locales(major: int) -> list[list[str]]:
    """Sort by code point, which is fastest, and know every letter; the plain C locale where that cannot be had."""
    if major >= 17:
        return [["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
    return [["--locale=C", "--lc-ctype=C.UTF-8"], ["--locale=C"]]


def _reject_foreign_server(home: DataFolder) -> None:
    # No process holds `server.lock`, so no process of a server that gw started is left.
    with home.data_path() as data:
        processes = watchdog.processes_of(data)
    if processes:
        raise EmbeddedError(
            f"a PostgreSQL server that gw did not start runs in {str(home.data)!r}; stop it with: pg_ctl stop -D"
            f" {str(home.data)!r}"
        )


def path_for_server(opened: int, folder: Path, account: Account) -> str:
    """Return an open folder's path as the server can use it: its own, or the way through the open descriptor.

    The descriptor leads past folders the server's account may not enter, `/root` for one, and is short.
    """
    if not account.borrowed and len(os.fsencode(folder)) <= MAX_PATH_LENGTH:
        return str(folder)
    through = f"/proc/self/fd/{opened}"
    if os.path.isdir(through):
        return through
    if not can_reach(folder, account):
        raise EmbeddedError(
            f"the account that runs PostgreSQL for root may not enter {str(folder)!r};"
            " name a folder it can reach, for instance embedded:///var/lib/gw"
        )
    return str(folder)


def _launch(
    home: DataFolder, account: Account, binaries: Binaries, server_lock: int, watchdog_lock: int, *, adopt: int | None
) -> None:
    data = home.open_data()
    if data is None:
        raise EmbeddedError(f"{str(home.data)!r} was removed; do not remove it while gw starts its server")
    log_start = home.log_size()
    log, users = home.open_log(), home.open("users.lock")
    report, reporter = os.pipe()
    try:
        place = path_for_server(data, home.data, account)
        rules = {name: os.path.join(place, file) for name, file in ACCESS_FILES.items()}
        orders = watchdog.WatchdogArguments(
            command=[
                *(binaries.postgres, "-D", place),
                *(f"--{name}={value}" for name, value in {**INVARIANTS, **rules}.items()),
            ],
            data=place,
            files={ACCESS_FILES["hba_file"]: ACCESS, ACCESS_FILES["ident_file"]: _system_users(home)},
            users=users,
            server=server_lock,
            report=reporter,
            inherited=[data, server_lock],
            account=account.switch,
            adopt=adopt,
        )
        subprocess.run(  # noqa: S603 - this interpreter and a file of ours
            [sys.executable, "-I", "-S", "-B", watchdog.__file__, json.dumps(asdict(orders))],
            env=minimal_environment(),
            pass_fds=(data, server_lock, watchdog_lock, users, reporter),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
        # Only the watchdog may hold the writing end, so that its death is the end of the file.
        os.close(reporter)
        reporter = -1
        if not _reads_ready(report):
            raise _failure(home, "did not start", log_start)
    finally:
        for descriptor in (data, log, users, report, reporter):
            if descriptor >= 0:
                os.close(descriptor)


def _system_users(home: DataFolder) -> str:
    """Return the map of system users who may connect as the superuser: root, the folder's owner, and ourselves.

    The account that root uses only for the server is not among them, because other services may run as it too.
    """
    if name_of(os.geteuid()) is None:
        raise EmbeddedError(
            f"user {os.geteuid()} has no name, and the embedded PostgreSQL in {str(home.folder)!r} knows its users by"
            " name; add an entry to /etc/passwd or run as a user that has one"
        )
    names = {name for uid in (ROOT, home.state.st_uid, os.geteuid()) if (name := name_of(uid)) is not None}
    return "".join(f"gw {sql_identifier(name)} {ROLE}\n" for name in sorted(names))


def _reads_ready(report: int) -> bool:
    poll = select.poll()
    poll.register(report, select.POLLIN)
    return bool(poll.poll(START_TIMEOUT * 1000)) and os.read(report, 16).startswith(b"ready")


def _failure(home: DataFolder, what: str, log_start: int) -> EmbeddedError:
    tail = home.log_tail(log_start)
    words = f"the last lines of {str(home.log)!r} say:\n{tail}" if tail else f"{str(home.log)!r} is empty"
    return EmbeddedError(f"the embedded PostgreSQL in {str(home.folder)!r} {what}; {words}")
