"""Stay beside a run of chaos, and end what it started if it is killed.

Run as a script of its own. It reads lines: `+123` names a process, `-123` reports its end, `done` that all has.
When its standard input ends without that, the run is dead: every process named is killed, and the folder is removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress


class Guard:
    """The run's side: names processes to the guard."""

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, folder], stdin=subprocess.PIPE, start_new_session=True
        )

    def started(self, pid: int) -> None:
        self._say(f"+{pid}")

    def ended(self, pid: int) -> None:
        self._say(f"-{pid}")

    def has_namespace(self, name: str) -> None:
        self._say(f"n{name}")

    def dismiss(self) -> None:
        """Say that everything has been cleaned up."""
        self._say("done")
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), f"{line}\n".encode())  # one write: threads do not mix their lines


def watch(folder: str) -> None:
    pids: set[int] = set()
    namespaces: list[str] = []
    for line in sys.stdin:
        match line[0], line[1:].strip():
            case "+", number:
                pids.add(int(number))
            case "-", number:
                pids.discard(int(number))
            case "n", name:
                namespaces.append(name)
            case "d", _:
                return
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    while left := list(_processes_in(folder)):
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for name in namespaces:
        subprocess.run(["ip", "netns", "delete", name], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _processes_in(folder: str) -> Iterator[int]:
    """The processes that work in the folder, of which some were started by those that are named."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with suppress(OSError):
            place = os.readlink(f"/proc/{name}/cwd") if name.isdecimal() else ""
            if f"{place}/".startswith(f"{folder}/") and int(name) != os.getpid():
                yield int(name)


if __name__ == "__main__":
    watch(sys.argv[1])
