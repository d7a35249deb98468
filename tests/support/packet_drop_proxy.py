"""A network path that drops packets: sent data is accepted and never arrives, and no connection is closed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.tcp_server import TcpServer


class PacketDropProxy(TcpServer):
    """A TCP proxy. Connections that were open while it swallowed stay dead: no proxy sends anything again."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._host, self._port = str(parts["host"]), int(parts.get("port") or 5432)
        super().__init__()
        self.url = make_conninfo(
            url, host="127.0.0.1", port=self.port, sslmode="disable", gssencmode="disable", connect_timeout=3
        )
        self._is_swallowing = threading.Event()
        self._is_swallowing_requests = threading.Event()
        self.start()

    def swallow(self) -> None:
        """Accept everything from now on, also new connections, and forward nothing."""
        self._is_swallowing.set()

    def swallow_requests(self) -> None:
        """From now on, drop what clients send; what the server sends still arrives."""
        self._is_swallowing_requests.set()

    def let_through(self) -> None:
        """Let new connections through again."""
        self._is_swallowing.clear()
        self._is_swallowing_requests.clear()

    def serve(self, client: socket.socket) -> None:
        server = self._connect()
        self.keep(server)
        to_server = (self._is_swallowing, self._is_swallowing_requests)
        answers = threading.Thread(
            target=self._pass, args=(server, client, to_server[:1]), name="packet-drop", daemon=True
        )
        answers.start()
        self._pass(client, server, to_server)

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
