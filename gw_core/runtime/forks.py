"""Keep a child process that a task forks from acting as a second worker.

A forked child has a copy of everything the worker has: its claimed jobs, its connections, its locks. Each part of the
worker registers here what a child must not keep, and the callers of tasks check whether a task has returned in a child.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn, Protocol
from weakref import WeakSet

count = 0
"""How many forks lie between this process and the one that was started: a run that sees it change is in a child."""


class _HasDescriptor(Protocol):
    def fileno(self) -> int:
        """Return the file descriptor; raises when it is closed."""


class _Renewable(Protocol):
    def abandon(self) -> None:
        """Forget what belongs to the parent process, without using it, and start with nothing."""


_ENDS: WeakSet[_HasDescriptor] = WeakSet()
_SHARED: WeakSet[_Renewable] = WeakSet()


def close_in_children(end: _HasDescriptor) -> None:
    """Close the socket or connection in every child that is forked from now on."""
    _ENDS.add(end)


def abandon_in_children(shared: _Renewable) -> None:
    """Call `abandon()` of the object in every child that is forked from now on."""
    _SHARED.add(shared)


def end_child(error: BaseException | None = None) -> NoReturn:
    """End this process, a child that returned from its task or raised `error`, without any cleanup of the parent's.

    The exit code is 0, that of `sys.exit()`, or 1 after any other error, whose traceback is written to stderr. Nothing
    is flushed: buffers may hold what the parent has not written yet, and their locks may belong to its threads.
    """
    code = 0
    if isinstance(error, SystemExit) and isinstance(error.code, int | None):
        code = error.code or 0
    elif error is not None:
        code = 1
        with suppress(BaseException):  # an error can be as broken as its task
            os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace"))
    os._exit(code & 0xFF)


def end_if_child(began: int) -> None:
    """End this process when it was forked since `count` was `began`; for a `finally` around the call of a task."""
    if count != began:
        end_child(sys.exc_info()[1])


def _in_child() -> None:
    global count
    count += 1
    for shared in list(_SHARED):
        shared.abandon()
    ends = list(_ENDS)
    _ENDS.clear()
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
    except OSError:  # no descriptor is left
        nothing = -1
    for end in ends:
        with suppress(Exception):  # closed already
            if nothing == -1:
                os.close(end.fileno())
            else:
                # Not closed: its owner here would close the number again, which may be another file by then.
                os.dup2(nothing, end.fileno(), inheritable=False)
    if nothing != -1:
        os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
