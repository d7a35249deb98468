"""The folder of one embedded server: what lies in it, and the locks by which its users agree.

Four locked files replace every list of process numbers: the kernel drops a lock when its last holder is gone, however
that came about, so no number can be stale, reused or a zombie's.

- `lock`: held for the moment in which somebody comes or leaves.
- `users.lock`: shared by everyone who uses the server; the watchdog waits to have it alone, then stops the server.
- `server.lock`: inherited by the server and each of its processes; free means that none of them is left.
- `watchdog.lock`: held by the watchdog; free while the server runs means that somebody has to start a new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path

from gw_core.domain.errors import EmbeddedError
from gw_core.embedded.address import PORT

PATIENCE = 60.0
PAUSE = 0.005
# The shortest sun_path among the systems we run on (macOS), its terminating zero taken off.
LONGEST_SOCKET_PATH = 103
LOG_LIMIT = 8 * 1024 * 1024


class Usage(Enum):
    """Who besides us holds the server."""

    NOBODY = auto()
    OTHERS = auto()
    ENDING = auto()


class Home:
    """The folder of one embedded server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.unfinished = folder / "data.new"
        self.log = folder / "server.log"

    def prepare(self) -> None:
        """Create the folder, or make sure that it is one of ours."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (self.folder / "lock").exists():
            return
        if (self.folder / "PG_VERSION").exists():
            raise EmbeddedError(
                f"{str(self.folder)!r} is the data folder of another PostgreSQL server; name an empty or a new folder"
            )
        if any(name not in {"lock", ".gitignore", "users.lock"} for name in os.listdir(self.folder)):
            # Somebody may have come first while we looked.
            if (self.folder / "lock").exists():
                return
            raise EmbeddedError(
                f"{str(self.folder)!r} holds other files; name an empty or a new folder: embedded:///path"
            )
        descriptor = self.open(".gitignore")
        os.write(descriptor, b"*\n")
        os.close(descriptor)

    def major(self) -> int | None:
        """The major version the data were made with, or None while there are none."""
        try:
            text = (self.data / "PG_VERSION").read_text()
        except FileNotFoundError:
            return None
        try:
            return int(text.split(".")[0])
        except ValueError:
            raise EmbeddedError(
                f"{str(self.data)!r} holds no PostgreSQL data that can be read; name another folder"
            ) from None

    # -- locks ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else comes or leaves meanwhile."""
        descriptor = self.wait_for_lock("lock", fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(descriptor)

    def join(self) -> int:
        """Become a user; while an unused server is being stopped this waits for its end."""
        return self.wait_for_lock("users.lock", fcntl.LOCK_SH)

    def usage(self) -> Usage:
        """Who uses the server now; only asked inside `alone()`, so nobody new comes in between."""
        descriptor = self.open("users.lock")
        try:
            if _locked(descriptor, fcntl.LOCK_EX):
                return Usage.NOBODY
            return Usage.OTHERS if _locked(descriptor, fcntl.LOCK_SH) else Usage.ENDING
        finally:
            os.close(descriptor)

    def try_lock(self, name: str) -> int | None:
        """The open and locked file, or None when somebody holds it."""
        descriptor = self.open(name)
        if _locked(descriptor, fcntl.LOCK_EX):
            return descriptor
        os.close(descriptor)
        return None

    def is_held(self, name: str) -> bool:
        """Whether somebody holds the lock."""
        descriptor = self.try_lock(name)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def wait_for_lock(self, name: str, kind: int) -> int:
        """The open and locked file, as soon as it can be had."""
        descriptor = self.open(name)
        deadline = time.monotonic() + PATIENCE
        while not _locked(descriptor, kind):
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise EmbeddedError(
                    f"another process has held {str(self.folder / name)!r} for {PATIENCE:g} s;"
                    f" see {str(self.log)!r}, end that process, then try again"
                )
            time.sleep(PAUSE)
        return descriptor

    def open(self, name: str, flags: int = os.O_RDWR) -> int:
        """Open one of our own files, never one that a link puts in its place."""
        descriptor = os.open(self.folder / name, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:
            # Where root helps out in somebody's folder, its owner can still come back to it.
            owner = self.folder.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        return descriptor

    # -- the server's socket and log ----------------------------------------------------------------------------------

    @property
    def socket_folder(self) -> Path:
        """A path to the data folder that fits into a socket's address; clients find the socket there."""
        # libpq takes a comma for the start of a second host.
        fits = len(os.fsencode(self.data / f".s.PGSQL.{PORT}")) <= LONGEST_SOCKET_PATH
        return self.data if fits and b"," not in os.fsencode(self.data) else self._short_link()

    def _short_link(self) -> Path:
        name = f"gw-{os.geteuid()}-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]}"
        for parent in _short_folders():
            link = parent / name
            with suppress(FileExistsError):
                link.symlink_to(self.data)
            # In a folder everybody may write to, a link counts only if we made it.
            if link.is_symlink() and link.lstat().st_uid == os.geteuid() and os.readlink(link) == str(self.data):
                return link
        raise EmbeddedError(
            f"{str(self.folder)!r} is too long for a socket and no short link to it could be made in {_words()};"
            " name a shorter folder: embedded:///path"
        )

    def forget_link(self) -> None:
        """Remove the short link, once nobody uses the server."""
        if self.socket_folder != self.data:
            with suppress(OSError):
                self.socket_folder.unlink()

    def open_log(self) -> int:
        """The log to append to; an old one that has grown long is set aside."""
        with suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_LIMIT:
                self.log.replace(self.log.with_suffix(".log.old"))
        return self.open(self.log.name, os.O_WRONLY | os.O_APPEND)

    def log_tail(self, start: int, lines: int = 12) -> str:
        """The last lines written to the log after `start`, safe to print."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(start, file.seek(0, os.SEEK_END) - 16_384))
            text = file.read().decode(errors="replace").splitlines()[-lines:]
            return "\n".join("  " + "".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in text)
        return ""


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _short_folders() -> Iterator[Path]:
    yield from dict.fromkeys(Path(folder) for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"))  # noqa: S108 - the link's owner is checked


def _words() -> str:
    return " or ".join(str(folder) for folder in _short_folders())
