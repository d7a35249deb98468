"""One worker process, from its supervisor's side."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from gw_core.execution.child_process import LeaderProcess, PassOn, WholeLines
from gw_core.processes.control_channel import FORCE, READY, STOP

MAX_BUFFERED_BYTES: Final = 1 << 20
"""Bytes of an unfinished line that are held back; a longer one is passed on in pieces."""

_CHUNK: Final = 1 << 16
_CHECK_SECONDS: Final = 0.5
"""Seconds between two checks whether a process has ended."""

_REAP: Final = 0.05
"""Seconds between two attempts to reap a process where the system cannot say that it has ended."""

_DRAIN: Final = 1.0
"""Seconds for what an ended process wrote last; whatever it started may hold its pipes for ever."""


class WorkerProcess(LeaderProcess):
    """A process, the line to it, and two threads: one passes on what it writes, one waits for its end."""

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
        self._reader = threading.Thread(target=self._read, name=f"gw-lines-{number}", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name=f"gw-process-{number}", daemon=True).start()

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
            self._line.shutdown(socket.SHUT_RDWR)  # wakes the reader, which reads what is left
        self._reader.join(_DRAIN)
        self._on_end(self)

    # -- what it writes ----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        popen = self._process
        assert popen.stdout is not None  # noqa: S101 - both are pipes, see above
        assert popen.stderr is not None  # noqa: S101
        pipes = {
            pipe: WholeLines(channel, self._pass_on, limit=MAX_BUFFERED_BYTES)
            for channel, pipe in (("stdout", popen.stdout), ("stderr", popen.stderr))
        }
        with selectors.DefaultSelector() as ready, self._line, popen.stdout, popen.stderr:
            ready.register(self._line, selectors.EVENT_READ)
            for pipe, lines in pipes.items():
                ready.register(pipe, selectors.EVENT_READ, lines)
            self._serve(ready)
        for lines in pipes.values():
            lines.end()

    def _serve(self, ready: selectors.BaseSelector) -> None:
        timeout: float | None = None
        drained_at: float | None = None
        while ready.get_map():
            if drained_at is None and self._process.returncode is not None:
                drained_at = time.monotonic() + _DRAIN
            found = ready.select(timeout if drained_at is None else 0)
            if drained_at is not None and (not found or time.monotonic() > drained_at):
                return
            for key, _ in found:
                if not self._take(key):
                    ready.unregister(key.fileobj)
                    # At its end, or because a task closed what it did not open: then nothing wakes us at the end.
                    timeout = _CHECK_SECONDS if key.fileobj is self._line else timeout

    def _take(self, key: selectors.SelectorKey) -> bool:
        """Read what is there; False at the end."""
        if key.fileobj is self._line:
            return self._receive()
        chunk = os.read(key.fd, _CHUNK)
        lines: WholeLines = key.data
        lines.feed(chunk)
        return bool(chunk)

    def _receive(self) -> bool:
        try:
            said = self._line.recv(64)
        except OSError:
            return False
        if READY.strip() in said:
            self._on_ready(self)
        return bool(said)
