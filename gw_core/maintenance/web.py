"""Answer short pages over HTTP, to any number of clients, however slow."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import InvalidSettingError
from gw_core.service import Service

LONGEST_ANSWER: Final = 3.0
"""Seconds a client may take to ask and to read; then it is cut off."""

LONGEST_HEAD: Final = 8192
MOST_CLIENTS: Final = 64
"""Connections open at the same time; one more, and the oldest is cut off, for it has had the most time."""

TEXT: Final = "text/plain; charset=utf-8"
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path answers."""

    status: int
    body: bytes
    content_type: str = TEXT


def said(status: int, line: str) -> Answer:
    """Return an answer of one line."""
    return Answer(status, f"{line}\n".encode())


Page = Callable[[], Awaitable[Answer]]


class WebServer(Service):
    """A thread with an event loop, so that any number of slow clients costs no thread and keeps nobody waiting.

    `start()` raises `InvalidSettingError` when the address cannot be listened on. The standard library's HTTP servers
    give each client a thread, or make the others wait; all that is needed of HTTP here is to answer a GET and hang up.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        pages: Mapping[str, Page],
        *,
        on_crash: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        super().__init__(name, on_crash=on_crash)
        self._wanted = host, port
        self._pages = pages
        self.address: tuple[str, int] | None = None
        """The host and port it listens on; None before the start."""
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Those of the loop's thread:
        self._end: asyncio.Event | None = None
        self._clients: dict[asyncio.StreamWriter, None] = {}

    def start(self) -> None:
        """Listen, and begin to answer; returns at once."""
        self._socket = _listening(*self._wanted)
        host, port, *_ = self._socket.getsockname()
        self.address = host, port
        super().start()

    def ask_to_stop(self) -> None:
        """Ask for the end; clients that have not been answered are cut off."""
        super().ask_to_stop()
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._ring)

    def turn(self) -> timedelta:
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
        server = await asyncio.start_server(self._attend, sock=self._socket, limit=LONGEST_HEAD)
        if not self.is_stopping:  # asked for before the loop could be told
            await self._end.wait()
        server.close()
        for client in tuple(self._clients):
            client.transport.abort()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            next(iter(self._clients)).transport.abort()
        self._clients[writer] = None
        try:
            async with asyncio.timeout(LONGEST_ANSWER):
                await self._answer(reader, writer)
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self._clients.pop(writer, None)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            head = b""
        method, answer = await self._answer_to(head)
        writer.write(_written(answer, with_body=method != "HEAD"))
        # All of it, or the time limit: what a client does not read must not stay in memory.
        writer.transport.set_write_buffer_limits(0)
        await writer.drain()

    async def _answer_to(self, head: bytes) -> tuple[str, Answer]:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return "", said(400, "this is no HTTP request")
        method, page = words[0], self._pages.get(words[1].partition("?")[0])
        if page is None:
            return method, said(404, f"there is no such page; there are {', '.join(self._pages)}")
        if method not in ("GET", "HEAD"):
            return method, said(405, "ask with GET")
        return method, await page()


def _listening(host: str, port: int) -> socket.socket:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = infos[0]
        return socket.create_server(address, family=family, backlog=128)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InvalidSettingError(
            f"cannot listen for probes on {host}:{port}: {reason}; choose another probe port or host"
        ) from error


def _written(answer: Answer, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (answer.body if with_body else b"")
