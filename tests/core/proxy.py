"""A road to the database that can be cut: a small TCP proxy."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict, make_conninfo


@dataclass(eq=False)
class _Link:
    client: socket.socket
    server: socket.socket
    greeting: bytes = b""
    is_mute: bool = False
    swallowed: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Passes bytes on until told otherwise. `url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._host, self._port = str(parts["host"]), int(parts.get("port") or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = make_conninfo(url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        self._lock = threading.Lock()  # guards _links and _is_cut
        self._links: list[_Link] = []
        self._is_cut = False
        self.refused = 0
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """Break all connections, and every new one."""
        with self._lock:
            self._is_cut = True
            links, self._links = self._links, []
        for link in links:
            link.close()

    def restore(self) -> None:
        with self._lock:
            self._is_cut = False

    def mute(self, application_name: str) -> threading.Event:
        """Break the connection of that name when it is next answered, so that the answer is never heard."""
        with self._lock:
            (link,) = [link for link in self._links if f"\0{application_name}\0".encode() in link.greeting]
            link.is_mute = True
        return link.swallowed

    def close(self) -> None:
        # Waking accept() needs a shutdown: closing alone leaves its thread waiting.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    self.refused += 1
                    client.close()
                    continue
                link = _Link(client, self._connect())
                self._links.append(link)
            for passing in (self._requests, self._answers):
                threading.Thread(target=passing, args=(link,), name="proxy", daemon=True).start()

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _requests(self, link: _Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.client.recv(65_536):
                if not link.greeting:
                    link.greeting = data
                link.server.sendall(data)
        self._drop(link)

    def _answers(self, link: _Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.server.recv(65_536):
                if link.is_mute:
                    link.swallowed.set()
                    break
                link.client.sendall(data)
        self._drop(link)

    def _drop(self, link: _Link) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._links.remove(link)
        link.close()
