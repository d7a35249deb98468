"""One worker process, from its supervisor's side."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import IO, Final

from gw_core.execution.child_process import LeaderProcess, PassOn, WholeLines
from gw_core.processes.control_channel import FORCE, READY, STOP

MAX_BUFFERED_BYTES: Final = 1 << 20
"""Bytes of an unfinished line that are held back; a longer one is passed on in pieces."""

_CHUNK: Final = 1 << 16
_REAP: Final = 0.05
"""Seconds between two attempts to reap a process where the system cannot say that it has ended."""

_DRAIN: Final = 1.0
"""Seconds for what an ended process wrote last; whatever it started may hold its pipes for ever."""


class WorkerProcess(LeaderProcess):
    """A process, the line to it, and four threads: three read what it writes and reports, one waits for its end."""

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        *,
        pass_on: PassOn,
        on_ready: Callable[[WorkerProcess], None],
        on_end: Callable[[WorkerProcess], None],
    ) -> None:
        self.number = number
        self.is_ready = False
        """Kept by the supervisor."""
        self._began = time.monotonic()
        self._pass_on = pass_on
        self._on_ready = on_ready
        self._on_end = on_end
        self._line, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - the program that is running, without a shell
                list(command),
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # A group of its own: Ctrl-C at the terminal reaches the supervisor only, which passes it on.
                start_new_session=True,
            )
        super().__init__(process)
        assert process.stdout is not None  # noqa: S101 - both are pipes, see above
        assert process.stderr is not None  # noqa: S101
        self._readers = [
            self._started("gw-line", self._listen),
            self._started("gw-stdout", partial(self._read, "stdout", process.stdout)),
            self._started("gw-stderr", partial(self._read, "stderr", process.stderr)),
        ]
        self._started("gw-process", self._wait)

    def _started(self, name: str, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, name=f"{name}-{self.number}", daemon=True)
        thread.start()
        return thread

    @property
    def code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        code: int | None = self._process.returncode
        return code

    @property
    def lived(self) -> timedelta:
        """How long ago it was started."""
        return timedelta(seconds=time.monotonic() - self._began)

    def stop(self, reason: str) -> None:
        """Request a graceful shutdown."""
        self._send(STOP + reason.replace("\n", " ").encode() + b"\n")

    def force(self) -> None:
        """End the grace period of its stop."""
        self._send(FORCE + b"\n")

    def _send(self, order: bytes) -> None:
        with suppress(OSError):  # it has ended, which the waiting thread reports
            self._line.sendall(order)

    # -- its end -----------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        while self.exit_code() is None:  # never, except on macOS before Python 3.13, which has no waitid
            time.sleep(_REAP)
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # ends the thread that listens
        drained_at = time.monotonic() + _DRAIN
        for reader in self._readers:
            reader.join(max(0.0, drained_at - time.monotonic()))
        self._on_end(self)

    # -- what it writes ----------------------------------------------------------------------------------------------

    def _read(self, channel: str, pipe: IO[bytes]) -> None:
        """Pass on what the process writes, until it and all it started have closed the pipe."""
        lines = WholeLines(channel, self._pass_on, limit=MAX_BUFFERED_BYTES)
        with pipe:
            while chunk := os.read(pipe.fileno(), _CHUNK):
                lines.feed(chunk)
        lines.end()

    def _listen(self) -> None:
        with suppress(OSError), self._line:
            while said := self._line.recv(64):
                if READY.strip() in said:
                    self._on_ready(self)
