"""Stay beside one embedded server: start it, restart it when it is killed, stop it when its last user is gone.

Run as a script of its own, so that the server outlives the process that asked for it and nothing outlives the last one.
Only the standard library is imported, and before the account changes: afterwards our own files may be out of reach.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

READY_LINE = 7
MARKS = ("postmaster.pid", ".s.PGSQL.5432", ".s.PGSQL.5432.lock")
POLL_SECONDS = 0.005
ADOPTED_POLL_SECONDS = 0.25
SIGNAL_AGAIN_SECONDS = 0.2
START_ATTEMPTS = 3
# From the politest to the rudest; how long each may take.
STOP_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))


@dataclass(slots=True)
class WatchdogArguments:
    """The arguments of a watchdog process.

    `files` are written into the data folder before each start. `users`, `server`, `report` and `inherited` are file
    descriptors; `adopt` is a server that runs already.
    """

    command: list[str]
    data: str
    files: dict[str, str]
    users: int
    server: int
    report: int
    inherited: list[int]
    account: dict[str, Any]
    adopt: int | None


def is_ready(data: str) -> bool:
    """Whether the server on this data folder accepts connections."""
    lines = _pid_file(data)
    return len(lines) > READY_LINE and lines[READY_LINE].strip() == "ready"


def server_pid(data: str) -> int | None:
    """The server's process, as its own file names it."""
    lines = _pid_file(data)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _pid_file(data: str) -> list[str]:
    try:
        with open(os.path.join(data, "postmaster.pid"), errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def processes_of(data: str) -> list[int]:
    """The PostgreSQL processes that use this data folder; none without /proc."""
    try:
        place = os.stat(data)
        numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    return [number for number in numbers if _works_in(number, place)]


def _works_in(pid: int, place: os.stat_result) -> bool:
    try:
        if os.stat(f"/proc/{pid}").st_uid != place.st_uid:
            return False
        with open(f"/proc/{pid}/comm") as file:
            return file.read().startswith("postgres") and os.path.samestat(os.stat(f"/proc/{pid}/cwd"), place)
    except OSError:
        return False


def end_orphans(data: str, *, timeout: float = 10.0) -> None:
    """End what a killed server left behind, for it holds the shared memory a new one needs.

    Its processes exit when they next wait for something; one that computes may take an hour.
    """
    deadline = time.monotonic() + timeout
    while (orphans := processes_of(data)) and time.monotonic() < deadline:
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def forget_dead_server(data: str) -> None:
    """Remove a killed server's pid files: PostgreSQL obeys them if their number is a zombie's or another process's."""
    if os.path.isdir("/proc/self") and not processes_of(data):
        for name in MARKS:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(data, name))


def write_files(data: str, files: dict[str, str]) -> None:
    """Write files of our own into the data folder, each as a whole."""
    for name, text in files.items():
        place = os.path.join(data, name)
        with suppress(FileNotFoundError):
            os.unlink(f"{place}.new")
        file = os.open(f"{place}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
        os.replace(f"{place}.new", place)


def acquire(descriptor: int, kind: int) -> bool:
    """Lock an open file without waiting; return whether that was possible."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Watchdog:
    """One server and the end of its use."""

    def __init__(self, orders: WatchdogArguments) -> None:
        self._orders = orders
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._reported = False
        self._unused = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        """Until the server has ended and should stay so."""
        signal.signal(signal.SIGTERM, lambda *_: self._unused.set())
        threading.Thread(target=self._wait_for_the_last_user, name="users", daemon=True).start()
        threading.Thread(target=self._stop_when_unused, name="stop", daemon=True).start()
        if self._orders.adopt is not None:
            self._report("ready")
            self._wait_for_adopted()
        while not self._unused.is_set() and self._serve():
            end_orphans(self._orders.data)
        self._report("failed")
        self._ended.set()

    def _serve(self) -> bool:
        """Run the server until it ends; whether it worked, so that another is worth starting."""
        for _ in range(START_ATTEMPTS):
            forget_dead_server(self._orders.data)
            self._postmaster = self._start()
            became_ready = self._wait_until_ready(self._postmaster)
            self._postmaster.wait()
            if became_ready or self._unused.is_set():
                return became_ready
            end_orphans(self._orders.data)
        return False

    def _start(self) -> subprocess.Popen[bytes]:
        write_files(self._orders.data, self._orders.files)
        # A session of its own: Ctrl-C in the terminal is for the programs that use the server.
        return subprocess.Popen(  # noqa: S603 - the command comes from the process that started us
            self._orders.command, cwd="/", pass_fds=self._orders.inherited, start_new_session=True
        )

    def _wait_until_ready(self, postmaster: subprocess.Popen[bytes]) -> bool:
        while postmaster.poll() is None:
            # An old file may still name the server that was killed.
            if server_pid(self._orders.data) == postmaster.pid and is_ready(self._orders.data):
                self._report("ready")
                return True
            time.sleep(POLL_SECONDS)
        return False

    def _wait_for_adopted(self) -> None:
        # It is not our child, but it holds this lock to its end.
        while not acquire(self._orders.server, fcntl.LOCK_EX):
            time.sleep(ADOPTED_POLL_SECONDS)
        self._orders.adopt = None

    def _report(self, word: str) -> None:
        if not self._reported:
            self._reported = True
            with suppress(OSError):
                os.write(self._orders.report, f"{word}\n".encode())
            os.close(self._orders.report)

    def _wait_for_the_last_user(self) -> None:
        fcntl.flock(self._orders.users, fcntl.LOCK_EX)
        self._unused.set()

    def _stop_when_unused(self) -> None:
        self._unused.wait()
        for number, timeout in STOP_SIGNALS:
            deadline = time.monotonic() + timeout
            # Repeated, for the first may come in the instant before a server is started.
            while time.monotonic() < deadline and not self._ended.is_set():
                self._signal(number)
                self._ended.wait(SIGNAL_AGAIN_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            if self._orders.adopt is not None:
                os.kill(self._orders.adopt, number)
            elif self._postmaster is not None:
                self._postmaster.send_signal(number)


def main(orders: WatchdogArguments) -> None:
    """Leave the process that started us, give up root, and watch."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if orders.account:
        os.setgroups(orders.account["extra_groups"])
        os.setgid(orders.account["group"])
        os.setuid(orders.account["user"])
    os.umask(0o077)
    Watchdog(orders).run()
    os._exit(0)


if __name__ == "__main__":
    main(WatchdogArguments(**json.loads(sys.argv[1])))
