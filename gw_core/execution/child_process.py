"""A child process: signal it without hitting another one, and read its output in complete lines."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

PassOn = Callable[[str, bytes], None]
"""Takes complete lines of "stdout" or "stderr"."""


class LeaderProcess:
    """A process that leads a group of its own. `_lock` prevents a signal after the system has released its id."""

    was_killed = False
    """Whether `kill` was called: the process did not end because of its task."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._lock = threading.Lock()

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        with self._lock:
            return self._process.poll()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and all it started, unless the process has ended. Does not block."""
        with self._lock:
            if self._process.returncode is None:
                self._signal(number)

    def kill(self) -> None:
        """Kill the process and all it started, unless it has ended; safe from any thread. Does not block."""
        self.was_killed = True
        self.signal_group(signal.SIGKILL)

    def kill_leftovers(self) -> None:
        """Kill what the process, which has ended, left in its group; call right after its end was seen."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class WholeLines:
    """Passes a stream on in complete lines, so that no other process writes into the middle of one.

    An unfinished line of more than `limit` bytes is passed on in pieces, so that no output grows our memory.
    """

    def __init__(self, channel: str, pass_on: PassOn, *, limit: int) -> None:
        self._channel = channel
        self._pass_on = pass_on
        self._limit = limit
        self._incomplete: list[bytes] = []
        self._incomplete_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; pass on the lines they complete."""
        end = chunk.rfind(b"\n") + 1
        if end:
            self._pass_on(self._channel, b"".join([*self._incomplete, chunk[:end]]))
            self._incomplete, self._incomplete_bytes = [], 0
        if rest := chunk[end:]:
            self._incomplete.append(rest)
            self._incomplete_bytes += len(rest)
        if self._incomplete_bytes > self._limit:
            self.end()

    def end(self) -> None:
        """Pass on what came after the last line break, as a line."""
        if self._incomplete:
            self._pass_on(self._channel, b"".join([*self._incomplete, b"\n"]))
            self._incomplete, self._incomplete_bytes = [], 0
