"""End the console from outside its loop: on a signal, or when the terminal is gone, also while the screen is stuck."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

ENDING_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
ENDED_BY_SIGNAL: Final = 128
STDIN: Final = 0
CHECK_INTERVAL: Final = 2.0
"""How often to check that the terminal still exists, in seconds; a signal does not always report its end."""

TIMEOUT: Final = 2.0
"""How long the screen may take to close before the process exits without it, in seconds."""


class Watch:
    """A thread that lets the console end, for as long as the block lasts; to be entered on the main thread.

    The framework's loop writes through a short queue. When the terminal stops reading, because it has gone or is
    stopped with ^S, the loop waits for space forever and handles neither keys nor signals.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, end: Callable[[int], object]) -> None:
        self._loop = loop
        self._end = end  # called on the loop with the exit code
        self._over = threading.Event()

    def __enter__(self) -> None:
        self._modes = termios.tcgetattr(STDIN) if os.isatty(STDIN) else None
        self._reader, self._writer = socket.socketpair()
        self._reader.settimeout(CHECK_INTERVAL)
        self._writer.setblocking(False)
        # The interpreter writes every signal's number here immediately, whichever thread received it and whatever the
        # main thread waits for.
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._former = {number: signal.signal(number, _do_nothing) for number in ENDING_SIGNALS}
        threading.Thread(target=self._watch, name="gw-tui-watch", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for number, handler in self._former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._former_fd)
        self._writer.close()

    def _watch(self) -> None:
        with self._reader:
            while not self._over.is_set():
                number = self._next_signal()
                if number in ENDING_SIGNALS:
                    self._leave(number)
                    break
                # Other signals have handlers of the framework's, which the loop must wake for.
                self._on_loop(_do_nothing)

    def _next_signal(self) -> int:
        """Wait for a signal and return its number: 0 when the block is over, and SIGHUP's when the terminal is gone."""
        while True:
            try:
                return next(iter(self._reader.recv(1)), 0)
            except TimeoutError:
                if self._modes is not None and not os.isatty(STDIN):  # in a browser there is no terminal
                    return signal.SIGHUP

    def _leave(self, number: int) -> None:
        self._on_loop(self._end, ENDED_BY_SIGNAL + number)
        if not self._over.wait(TIMEOUT):
            self._restore()
            os._exit(ENDED_BY_SIGNAL + number)

    def _on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # it has been closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _restore(self) -> None:
        """Give the keyboard back; what would give the screen back cannot be written."""
        if self._modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(STDIN, termios.TCSANOW, self._modes)


def _do_nothing(*_: object) -> None:
    """Replaces the default effect of a signal; the thread handles it."""
