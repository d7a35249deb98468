"""The folder of one embedded server: what lies in it, and the locks by which its users agree.

Four locked files replace every list of process numbers: the kernel drops a lock when its last holder is gone, however
that came about, so no number can be stale, reused or a zombie's. The folder is opened once, and its files are named
relative to it, so that root never acts on what a link puts in their place.

- `lock`: held briefly while a user of the server starts or stops using it.
- `users.lock`: shared by everyone who uses the server; the watchdog waits to have it alone, then stops the server.
- `server.lock`: inherited by the server and each of its processes; free means that none of them is left.
- `watchdog.lock`: held by the watchdog; if it is free while the server runs, a new watchdog must be started.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from gw_core.domain.errors import EmbeddedError
from gw_core.domain.safe_text import printable
from gw_core.embedded import preparation
from gw_core.embedded.account import ROOT, Account, give, keeper_of, minimal_environment, name_of, server_account
from gw_core.embedded.address import PORT
from gw_core.embedded.preparation import closing
from gw_core.embedded.watchdog import acquire

LOCK_TIMEOUT = 60.0
PAUSE = 0.005
# The shortest sun_path among the systems we run on (macOS), its terminating zero taken off.
MAX_SOCKET_PATH = 103
LOG_LIMIT = 8 * 1024 * 1024


class DataFolder:
    """The folder of one embedded server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / preparation.DATA
        self.unfinished = folder / preparation.UNFINISHED
        self.log = folder / "server.log"

    @cached_property
    def directory(self) -> int:
        """The open folder, a file descriptor that is closed with this object."""
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, opened)
        return opened

    @property
    def state(self) -> os.stat_result:
        """The folder's owner and permissions."""
        return os.fstat(self.directory)

    def perform(self, account: Account, step: Callable[..., Any], folder: int, *arguments: Any) -> Any:
        """Take a step of `preparation` as the account, in an open folder."""
        return preparation.perform(step, folder, *arguments, switch=account.switch, environment=minimal_environment())

    def prepare(self) -> None:
        """Create the folder, or make sure that it is one of ours."""
        if not self.folder.exists():
            self._make_folder()
        names = set(os.listdir(self.directory))
        if "lock" in names:
            return
        if "PG_VERSION" in names:
            raise EmbeddedError(
                f"{str(self.folder)!r} is the data folder of another PostgreSQL server; name an empty or a new folder"
            )
        if names - {"lock", ".gitignore", "users.lock"}:
            # Another process may have been first.
            if "lock" in os.listdir(self.directory):
                return
            raise EmbeddedError(
                f"{str(self.folder)!r} holds other files; name an empty or a new folder: embedded:///path"
            )
        self.perform(keeper_of(self.state), preparation.make_file, self.directory, ".gitignore", "*\n")

    def _make_folder(self) -> None:
        """Create the folder and those above it, as the owner of the folder in which they begin."""
        above = next(place for place in self.folder.parents if place.exists())
        parts = self.folder.relative_to(above).parts
        with closing(os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as base:
            self.perform(keeper_of(os.fstat(base)), preparation.make_folders, base, parts)

    # -- the data folder -----------------------------------------------------------------------------------------------

    @property
    def account(self) -> Account:
        """The account the server runs as."""
        with closing(self.open_data()) as data:
            return server_account(self.state, None if data is None else os.fstat(data))

    def open_data(self) -> int | None:
        """The open data folder, or None while there is none.

        Raises `EmbeddedError` when root finds data of another account in the folder: their owner could be made
        to run a server on them, or lose them.
        """
        try:
            data = preparation.open_folder(preparation.DATA, self.directory)
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise EmbeddedError(f"{str(self.data)!r} is not a folder but a link or a file; remove it") from error
        owner, data_owner = self.state.st_uid, os.fstat(data).st_uid
        if os.geteuid() == ROOT and owner not in (ROOT, data_owner):
            os.close(data)
            raise EmbeddedError(
                f"{str(self.data)!r} belongs to {_user(data_owner)} and its parent folder to {_user(owner)};"
                f" give both to one of them with chown -R"
            )
        return data

    @contextmanager
    def data_path(self) -> Iterator[str]:
        """A path that leads to the data folder, for root past every link; to a place that is not there without data."""
        with closing(self.open_data()) as data:
            through = f"/proc/self/fd/{data}"
            yield through if data is not None and os.geteuid() == ROOT and os.path.isdir(through) else str(self.data)

    def take_over(self, account: Account) -> None:
        """Give data that were copied here by root to the account."""
        with closing(self.open_data()) as data:
            if data is not None:
                give(data, account, str(self.data))

    def major(self) -> int | None:
        """The major version the data were made with, or None while there are none."""
        with closing(self.open_data()) as data:
            if data is None:
                return None
            try:
                file = os.open("PG_VERSION", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=data)
            except FileNotFoundError:
                return None
        with open(file, "rb") as version:
            try:
                return int(version.read(64).decode("ascii", "replace").split(".")[0])
            except ValueError:
                raise EmbeddedError(
                    f"{str(self.data)!r} has no readable PostgreSQL data; name another folder"
                ) from None

    # -- locks ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all other processes from starting or stopping to use the server."""
        with closing(self.wait_for_lock("lock", fcntl.LOCK_EX)):
            yield

    def join(self) -> int:
        """Become a user; while an unused server is being stopped this waits for its end."""
        return self.wait_for_lock("users.lock", fcntl.LOCK_SH)

    def has_users(self) -> bool:
        """Whether processes use the server; only asked inside `alone()`, so none can be added in between."""
        with closing(self.open("users.lock")) as descriptor:
            # While the watchdog ends the server, nobody else gets either lock.
            return not acquire(descriptor, fcntl.LOCK_EX) and acquire(descriptor, fcntl.LOCK_SH)

    def try_lock(self, name: str) -> int | None:
        """The open and locked file, or None when another process holds it."""
        descriptor = self.open(name)
        if acquire(descriptor, fcntl.LOCK_EX):
            return descriptor
        os.close(descriptor)
        return None

    def is_held(self, name: str) -> bool:
        """Whether a process holds the lock."""
        with closing(self.try_lock(name)) as descriptor:
            return descriptor is None

    def wait_for_lock(self, name: str, kind: int) -> int:
        """The open and locked file, as soon as it can be had."""
        descriptor = self.open(name)
        deadline = time.monotonic() + LOCK_TIMEOUT
        while not acquire(descriptor, kind):
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise EmbeddedError(
                    f"another process has held {str(self.folder / name)!r} for {LOCK_TIMEOUT:g} s;"
                    f" see {str(self.log)!r}, end that process, then try again"
                )
            time.sleep(PAUSE)
        return descriptor

    def open(self, name: str, flags: int = os.O_RDWR) -> int:
        """Open one of the folder's own files, created first where it is missing; never what a link names.

        Raises `EmbeddedError` when root finds a file there that is not the folder owner's own alone.
        """
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=self.directory)
        except FileNotFoundError:
            self.perform(keeper_of(self.state), preparation.make_file, self.directory, name)
            descriptor = os.open(name, flags, dir_fd=self.directory)
        if os.geteuid() == ROOT and not _is_own(os.fstat(descriptor), self.state.st_uid):
            os.close(descriptor)
            raise EmbeddedError(
                f"{str(self.folder / name)!r} is not a regular file that belongs to {_user(self.state.st_uid)},"
                " the owner of the folder; remove it"
            )
        return descriptor

    # -- the server's socket and log ----------------------------------------------------------------------------------

    @property
    def socket_folder(self) -> Path:
        """A path to the data folder that fits into a socket's address; clients find the socket there."""
        # libpq takes a comma for the start of a second host.
        fits = len(os.fsencode(self.data / f".s.PGSQL.{PORT}")) <= MAX_SOCKET_PATH
        return self.data if fits and b"," not in os.fsencode(self.data) else self._short_link()

    def _short_link(self) -> Path:
        name = f"gw-{os.geteuid()}-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]}"
        for parent in _short_folders():
            link = parent / name
            with suppress(FileExistsError):
                link.symlink_to(self.data)
            # In a world-writable folder, a link counts only if we made it.
            if link.is_symlink() and link.lstat().st_uid == os.geteuid() and os.readlink(link) == str(self.data):
                return link
        places = " or ".join(map(str, _short_folders()))
        raise EmbeddedError(
            f"{str(self.folder)!r} is too long for a socket and no short link to it could be made in {places};"
            " name a shorter folder: embedded:///path"
        )

    def forget_link(self) -> None:
        """Remove the short link, once no process uses the server."""
        if self.socket_folder != self.data:
            with suppress(OSError):
                self.socket_folder.unlink()

    def log_size(self) -> int:
        """How many bytes the log holds."""
        try:
            return os.stat(self.log.name, dir_fd=self.directory, follow_symlinks=False).st_size
        except OSError:
            return 0

    def open_log(self) -> int:
        """The log to append to; an old one that has grown long is set aside."""
        if self.log_size() > LOG_LIMIT:
            old = self.log.with_suffix(".log.old").name
            os.replace(self.log.name, old, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        return self.open(self.log.name, os.O_WRONLY | os.O_APPEND)

    def log_tail(self, start: int) -> str:
        """The last twelve lines written to the log after `start`, safe to print."""
        with suppress(OSError, EmbeddedError), open(self.open(self.log.name, os.O_RDONLY), "rb") as file:
            file.seek(max(start, file.seek(0, os.SEEK_END) - 16_384))
            text = file.read().decode(errors="replace").splitlines()[-12:]
            return "\n".join(f"  {printable(line)}" for line in text)
        return ""


def _is_own(file: os.stat_result, owner: int) -> bool:
    """Whether a file is a regular one of the owner's that has no second name, which might be another folder's."""
    return stat.S_ISREG(file.st_mode) and file.st_uid == owner and file.st_nlink == 1


def _user(uid: int) -> str:
    return f"the user {name_of(uid) or uid}"


def _short_folders() -> Iterator[Path]:
    yield from dict.fromkeys(Path(folder) for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"))  # noqa: S108 - the link's owner is checked
