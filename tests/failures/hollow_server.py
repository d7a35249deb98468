"""A server that greets each client, and then answers nothing."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final

from support.tcp_server import TcpServer

REJECTED: Final = 80877103, 80877104
"""What clients ask for before they connect: encryption by TLS, and by GSSAPI."""


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


GREETING: Final = b"".join(
    (
        _message(b"R", struct.pack("!i", 0)),
        *(
            _message(b"S", name + b"\0" + value + b"\0")
            for name, value in ((b"server_encoding", b"UTF8"), (b"client_encoding", b"UTF8"))
        ),
        _message(b"K", struct.pack("!ii", 1, 1)),
        _message(b"Z", b"I"),
    )
)


class HollowServer(TcpServer):
    """Accepts every connection and every statement, as a load balancer with no server behind it does."""

    def __init__(self) -> None:
        super().__init__()
        self.url = f"host=127.0.0.1 port={self.port} dbname=x user=x"
        self.start()

    def serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error):
            while True:
                length, code = struct.unpack("!ii", client.recv(8, socket.MSG_WAITALL))
                client.recv(length - 8, socket.MSG_WAITALL) if length > 8 else b""
                if code not in REJECTED:
                    break
                client.sendall(b"N")
            client.sendall(GREETING)
            while client.recv(65_536):
                pass
