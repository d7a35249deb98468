"""A TCP proxy in front of the database that can lose, hold or delay what either side sends, per connection.

A connection is recognised by its application name: `gw:claim`, `gw:settle`, `gw:maintenance`, … Failures can be armed
before the connection exists. `url` leads through the proxy.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

READY = b"Z\0\0\0\5"
"""How the server's last message about a statement begins: what it did is committed by then."""

NOT_YET_BEGUN = {80877103, 80877104}
"""What a client asks for before it begins: encryption, which the server behind rejects."""

ALL_SESSIONS = ""


@dataclass(frozen=True)
class SentText:
    """A text that a client sent to be parsed, and the numbers of the types that it gave the values; 0 is unknown."""

    session: str
    text: str
    types: tuple[int, ...] = ()


class Requests:
    """Reads what a client sends, as far as it takes to see which statement is executed."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._has_begun = False
        self._statements: dict[bytes, bytes] = {}
        self._bound = b""
        self.name = ""
        """The application name, once the startup message has arrived."""
        self.sent: list[SentText] | None = None
        """Where each text is added, if anywhere."""
        self.kinds: list[tuple[str, str]] | None = None
        """Where the kind of each message is added, if anywhere."""

    def executed(self, data: bytes) -> list[bytes]:
        """Return the statements that this data executes: their text, and the values bound to them."""
        self._buffer += data
        found: list[bytes] = []
        while (message := self._next()) is not None:
            kind, body = message
            if kind == b"Q":
                found.append(body)
                self._note(body.rstrip(b"\0"))
            elif kind == b"P":
                name, text, types = body.split(b"\0", 2)
                self._statements[name] = text
                self._note(text, types[2:])
            elif kind == b"B":
                _, name, values = body.split(b"\0", 2)
                self._bound = self._statements.get(name, b"") + values
            elif kind == b"E":
                found.append(self._bound)
        return found

    def _note(self, text: bytes, types: bytes = b"") -> None:
        if self.sent is not None:
            numbers = tuple(int.from_bytes(types[place : place + 4]) for place in range(0, len(types), 4))
            self.sent.append(SentText(self.name, text.decode(), numbers))

    def _next(self) -> tuple[bytes, bytes] | None:
        head = 5 if self._has_begun else 4
        if len(self._buffer) < head:
            return None
        length = int.from_bytes(self._buffer[head - 4 : head]) + head - 4
        if len(self._buffer) < length:
            return None
        message = bytes(self._buffer[:length])
        del self._buffer[:length]
        if self._has_begun:
            if self.kinds is not None:
                self.kinds.append((self.name, message[:1].decode()))
            return message[:1], message[head:]
        self._has_begun = int.from_bytes(message[4:8]) not in NOT_YET_BEGUN
        words = message[8:].split(b"\0")
        with contextlib.suppress(ValueError):
            self.name = words[words.index(b"application_name") + 1].decode()
        return b"", b""


@dataclass(eq=False)
class Loss:
    """One answer that will be lost, and the connection with it, or with `stays_open` all further answers on it."""

    name: str
    mark: bytes
    committed: bool
    immediately: bool = False
    """Lose whatever comes next, such as a notification; otherwise wait until the statement is committed."""
    stays_open: bool = False
    happened: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class LateRequest:
    """One statement that reaches the server long after its client has lost the connection."""

    name: str
    mark: bytes
    happened: threading.Event = field(default_factory=threading.Event)
    """Set when the client's connection is broken."""
    due: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)
    """Set when the server has answered, or ended the session before."""

    def deliver(self) -> None:
        """Pass it on to the server, and wait until the server has answered or turns out to have ended the session."""
        self.due.set()
        assert self.answered.wait(60), "the server has not answered"


_Armed = TypeVar("_Armed", Loss, LateRequest)


@dataclass(eq=False)
class _Link:
    client: socket.socket
    server: socket.socket
    requests: Requests = field(default_factory=Requests)
    loss: Loss | None = None
    """Whose statement has been passed on, and whose answer will not be."""
    late: LateRequest | None = None
    """Whose statement waits here; its client is gone."""

    def close(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class DatabaseProxy:
    """Passes bytes on until a failure is armed. All methods are safe from any thread."""

    def __init__(self, url: str, *, target: Callable[[], tuple[str, int]] | None = None) -> None:
        parts = conninfo_to_dict(url)
        host, port = str(parts.get("host") or "127.0.0.1"), int(parts.get("port") or 5432)
        self._target = target or (lambda: (host, port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = make_conninfo(url, host="127.0.0.1", port=self.port, sslmode="disable", gssencmode="disable")
        self._changed = threading.Condition()  # guards everything below
        self._links: list[_Link] = []
        self._is_cut = False
        self._is_closed = False
        self._losses: list[Loss] = []
        self._late: list[LateRequest] = []
        self._held: set[str] = set()
        self._swallowed: set[str] = set()
        self._delays: dict[str, float] = {}
        self._recorded: list[tuple[str, str]] | None = None
        self._sent: list[SentText] | None = None
        self._kinds: list[tuple[str, str]] | None = None
        self.rejected = 0
        self.lost = 0
        """How many armed answers have been lost."""
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def record(self) -> list[tuple[str, str]]:
        """Return a list to which each statement is added from now on: the connection's name, and the text."""
        with self._changed:
            self._recorded = []
            return self._recorded

    def record_texts(self) -> list[SentText]:
        """Return a list to which each text is added that connections made from now on send to be parsed."""
        with self._changed:
            self._sent = []
            return self._sent

    def record_kinds(self) -> list[tuple[str, str]]:
        """Return a list to which connections made from now on add what they send: their name, and a message's kind."""
        with self._changed:
            self._kinds = []
            return self._kinds

    # -- failures -----------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """Break all connections, and every new one."""
        with self._changed:
            self._is_cut = True
        self.break_all()

    def restore(self) -> None:
        """Let new connections through again."""
        with self._changed:
            self._is_cut = False

    def break_all(self) -> None:
        """Break the connections there are; what waited is lost."""
        with self._changed:
            links, self._links = self._links, []
            for link in links:  # before those that wait go on
                link.close()
            self._changed.notify_all()

    def mute(self, name: str) -> threading.Event:
        """Break the one connection of that name when it is next answered, so that the answer never arrives."""
        with self._changed:
            (link,) = [link for link in self._links if link.requests.name == name]
            link.loss = Loss(name, b"", committed=True, immediately=True)
        return link.loss.happened

    def lose_next(self, name: str, *, mark: str = "", committed: bool = True, stays_open: bool = False) -> Loss:
        """Break that connection at its next statement whose text or values contain the mark.

        With `committed` the server carries it out and its answer is lost; without, it never receives it. With
        `stays_open` nothing arrives on the connection from then on, as when a network swallows the answers.
        """
        loss = Loss(name, mark.encode(), committed, stays_open=stays_open)
        with self._changed:
            self._losses.append(loss)
        return loss

    def delay_next(self, name: str, *, mark: str = "") -> LateRequest:
        """Break that connection on the client's side alone at its next statement with the mark, and keep the statement.

        As when a box on the way stands still: the server knows nothing, until the statement is delivered.
        """
        late = LateRequest(name, mark.encode())
        with self._changed:
            self._late.append(late)
        return late

    def withdraw(self, armed: Loss | LateRequest) -> None:
        """Let that answer or statement be, if it has not happened."""
        with self._changed:
            if armed in self._losses:
                self._losses.remove(armed)
            elif armed in self._late:
                self._late.remove(armed)

    def swallow(self, name: str = ALL_SESSIONS) -> None:
        """Throw away what the server answers on these connections, which stay open; what it was sent has its effect."""
        with self._changed:
            self._swallowed.add(name)

    def hold(self, name: str = ALL_SESSIONS) -> None:
        """Let what either side sends wait, also new connections, as in a network that is cut off and heals."""
        with self._changed:
            self._held.add(name)

    def delay(self, seconds: float, name: str = ALL_SESSIONS) -> None:
        """Pass the server's answers on so much later."""
        with self._changed:
            self._delays[name] = seconds

    def heal(self, name: str = ALL_SESSIONS) -> None:
        """Pass everything on again and break no connection: what was held arrives, what was swallowed does not."""
        with self._changed:
            self._held.discard(name)
            self._swallowed.discard(name)
            self._delays.pop(name, None)
            self._changed.notify_all()

    def close(self) -> None:
        # Waking accept() needs a shutdown: closing alone leaves its thread waiting.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._changed:
            self._is_closed = True
            self._held.clear()
        self.cut()

    # -- passing on ---------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._changed:
            self._changed.wait_for(lambda: ALL_SESSIONS not in self._held)
            if self._is_cut:
                self.rejected += 1
                client.close()
                return
        try:
            link = _Link(client, self._connect())
            link.requests.sent, link.requests.kinds = self._sent, self._kinds
        except OSError:
            client.close()
            return
        with self._changed:
            if self._is_cut:  # while it connected
                self.rejected += 1
                link.close()
                return
            self._links.append(link)
        threading.Thread(target=self._answers, args=(link,), name="proxy", daemon=True).start()
        self._requests(link)

    def _connect(self) -> socket.socket:
        host, port = self._target()
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _requests(self, link: _Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.client.recv(65_536):
                statements = link.requests.executed(data)
                if (recorded := self._recorded) is not None:
                    texts = [each.partition(b"\0")[0].decode("utf-8", "replace") for each in statements]
                    recorded.extend((link.requests.name, " ".join(text.split())) for text in texts)
                loss = self._next_of(self._losses, link, statements)
                if (late := self._next_of(self._late, link, statements)) is not None:
                    self._deliver_late(link, late, data)
                    return
                self._wait_while_held(link)
                if loss is not None and not loss.committed:
                    self._note(loss)
                    break
                link.loss = loss or link.loss
                link.server.sendall(data)
        self._wait_while_held(link)
        self._drop(link)

    def _answers(self, link: _Link) -> None:
        seen = b""
        with contextlib.suppress(OSError):
            while data := link.server.recv(65_536):
                if (pause := self._delay_of(link)) > 0:
                    threading.Event().wait(pause)
                self._wait_while_held(link)
                if link.late is not None:
                    seen += data
                    if READY in seen:
                        break
                elif link.loss is not None:
                    seen += data
                    if link.loss.immediately or READY in seen:
                        self._note(link.loss)
                        if not link.loss.stays_open:
                            break
                elif not self._is_among(self._swallowed, link):
                    link.client.sendall(data)
        self._wait_while_held(link)
        self._drop(link)
        if link.late is not None:
            link.late.answered.set()

    def _deliver_late(self, link: _Link, late: LateRequest, data: bytes) -> None:
        """Break the connection with the client, and keep the one with the server until the statement is delivered."""
        link.late = late
        link.client.close()
        late.happened.set()
        late.due.wait()
        with contextlib.suppress(OSError):
            link.server.sendall(data)

    def _next_of(self, armed: list[_Armed], link: _Link, statements: list[bytes]) -> _Armed | None:
        """Take what was armed for one of these statements."""
        with self._changed:
            for each in armed:
                if each.name == link.requests.name and any(each.mark in statement for statement in statements):
                    armed.remove(each)
                    return each
        return None

    def _note(self, loss: Loss) -> None:
        with self._changed:
            self.lost += 1
        loss.happened.set()

    def _is_among(self, names: set[str], link: _Link) -> bool:
        return ALL_SESSIONS in names or link.requests.name in names

    def _delay_of(self, link: _Link) -> float:
        return self._delays.get(link.requests.name, self._delays.get(ALL_SESSIONS, 0.0))

    def _wait_while_held(self, link: _Link) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_among(self._held, link) or link not in self._links)

    def _drop(self, link: _Link) -> None:
        with self._changed, contextlib.suppress(ValueError):
            self._links.remove(link)
        link.close()
