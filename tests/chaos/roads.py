"""Roads from workers to the servers that can be cut without a word: nothing is closed, and nothing arrives."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Final


class Road:
    """Passes bytes between anybody and one server. While it is cut, bytes wait, and so do new connections."""

    def __init__(self, port: Callable[[], int]) -> None:
        self._port = port
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()  # guards _pairs
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="road", daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def mend(self, *, forgetful: bool) -> None:
        """Let the bytes that wait go on; a `forgetful` network has lost them, and the connections break."""
        if forgetful:
            self._break_all()
        self._open.set()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._open.set()
        self._break_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="road", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._port()))
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs.append((client, server))
        back = threading.Thread(target=self._pass, args=(server, client), name="road", daemon=True)
        back.start()
        self._pass(client, server)
        back.join()
        with self._lock:
            self._pairs.remove((client, server))
        client.close()
        server.close()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self._open.wait()
                target.sendall(data)
            self._open.wait()
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _break_all(self) -> None:
        with self._lock:
            for ends in self._pairs:
                for end in ends:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)


# -- network namespaces --------------------------------------------------------------------------------------------

OUTSIDE: Final = "10.213.77.1"
INSIDE: Final = "10.213.77.2"
NOBODY: Final = "02:00:00:00:00:01"


class Namespace:
    """A network of its own for a worker, tied to ours by one cable. Cut, the kernel itself drops what it sends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._cable = f"gwc{os.getpid() % 100_000}"
        _ip("netns", "add", name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", f"{OUTSIDE}/30", "dev", self._cable)
        _ip("link", "set", self._cable, "up")
        _ip("-n", name, "address", "add", f"{INSIDE}/30", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        # Either side sends to a card that is not there: what is sent goes nowhere, and nobody is told.
        _ip("neighbour", "replace", INSIDE, "lladdr", NOBODY, "nud", "permanent", "dev", self._cable)
        inside = ("replace", OUTSIDE, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0")
        _ip("-n", self.name, "neighbour", *inside)

    def mend(self, *, forgetful: bool) -> None:
        _ip("neighbour", "delete", INSIDE, "dev", self._cable)
        _ip("-n", self.name, "neighbour", "delete", OUTSIDE, "dev", "eth0")

    def close(self) -> None:
        _ip("netns", "delete", self.name)


def can_make_namespaces() -> bool:
    """Whether this user on this machine may, and nobody else uses the addresses."""
    name = f"gw-chaos-try-{os.getpid()}"
    try:
        taken = OUTSIDE in _ip("-4", "address", "show")
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return not taken


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
