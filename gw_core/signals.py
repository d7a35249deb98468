"""The signals that end a process in order, and a thread that does what follows from them."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2", "SIGABRT") if hasattr(signal, name)
)
"""The signals that are asked to end in order."""


class Signals:
    """Handlers for the signals that end a run, for as long as the block lasts.

    Python runs a handler between any two instructions of the main thread, also while that holds a lock the handler
    would need. So handlers do nothing, and a thread of our own does what follows from a signal.
    """

    def __init__(self, handle: Callable[[str], None], *, enabled: bool = True) -> None:
        self._handle = handle
        # Only the main thread may install handlers.
        self._enabled = enabled and threading.current_thread() is threading.main_thread()
        self._former: dict[int, object] = {}

    def __enter__(self) -> None:
        if not self._enabled:
            return
        # The kernel may hand a signal to any thread, and then nothing wakes a main thread that waits for a lock. What
        # the interpreter writes into this socket at once, whichever thread it was, wakes ours.
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._react, name="gw-signals", daemon=True).start()
        for number in ENDING:
            self._former[number] = signal.signal(number, _do_nothing)

    def __exit__(self, *_: object) -> None:
        if not self._enabled:
            return
        for number, handler in self._former.items():
            with suppress(TypeError, ValueError):  # a handler that was not installed from Python cannot be put back
                signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal() gave us
        signal.set_wakeup_fd(self._former_fd)
        self._writer.close()

    def _react(self) -> None:
        with self._reader:
            while received := self._reader.recv(64):
                for number in received:
                    if number in ENDING:
                        self._handle(signal.Signals(number).name)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Stands in for the default action, which would end the process."""
