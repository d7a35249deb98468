"""The line between a supervisor and a worker process, from the worker's side."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gw_core.runtime import forks

READY: Final = b"ready\n"
STOP: Final = b"stop "
FORCE: Final = b"force"


class ControlChannel:
    """Receives stop requests, reports when this process is ready, and notices when the supervisor is gone.

    A supervisor gives the line as the process's stdin; what runs here finds an empty stdin instead. The orders come
    this way and not as signals, since service managers signal every process of a group themselves: of two signals
    the process could not know whether the second one was meant to force the end.
    """

    def __init__(self) -> None:
        self._line = socket.socket(fileno=os.dup(sys.__stdin__.fileno() if sys.__stdin__ else 0))
        forks.close_in_children(self._line)
        _point_at_nothing(0, os.O_RDONLY)

    def send_ready(self) -> None:
        """Report that this process polls for jobs from now on."""
        with suppress(OSError):  # the supervisor is gone; the thread that listens does what follows
            self._line.sendall(READY)

    def on_command(self, *, stop: Callable[[str], None], force: Callable[[], None]) -> None:
        """Call `stop` with the reason, and `force`, when the supervisor sends them; from a thread of its own."""
        threading.Thread(target=self._listen, args=(stop, force), name="gw-lifeline", daemon=True).start()

    def _listen(self, stop: Callable[[str], None], force: Callable[[], None]) -> None:
        with suppress(OSError), self._line.makefile("rb") as orders:
            for order in orders:
                if order.startswith(STOP):
                    stop(order.removeprefix(STOP).decode("utf-8", "replace").strip())
                elif order.startswith(FORCE):
                    force()
        # It took the reader of our output with it. Tasks that print shall not fail for that.
        for descriptor in (1, 2):
            _point_at_nothing(descriptor, os.O_WRONLY)
        stop("the supervisor is gone")


def _point_at_nothing(descriptor: int, mode: int) -> None:
    nothing = os.open(os.devnull, mode)
    os.dup2(nothing, descriptor)
    os.close(nothing)
