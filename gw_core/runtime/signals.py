"""The signals that end a process gracefully, and a thread that does what follows from them."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2", "SIGABRT") if hasattr(signal, name)
)
"""The signals that request a graceful shutdown."""


class Signals:
    """Handlers for the signals that end a run, for as long as the block lasts.

    A signal that was ignored when the block began stays ignored: `nohup` and a shell that starts a background command
    ask for that. Children that a task forks get the handlers that were there before the block.

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
        # the interpreter writes into this socket immediately, in whichever thread, which wakes ours.
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        _INSTALLED.append(self)
        threading.Thread(target=self._react, name="gw-signals", daemon=True).start()
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, _do_nothing)

    def __exit__(self, *_: object) -> None:
        if not self._enabled:
            return
        self._restore_handlers()
        signal.set_wakeup_fd(self._former_fd)
        _INSTALLED.remove(self)
        self._writer.close()

    def abandon(self) -> None:
        """In a forked child: handle signals as before the block, and leave the parent's socket alone."""
        self._enabled = False
        signal.set_wakeup_fd(-1)
        self._restore_handlers()
        for end in (self._reader, self._writer):
            end.close()

    def _restore_handlers(self) -> None:
        for number, handler in self._former.items():
            with suppress(TypeError, ValueError):  # a handler that was not installed from Python cannot be put back
                signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal() gave us

    def _react(self) -> None:
        with self._reader:
            while received := self._reader.recv(64):
                for number in received:
                    if number in self._former:
                        self._handle(signal.Signals(number).name)


@contextmanager
def blocked(numbers: Iterable[int]) -> Iterator[None]:
    """Block signals in this thread, and in processes that the block starts: there they wait until unblocked."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Stands in for the default action, which would end the process."""


# -- forks -----------------------------------------------------------------------------------------------------------

_INSTALLED: Final[list[Signals]] = []
_masks: Final = threading.local()


def _before_fork() -> None:
    # A signal to the child, before it has its own handlers, would be written into the socket it shares with us, and
    # stop this process. Blocked, it waits until the child is ready for it.
    if _INSTALLED:
        _masks.former = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def _after_fork() -> None:
    former = _masks.__dict__.pop("former", None)
    if former is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _after_fork_in_child() -> None:
    while _INSTALLED:
        _INSTALLED.pop().abandon()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
