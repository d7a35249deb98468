"""What the tests of the embedded server share: processes that use one, and queries for its remains."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.accounts import account_for
from support.server_processes import processes_of

from gw_core.embedded.binaries import Binaries, bundled, runnable, search_paths, versions_in

CHECKOUT = Path(__file__).parents[2]
SCRIPT = Path("tests", "embedded", "server_user.py")


@dataclass(slots=True)
class User:
    """A process that uses a server: it printed where, and leaves on request."""

    process: subprocess.Popen[str]
    _answer: dict[str, Any] | None = None

    @property
    def answer(self) -> dict[str, Any]:
        if self._answer is None:
            assert self.process.stdout is not None
            self._answer = json.loads(self.process.stdout.readline())
        return self._answer

    @property
    def conninfo(self) -> str:
        assert "error" not in self.answer, self.answer["error"]
        return str(self.answer["conninfo"])

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=60)


@dataclass(slots=True)
class Users:
    """Starts processes that use a server, and kills those still there at the end."""

    started: list[User] = field(default_factory=list)

    def __call__(
        self,
        folder: Path,
        pg_bin: Path | None = None,
        *,
        python: str = sys.executable,
        root: Path = CHECKOUT,
        **options: Any,
    ) -> User:
        process = subprocess.Popen(
            [python, str(root / SCRIPT), str(root), f"embedded://{folder}", str(pg_bin or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(User(process))
        return self.started[-1]

    def kill_all(self) -> None:
        while self.started:
            user = self.started.pop()
            user.kill()
            for stream in (user.process.stdin, user.process.stdout):
                assert stream is not None
                stream.close()


def copy_data(stopped: Path, folder: Path) -> None:
    """Make a server's folder from that of another one, which is stopped."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", stopped, folder], check=True)


def is_gone(folder: Path) -> bool:
    """Whether no process of the server in this folder is left, nor its watchdog."""
    if not (folder / "lock").exists():
        return True
    return not (is_held(folder / "server.lock") or is_held(folder / "watchdog.lock") or processes_of(folder / "data"))


def is_held(lock: Path) -> bool:
    """Whether a process holds the lock."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def watchdogs_of(folder: Path) -> list[int]:
    """The processes that have the watchdog's lock open; Linux names them."""
    lock = (folder / "watchdog.lock").stat()
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if _has_open(process, lock)]


def _has_open(process: Path, file: os.stat_result) -> bool:
    """Whether the process has the file open; it may end, and close files, at any time."""
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(descriptor.stat(), file):
                    return True
    return False


def machine_binaries() -> Binaries | None:
    """The server of this machine, if there is one beside the extra's."""
    extra = set(bundled())
    return next((found for found in versions_in(search_paths()) if found.folder not in extra), None)


def extra_binaries() -> Binaries:
    """The newest server of the `embedded` extra, which every development environment has."""
    return next(versions_in(bundled()))


def programs_for(data: Path, folder: Path | None = None) -> Path:
    """The programs of the extra, or of a folder, where the account of these data can run them."""
    found = extra_binaries() if folder is None else Binaries(folder, 0)
    return runnable(found, account_for(data)).folder
