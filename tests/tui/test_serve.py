"""The console in a browser: a real server, over HTTP and its websocket, and in Chromium where there is one."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.warm_program import PROGRAM

from gw_core.errors import InvalidInputError
from gw_tui import serve

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

DEADLINE = 90.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


ANNOUNCED = re.compile(r"Serving on (http://127\.0\.0\.1:\d+/\?token=[\w-]{22})\n")


def test_the_address_of_the_manual_is_of_the_announced_form() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "console.md").read_text("utf-8")

    assert ANNOUNCED.fullmatch(page.partition("$ gw tui --serve\n")[2].partition("```")[0])


@contextmanager
def served(*options: str, folder: Path | None = None) -> Iterator[str]:
    """Serve the demo, and yield the address to open."""
    command = [PROGRAM, "tui", "--demo", "--serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            found = ANNOUNCED.fullmatch(process.stdout.readline())
            assert found is not None
            yield found[1]
        finally:
            process.terminate()


def in_browser(url: str, scenario: Callable[[Any, str], Awaitable[None]]) -> None:
    """Play a scenario with a session that has opened the address; it gets the address without the token."""

    async def inside() -> None:
        # Cookies of an address without a name are dropped unless asked for.
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get(url) as answer:
                assert (answer.status, str(answer.url)) == (200, url.partition("?")[0])
            await asyncio.wait_for(scenario(session, url.partition("?")[0]), DEADLINE)

    asyncio.run(inside())


async def until_shown(websocket: Any, words: str) -> str:
    """Return what the terminal received until it shows these words."""
    seen = ""
    while words not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen):
        message = await websocket.receive()
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), seen
        seen += message.data.decode(errors="replace") if isinstance(message.data, bytes) else ""
    return seen


def test_a_browser_shows_the_console_read_only_and_presses_keys() -> None:
    async def scenario(session: Any, page: str) -> None:
        async with session.ws_connect(f"{page}ws?width=120&height=34", origin=page.rstrip("/")) as websocket:
            await until_shown(websocket, "READ-ONLY")
            await websocket.send_json(["stdin", "8"])
            await until_shown(websocket, "reports/weekly")
            await asyncio.sleep(2.5)  # longer than the check that a terminal still exists
            await websocket.send_json(["stdin", "2"])
            await until_shown(websocket, "last error")

    with served() as url:
        in_browser(url, scenario)


def test_a_module_in_the_current_folder_is_not_imported(tmp_path: Path) -> None:
    for module in ("typer", "queue"):
        (tmp_path / f"{module}.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n")

    async def scenario(session: Any, page: str) -> None:
        async with session.ws_connect(f"{page}ws?width=120&height=34", origin=page.rstrip("/")) as websocket:
            await until_shown(websocket, "READ-ONLY")

    with served(folder=tmp_path) as url:
        in_browser(url, scenario)
    assert not (tmp_path / "ran").exists()


def test_two_pages_are_two_consoles() -> None:
    async def scenario(session: Any, page: str) -> None:
        async with (
            session.ws_connect(f"{page}ws?width=120&height=34") as one,
            session.ws_connect(f"{page}ws?width=80&height=24") as other,
        ):
            await asyncio.gather(until_shown(one, "sampled"), until_shown(other, "sampled"))
            await one.send_json(["stdin", "q"])
            while (await one.receive()).type != aiohttp.WSMsgType.CLOSE:
                pass
            await other.send_json(["stdin", "2"])
            await until_shown(other, "last error")

    with served("--screen", "tasks") as url:
        in_browser(url, scenario)


def test_only_a_page_of_this_console_with_the_token_is_answered() -> None:
    async def scenario(session: Any, page: str) -> None:
        async def status(path: str, **headers: str) -> int:
            async with session.get(f"{page}{path}", headers=headers) as answer:
                return int(answer.status)

        assert await status("") == 200
        assert await status("ws", Origin="http://evil.example") == 403
        assert await status("", Host="evil.example") == 403
        session.cookie_jar.clear()
        assert await status("") == 403
        assert await status("static/js/textual.js") == 403
        assert await status("?token=guess") == 403
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await session.ws_connect(f"{page}ws")

    with served() as url:
        in_browser(url, scenario)


def test_it_listens_on_this_machine_alone() -> None:
    server = serve.ConsoleServer(["true"], 0)
    port = int(server.url.split(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)):
        pass
    others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, port), timeout=60)
    with pytest.raises(InvalidInputError, match=f"port {port} cannot be used"):
        serve.ConsoleServer(["true"], port)
    server.close()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"pip install 'graphile-worker\[serve\]'"):
        serve.serve(["true"], 0, announce=print)


@pytest.mark.once
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_chromium_draws_the_console(tmp_path: Path) -> None:
    with served() as url:
        picture = asyncio.run(asyncio.wait_for(picture_of(url, tmp_path), DEADLINE))
    (tmp_path / "console.png").write_bytes(picture)
    assert len(picture) > 30_000, "the page is nearly empty"


async def picture_of(url: str, folder: Path) -> bytes:
    """Return a screenshot of the page once the terminal has drawn something."""
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1300,800")
    browser = await asyncio.create_subprocess_exec(
        str(CHROMIUM), *options, "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert browser.stderr is not None
        while not (found := re.search(rb"listening on ws://([^/]+)/", await browser.stderr.readline())):
            pass
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{found[1].decode()}/json") as answer:
                page = next(each for each in await answer.json() if each["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as devtools:
                return await _drawn(devtools, url)
    finally:
        browser.terminate()
        await browser.communicate()


async def _drawn(devtools: Any, url: str) -> bytes:
    async def call(method: str, **parameters: object) -> Any:
        await devtools.send_json({"id": 1, "method": method, "params": parameters})
        while "id" not in (answer := await devtools.receive_json()):
            pass
        return answer["result"]

    await call("Page.navigate", url=url)
    while "-first-byte" not in str(await call("Runtime.evaluate", expression="document.body?.className")):
        await asyncio.sleep(0.1)
    picture = b""
    while len(picture) <= 30_000:  # until it has faded in
        picture = base64.b64decode((await call("Page.captureScreenshot", format="png"))["data"])
    return picture
