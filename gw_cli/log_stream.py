"""The log stream of a process: writes whole lines, and drops them rather than block for long."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable
from typing import Any, Final

TIMEOUT_SECONDS: Final = 1.0
"""How long a line may wait for a reader who takes nothing at all; one who is merely slow slows us down."""

_ATOMIC_BYTES: Final = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that are sure to find a place where there is room for any."""

SayLost = Callable[[int], str]
"""Makes the line that reports how many lines were lost."""


class LogStream:
    """Where all sinks of a process write: whole lines, as many as possible with one write.

    Settling, sweeping and everything else that keeps jobs running logs too, so a stalled reader must not block them.
    If the pipe stays full, lines are dropped and counted until there is room again; `say_lost` then reports the count.

    A signal's handler may log while its thread is in the middle of a write. So the lock lets the same thread in again,
    and the stream has no Python buffer, which would reject the second call.
    """

    def __init__(self, raw: Any, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self.say_lost: SayLost = "{} lines of this log were lost: the reader did not keep up\n".format
        self._raw = raw
        self._room = _room_in(raw)
        self._timeout = timeout
        self._lock = threading.RLock()  # keeps the lines of two threads apart when one write needs several calls
        self._closed = False
        self._is_stuck = False
        self._unfinished = b""
        self._lost = 0

    def write(self, text: str) -> None:
        """Write lines of our own."""
        self.pass_on(text.encode("utf-8", "backslashreplace"))

    def pass_on(self, lines: bytes) -> None:
        """Write whole lines, perhaps another process's."""
        with self._lock:
            try:
                if not self._closed:
                    self._take(lines)
            except (OSError, ValueError):
                # The reader is gone; jobs keep running.
                self._closed = True

    def _take(self, lines: bytes) -> None:
        if self._is_stuck and not self._goes_on():
            self._lost += lines.count(b"\n")
        elif rest := self._write(lines):
            self._give_up(lines, rest)

    def _write(self, data: bytes) -> bytes:
        """Write as long as the reader keeps up, and return the rest."""
        if self._room is None:
            return self._write_all(data)
        while data and self._has_room(self._timeout):
            piece = data[:_ATOMIC_BYTES]
            # Other processes may write to the same pipe; between two lines they do no harm.
            end = piece.rfind(b"\n") + 1 or len(piece)
            data = data[self._raw.write(piece[:end]) or 0 :]
        return data

    def _write_all(self, data: bytes) -> bytes:
        while data:
            data = data[self._raw.write(data) or 0 :]
        return data

    def _has_room(self, seconds: float) -> bool:
        return self._room is None or bool(self._room.poll(seconds * 1000))

    def _give_up(self, lines: bytes, rest: bytes) -> None:
        """Keep the end of a line that was begun, and drop the others."""
        written = lines[: len(lines) - len(rest)]
        begun = bool(written) and not written.endswith(b"\n")
        end = rest.find(b"\n") + 1 if begun else 0
        self._unfinished, self._lost, self._is_stuck = rest[:end], rest.count(b"\n", end), True

    def _goes_on(self) -> bool:
        """Check whether the reader continues; then finish the partial line and report what was lost."""
        if not self._has_room(0):
            return False
        if self._lost:
            self._unfinished += self.say_lost(self._lost).encode()
            self._lost = 0
        self._unfinished = self._write(self._unfinished)
        self._is_stuck = bool(self._unfinished)
        return not self._is_stuck


def _room_in(raw: Any) -> select.poll | None:
    """Return an object to poll for room; None for a file, which always has room."""
    try:
        number = raw.fileno()
        if not hasattr(select, "poll") or stat.S_ISREG(os.fstat(number).st_mode):
            return None
    except (AttributeError, OSError, ValueError):
        return None
    room = select.poll()
    room.register(number, select.POLLOUT)
    return room
