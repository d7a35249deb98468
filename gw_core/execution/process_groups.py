"""Kill the process groups of tasks when this process dies, however it dies."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import Final

from gw_core.execution.child_process import LeaderProcess
from gw_core.runtime import forks
from gw_core.runtime.signals import blocked

_END: Final = 1.0
"""Seconds the guard may take to end when this process does."""

_FOR_THE_WORKER: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}

# Reads "+ GROUP" and "- GROUP" until this process is gone, whatever ended it. The signals that a service manager or a
# terminal sends to every process are for the worker, which may take its time to stop.
_GUARD: Final = """
trap '' INT TERM HUP QUIT
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
    esac
done
for group in $groups; do
    kill -s KILL -- "-$group"
done
"""


class ProcessGroups:
    """The process groups that must not outlive this process, and a small shell process that sees to it.

    The shell is started before the first group. Where there is no /bin/sh nothing is guarded. A process that leaves its
    group, such as a daemon or a container, is not covered. `_lock` guards all state.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: set[LeaderProcess] = set()
        self.guard: subprocess.Popen[bytes] | None = None
        forks.abandon_in_children(self)

    def start(self) -> None:
        """Start the guard if it is not running. Call this before starting a group, so that it is always guarded."""
        with self._lock:
            if self.guard is None:
                with suppress(OSError):
                    self.guard = _started()

    def add(self, leader: LeaderProcess) -> None:
        """Kill the group of this process when ours dies; call right after the leader was started."""
        with self._lock:
            self._leaders.add(leader)
            self._send(f"+ {leader.pid}\n")

    def remove(self, leader: LeaderProcess) -> None:
        """Leave this group alone from now on: its number may soon belong to another."""
        with self._lock:
            if leader in self._leaders:
                self._leaders.remove(leader)
                self._send(f"- {leader.pid}\n")

    def close(self) -> None:
        """Kill what is left, as if this process had died; a later `add` starts another guard."""
        with self._lock:
            guard, self.guard = self.guard, None
            leaders, self._leaders = self._leaders, set()
        for leader in leaders:
            leader.kill()
        if guard is not None:
            assert guard.stdin is not None  # noqa: S101 - a pipe, see _started
            guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                guard.wait(_END)

    def abandon(self) -> None:
        """In a forked child: these are the parent's groups."""
        self._lock = threading.Lock()
        self._leaders = set()
        if self.guard is not None:
            self.guard.returncode = 0  # so that its destructor does not wait for it
            self.guard = None

    def _send(self, line: str) -> None:
        if self.guard is not None and self._wrote(self.guard, line):
            return
        # There is no guard yet, or it was killed: the new one receives all groups.
        with suppress(OSError):
            self.guard = _started()
            self._wrote(self.guard, "".join(f"+ {leader.pid}\n" for leader in self._leaders))

    @staticmethod
    def _wrote(guard: subprocess.Popen[bytes], lines: str) -> bool:
        assert guard.stdin is not None  # noqa: S101 - a pipe, see _started
        try:
            os.write(guard.stdin.fileno(), lines.encode())
        except BlockingIOError:  # it has been stopped for long; nothing may wait for it
            return True
        except OSError:
            guard.stdin.close()
            guard.poll()
            return False
        return True


def _started() -> subprocess.Popen[bytes]:
    with blocked(_FOR_THE_WORKER):  # a signal that arrives before the guard's `trap` waits, and is then ignored
        guard = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _GUARD, "gw-process-groups"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={},
            # It must survive what kills this process with its group.
            start_new_session=True,
        )
    assert guard.stdin is not None  # noqa: S101 - a pipe, see above
    os.set_blocking(guard.stdin.fileno(), False)
    forks.close_in_children(guard.stdin)
    return guard


GROUPS: Final = ProcessGroups()
"""Those of this process."""

atexit.register(GROUPS.close)
