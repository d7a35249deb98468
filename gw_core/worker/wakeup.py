"""Let one thread rest until another one wakes it, or until a connection has received something."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress
from typing import Final, Protocol

_WAKE: Final = b"!"


class HasSocket(Protocol):
    """Whatever a selector can watch."""

    def fileno(self) -> int:
        """Return the socket."""


class Wakeup:
    """Belongs to the thread that rests; any thread may call `wake`, which then costs nothing while it does not rest."""

    def __init__(self) -> None:
        self._is_woken = False
        self._is_resting = False
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._receiver.setblocking(False)
        self._woken = selectors.DefaultSelector()
        self._woken.register(self._receiver, selectors.EVENT_READ)
        self._woken_or_received = selectors.DefaultSelector()
        self._woken_or_received.register(self._receiver, selectors.EVENT_READ)

    def wake(self) -> None:
        """Cut the rest short, also one that is about to begin; from any thread."""
        self._is_woken = True
        if self._is_resting:
            self._is_resting = False
            with suppress(OSError):  # it is woken already, or the socket is closed
                self._sender.send(_WAKE)

    def clear(self) -> None:
        """Rest again from now on, until the next `wake`."""
        self._is_woken = False

    def watch(self, connection: HasSocket) -> None:
        """Also end a rest when this connection has received something."""
        self._woken_or_received.register(connection, selectors.EVENT_READ)

    def unwatch(self, connection: HasSocket) -> None:
        """Watch a connection no longer."""
        self._woken_or_received.unregister(connection)

    def rest(self, seconds: float | None, *, receives: bool = True) -> bool:
        """Rest for some seconds, unless woken since `clear`; return whether a watched connection has received anything.

        Without `receives`, what arrives does not end the rest.
        """
        self._is_resting = True
        if self._is_woken:
            self._is_resting = False
            return False
        ready = (self._woken_or_received if receives else self._woken).select(seconds)
        self._is_resting = False  # before notifications are handled: they wake this thread, which is awake
        files = [key.fileobj for key, _ in ready]
        if self._receiver in files:
            self._receiver.recv(64)
        return any(each is not self._receiver for each in files)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._receiver.fileno() < 0

    def close(self) -> None:
        """Close the sockets; `wake` does nothing from now on."""
        self._woken.close()
        self._woken_or_received.close()
        self._sender.close()
        self._receiver.close()
