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
        self._lock = threading.Lock()  # guards both below
        self._ends: list[socket.socket] = []
        self._is_closed = False

    def start(self) -> None:
        threading.Thread(target=self._accept, name="test-server", daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        """Serve one client until it ends."""
        raise NotImplementedError

    def keep(self, end: socket.socket) -> None:
        """Close this socket, too, when the server is closed."""
        with self._lock:
            self._ends.append(end)
            is_closed = self._is_closed
        if is_closed:
            _end(end)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            ends = [self._listener, *self._ends]
        for end in ends:
            _end(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.keep(client)
            threading.Thread(target=self.serve, args=(client,), name="test-server", daemon=True).start()


def _end(end: socket.socket) -> None:
    # Closing alone leaves the threads waiting that accept or receive.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
