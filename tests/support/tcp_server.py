"""A TCP server of a test, which serves each client in its own thread."""

from __future__ import annotations

import contextlib
import socket
import threading


class TcpServer:
    """Listens on a free port of this machine; subclasses implement `serve`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ends: list[socket.socket] = []

    def start(self) -> None:
        threading.Thread(target=self._accept, name="test-server", daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        """Serve one client until it ends."""
        raise NotImplementedError

    def keep(self, end: socket.socket) -> None:
        """Close this socket, too, when the server is closed."""
        self._ends.append(end)

    def close(self) -> None:
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.keep(client)
            threading.Thread(target=self.serve, args=(client,), name="test-server", daemon=True).start()
