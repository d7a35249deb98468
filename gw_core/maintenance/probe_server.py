"""Answer short pages over HTTP, to any number of clients, however slow."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from gw_core.domain.errors import InvalidSettingError
from gw_core.runtime.service import Service

RESPONSE_TIMEOUT: Final = 3.0
"""Seconds a client may take to ask and to read; then it is cut off."""

MAX_REQUEST_HEAD: Final = 8192
MAX_CLIENTS: Final = 64
"""Connections open at the same time. One more, and the address with the most of them loses its oldest, so that a flood
from one address does not cut off other probes."""

PRIVATE_DOMAINS: Final = ("localhost", "local", "internal", "svc")
"""Domains whose names no foreign name server answers."""

TEXT: Final = "text/plain; charset=utf-8"


class HttpResponse(msgspec.Struct, frozen=True):
    """What a path answers."""

    status: int
    body: bytes
    content_type: str = TEXT


def text_response(status: int, line: str) -> HttpResponse:
    """Return a response of one line."""
    return HttpResponse(status, f"{line}\n".encode())


Page = Callable[[], Awaitable[HttpResponse]]


class WebServer(Service):
    """A thread with an event loop, so that slow clients cost no threads and delay no other client.

    `start()` raises `InvalidSettingError` when the address cannot be listened on. The standard library's HTTP servers
    give each client a thread, or make the others wait; all that is needed of HTTP here is to answer a GET.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        pages: Mapping[str, Page],
        *,
        guarded: Collection[str] = (),
    ) -> None:
        super().__init__(name)
        self._address = host, port
        self._pages = pages
        # The pages that are answered under known hosts only; see `is_known_host`.
        self._guarded = frozenset(guarded)
        self.address: tuple[str, int] | None = None
        """The host and port it listens on; None before the start."""
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Those of the loop's thread:
        self._end: asyncio.Event | None = None
        self._clients: dict[asyncio.StreamWriter, str] = {}

    def start(self) -> None:
        """Listen, and begin to answer; returns immediately."""
        self._socket = _listening(*self._address)
        host, port, *_ = self._socket.getsockname()
        self.address = host, port
        super().start()

    def request_stop(self) -> None:
        """Ask for the end; clients that have not been answered are cut off."""
        super().request_stop()
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended in the meantime
                loop.call_soon_threadsafe(self._ring)

    def step(self) -> timedelta:
        """Serve until the end is asked for."""
        asyncio.run(self._serve())
        return timedelta(0)

    # -- in the loop's thread --------------------------------------------------------------------------------------

    def _ring(self) -> None:
        if self._end is not None:
            self._end.set()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._attend, sock=self._socket, limit=MAX_REQUEST_HEAD)
        if not self.is_stopping:  # requested before the loop could be informed
            await self._end.wait()
        server.close()
        for client in tuple(self._clients):
            client.transport.abort()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MAX_CLIENTS:
            surplus = self._one_too_many()
            del self._clients[surplus]
            surplus.transport.abort()
        self._clients[writer] = _address_of(writer)
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                await self._answer(reader, writer)
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self._clients.pop(writer, None)
            writer.close()

    def _one_too_many(self) -> asyncio.StreamWriter:
        """Return the oldest connection of the address that has the most; of equals, one from another machine."""
        counts = Counter(self._clients.values())
        busiest = max(counts, key=lambda address: (counts[address], not _is_loopback(address)))
        return next(client for client, address in self._clients.items() if address == busiest)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            head = b""
        method, response = await self._answer_to(head)
        writer.write(_written(response, with_body=method != "HEAD"))
        # All of it, or the time limit: what a client does not read must not stay in memory.
        writer.transport.set_write_buffer_limits(0)
        await writer.drain()

    async def _answer_to(self, head: bytes) -> tuple[str, HttpResponse]:
        parts = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/"):
            return "", text_response(400, "this is no HTTP request")
        method, page = parts[0], self._pages.get(parts[1].partition("?")[0])
        if page is None:
            return method, text_response(404, f"no such page; the pages are {', '.join(self._pages)}")
        if method not in ("GET", "HEAD"):
            return method, text_response(405, "ask with GET")
        if parts[1].partition("?")[0] in self._guarded and not is_known_host(_host_in(head), self._address[0]):
            return method, text_response(421, "use an IP address, localhost or this machine's name as the host")
        return method, await page()


def is_known_host(host: str | None, listening_on: str) -> bool:
    """Whether a request's Host header names this machine in a way that no foreign name server can.

    A page in a browser may point a name of its own at an address of ours and read the response (DNS rebinding). It
    cannot do so with an IP address, a name without a dot, a name of a private domain, or the names we go by.
    """
    if host is None:
        return True  # HTTP/1.0; every browser sends one
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    if _is_address(name) or "." not in name or name.rpartition(".")[2] in PRIVATE_DOMAINS:
        return True
    return name in (listening_on.lower(), socket.gethostname().lower())


def _host_in(head: bytes) -> str | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"host":
            return value.strip().decode("latin-1")
    return None


def _address_of(client: asyncio.StreamWriter) -> str:
    peer = client.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(address: str) -> bool:
    return _is_address(address) and ipaddress.ip_address(address).is_loopback


def _listening(host: str, port: int) -> socket.socket:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = infos[0]
        return socket.create_server(address, family=family, backlog=128)
    except UnicodeError as error:  # of a host with an empty or overlong label
        raise InvalidSettingError(
            f"cannot listen for probes on {host}:{port}: this is not the name of a host; choose another probe host"
        ) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InvalidSettingError(
            f"cannot listen for probes on {host}:{port}: {reason}; choose another probe port or host"
        ) from error


def _written(response: HttpResponse, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n"
        f"Content-Type: {response.content_type}\r\nContent-Length: {len(response.body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (response.body if with_body else b"")
