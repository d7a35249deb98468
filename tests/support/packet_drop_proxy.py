"""A road on which packets vanish: what is sent is taken and never arrives, and nothing is closed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class PacketDropProxy:
    """A TCP proxy. Connections that were open while it swallowed stay dead: no proxy sends anything again."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._host, self._port = str(parts["host"]), int(parts.get("port") or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = make_conninfo(
            url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable", connect_timeout=10
        )
        self._is_swallowing = threading.Event()
        self._is_swallowing_requests = threading.Event()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, name="black-hole", daemon=True).start()

    def swallow(self) -> None:
        """Take everything from now on, also new connections, and pass nothing on."""
        self._is_swallowing.set()

    def swallow_requests(self) -> None:
        """Take from now on what clients send and pass on nothing of it; what the server sends still arrives."""
        self._is_swallowing_requests.set()

    def let_through(self) -> None:
        """Let new connections through again."""
        self._is_swallowing.clear()
        self._is_swallowing_requests.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
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
            server = self._connect()
            self._ends += [client, server]
            to_server = (self._is_swallowing, self._is_swallowing_requests)
            for source, target, swallowing in ((client, server, to_server), (server, client, to_server[:1])):
                road = threading.Thread(
                    target=self._pass, args=(source, target, swallowing), name="black-hole", daemon=True
                )
                road.start()

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _pass(self, source: socket.socket, target: socket.socket, swallowing: Sequence[threading.Event]) -> None:
        is_dead = False
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                is_dead = is_dead or any(each.is_set() for each in swallowing)
                if not is_dead:
                    target.sendall(data)
            if not is_dead:
                target.shutdown(socket.SHUT_RDWR)
