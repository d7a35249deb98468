"""Show the console in a browser of this machine: a web server that starts a read-only console for each page."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from shlex import join
from typing import TYPE_CHECKING, Final

from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from aiohttp import web

ADDRESS: Final = "127.0.0.1"
"""The server is bound to this machine; from another one, an ssh tunnel leads here."""

POLICY: Final = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; frame-ancestors 'none'"
)
"""The page loads nothing from elsewhere; no other page can frame it."""


class ConsoleServer:
    """Serves consoles at one address, to browsers that know its token."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        try:
            self._listening = socket.create_server((ADDRESS, port))
        except OSError as error:
            raise InvalidInputError(
                f"port {port} cannot be used: {error.strerror}; choose another with --port"
            ) from None
        self._host = "{}:{}".format(*self._listening.getsockname())
        self._token = secrets.token_urlsafe(16)
        self._command = command

    @property
    def url(self) -> str:
        """The address to open; it contains the token."""
        return f"http://{self._host}/?token={self._token}"

    def run(self) -> None:
        """Serve until a signal."""
        from aiohttp import web

        web.run_app(self._application(), sock=self._listening, print=None, access_log=None)

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def _application(self) -> web.Application:
        import aiohttp_jinja2
        import jinja2
        from aiohttp import web
        from textual_serve.server import Server

        @web.middleware
        async def guard(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            self._check(request)
            return await handler(request)

        pages = Server(join(self._command), title="gw tui", public_url=f"http://{self._host}")
        app = web.Application(middlewares=[guard])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(pages.templates_path))
        app.router.add_get("/", pages.handle_index, name="index")
        app.router.add_get("/ws", pages.handle_websocket, name="websocket")
        app.router.add_static("/static", pages.statics_path, name="static")
        app.on_response_prepare.append(self._harden)
        return app

    @property
    def _cookie(self) -> str:
        """The name of the cookie; cookies do not distinguish ports, and several consoles can be served."""
        return f"gw-{self._listening.getsockname()[1]}"

    def _check(self, request: web.Request) -> None:
        """Reject those who do not know the token. Other pages and other names of this address get nothing."""
        from aiohttp import web

        if request.host != self._host or request.headers.get("Origin") not in (None, f"http://{self._host}"):
            raise web.HTTPForbidden(text=f"Open this console as http://{self._host}\n")
        if self._is_token(request.query.get("token")):
            raise self._without_token()
        if not self._is_token(request.cookies.get(self._cookie)):
            raise web.HTTPForbidden(text="Open the address that gw tui --serve printed\n")

    def _is_token(self, given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), self._token.encode())

    def _without_token(self) -> web.HTTPFound:
        """Lead to the page itself, so that the token does not stay in the address bar."""
        from aiohttp import web

        found = web.HTTPFound("/")
        found.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict")
        return found

    async def _harden(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = f"{POLICY}; connect-src 'self' ws://{self._host}"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"


def serve(command: Sequence[str], port: int, *, announce: Callable[[str], object]) -> None:
    """Serve consoles that a command starts, until a signal; `announce` gets the address to open."""
    if find_spec("textual_serve") is None:
        raise InvalidInputError(
            "--serve needs the package textual-serve; install it with: pip install 'graphile-worker[serve]'"
        )
    server = ConsoleServer(command, port)
    announce(server.url)
    server.run()


def is_served() -> bool:
    """Return whether a web server started this process to show the console in a browser."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
