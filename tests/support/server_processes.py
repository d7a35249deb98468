"""What the operating system and `postmaster.pid` report about a PostgreSQL server of a test."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

READY_LINE = 7
OF_A_RUN = ("postmaster.pid", ".s.PGSQL.5432", ".s.PGSQL.5432.lock")


def server_pid(data: Path) -> int | None:
    """Return the server's process, as its own file names it."""
    lines = _pid_file(data)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def is_ready(data: Path) -> bool:
    """Return whether the server writes that it accepts connections."""
    lines = _pid_file(data)
    return len(lines) > READY_LINE and lines[READY_LINE].strip() == "ready"


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []


def processes_of(data: Path) -> list[int]:
    """Return the PostgreSQL processes whose current folder is this data folder."""
    found = Path("/proc").glob("[0-9]*")
    return [int(process.name) for process in found if _works_in(process, data)]


def _works_in(process: Path, data: Path) -> bool:
    with suppress(OSError):
        return (process / "comm").read_text().startswith("postgres") and (process / "cwd").samefile(data)
    return False


def end_orphans(data: Path, *, timeout: float = 10.0) -> None:
    """End what a killed server left behind: its processes hold the shared memory that a new server needs."""
    deadline = time.monotonic() + timeout
    while (orphans := processes_of(data)) and time.monotonic() < deadline:
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def forget_dead_server(data: Path) -> None:
    """Remove a killed server's files: PostgreSQL obeys them if their number is that of another process."""
    if not processes_of(data):
        for name in OF_A_RUN:
            (data / name).unlink(missing_ok=True)
