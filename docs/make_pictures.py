"""Make the pictures of the documentation: `python docs/make_pictures.py [FOLDER]`.

Each picture shows `gw tui` in tmux, on a database in which several things have gone wrong, beside a worker. It needs
tmux and `DATABASE_URL`, whose role may create the database `shop`. With a folder, every screen is written to it in
three sizes, for a review.
"""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest.mock import patch

import psycopg
from psycopg.conninfo import make_conninfo
from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gw_core import Client, Runner, TaskRegistry, WorkerSettings
from gw_tui.rules.commands import SCREENS
from gw_tui.widgets.themes import THEMES

DATABASE: Final = "shop"
TIMEOUT: Final = 60.0
CHARTED_SECONDS: Final = 40
"""How long a console runs before its picture is taken, so that its charts show something."""
SIZES: Final = ((80, 24), (120, 34), (160, 45))
WEB_FONT: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Rich refers to a font on another server; the pages load nothing from there."""
LEFT_OUT: Final = ("NO_COLOR", "TMUX", "DATABASE_URL", "COLUMNS", "LINES")
"""Variables that would change what the console shows."""
MESS: Final = Path(__file__).with_name("pictures.sql")


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot: which screen, after which keys; it is taken when it shows the words."""

    name: str
    screen: str
    keys: Sequence[str] = ()
    options: Sequence[str] = ()
    words: str = ""
    first: str = ""
    """What it shows before the first key is pressed."""
    size: tuple[int, int] = (110, 30)
    theme: str = "gw-dark"
    rests: float = 0.0
    """How long to wait first, in seconds."""


FAILED: Final = ("--filter", "state:failed")
PICTURES: Final = (
    Picture("overview", "overview", words="714 due jobs", rests=CHARTED_SECONDS),
    # Soon after the first, because alerts change with time.
    Picture("overview-light", "overview", (), (), "714 due jobs", theme="gw-light", rests=8.0),
    Picture("jobs", "jobs", ("Down", "Down"), FAILED, "PaymentError", "PaymentError"),
    Picture("job", "jobs", ("Enter",), FAILED, "Attempts", "PaymentError"),
    Picture("question", "jobs", ("m", "m", "m", "x"), FAILED, "Complete?", "PaymentError"),
    Picture("workers", "workers", words="stale"),
    Picture("locks", "locks", words="backlog"),
)


def every_screen() -> Iterator[Picture]:
    """Yield every screen in three sizes, for a review."""
    for place in SCREENS:
        for width, height in SIZES:
            rests = CHARTED_SECONDS if place.id == "overview" else 4.0
            yield Picture(f"{place.id}-{width}x{height}", place.id, size=(width, height), words="LIVE", rests=rests)


# -- the queue -------------------------------------------------------------------------------------------------------


@contextmanager
def messy_queue(server: str, *, database: str = DATABASE) -> Iterator[str]:
    """Make a database with a queue in which several things have gone wrong, and run a worker on it."""
    url = make_conninfo(server, dbname=database)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {database}".encode())
        try:
            with Client(url) as client:
                client.migrate()
            with psycopg.connect(url, autocommit=True, options="-c search_path=graphile_worker") as queue:
                queue.execute(MESS.read_bytes())
            with _worker(url):
                yield url
        finally:
            connection.execute(f"drop database {database} with (force)".encode())


@contextmanager
def _worker(url: str) -> Iterator[None]:
    tasks = TaskRegistry()
    for name, seconds in (("send_email", 0.4), ("resize_image", 1.2), ("sync_crm", 0.1), ("charge_card", 0.1)):
        tasks.register(name, _lasting(seconds))
    runner = Runner(url, tasks=tasks, settings=WorkerSettings(concurrency=4), handle_signals=False)
    # The pictures do not show the name of the machine they were made on.
    with patch.object(socket, "gethostname", return_value="app-1"):
        runner.start()
        try:
            yield
        finally:
            runner.stop()
            runner.wait()


def _lasting(seconds: float) -> Callable[[object], None]:
    def task(payload: object) -> None:
        time.sleep(seconds)

    return task


# -- the terminal ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terminal:
    """A console in a tmux server of its own."""

    picture: Picture
    server: str = field(default_factory=lambda: f"gw-{uuid.uuid4().hex[:12]}")

    def start(self, url: str, state: str) -> None:
        """Start the console."""
        width, height = map(str, self.picture.size)
        program = [sys.executable, "-m", "gw_cli", "tui", "--connection", url, "--env", "production"]
        shown = ["--screen", self.picture.screen, "--theme", self.picture.theme, *self.picture.options]
        self._tmux("new-session", "-d", "-x", width, "-y", height, *program, *shown, state=state)

    def press(self, key: str) -> None:
        """Press a key, and let the console draw."""
        self._tmux("send-keys", key)
        time.sleep(1)

    def until(self, words: str) -> None:
        """Wait until the console shows the words."""
        end = time.monotonic() + TIMEOUT
        while words not in (text := self._tmux("capture-pane", "-p")):
            if time.monotonic() > end:
                raise TimeoutError(f"the console does not show {words!r}:\n{text}")
            time.sleep(0.2)

    def until_keys_stay(self) -> None:
        """Wait until the line of the keys is the same for a second and a half."""
        seen = [str(number) for number in range(4)]
        while len(set(seen)) > 1:
            time.sleep(0.5)
            seen = [*seen[1:], self._tmux("capture-pane", "-p").rstrip().splitlines()[-1]]

    @property
    def text(self) -> str:
        """What it shows, with its colours."""
        return self._tmux("capture-pane", "-p", "-e", "-N")

    def stop(self) -> None:
        """End the console."""
        self._tmux("kill-server")

    def _tmux(self, *arguments: str, state: str = "") -> str:
        kept = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        settings = {**kept, "LANG": "C.UTF-8", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
        command = ["tmux", "-L", self.server, "-f", "/dev/null", *arguments]
        ran = subprocess.run(  # noqa: S603 - our own command
            command, env={**settings, "XDG_STATE_HOME": state}, capture_output=True, text=True, check=True
        )
        return ran.stdout


def take(picture: Picture, url: str) -> str:
    """Show the picture in a terminal and return it as SVG."""
    with shown(picture, url) as terminal:
        terminal.until_keys_stay()
        return drawn(picture, terminal.text)


@contextmanager
def shown(picture: Picture, url: str) -> Iterator[Terminal]:
    """Start a console and press the keys of the picture."""
    terminal = Terminal(picture)
    with tempfile.TemporaryDirectory() as state:
        terminal.start(url, state)
        try:
            terminal.until("LIVE")
            time.sleep(picture.rests)
            terminal.until(picture.first)
            for key in picture.keys:
                terminal.press(key)
            terminal.until(picture.words)
            yield terminal
        finally:
            terminal.stop()


def drawn(picture: Picture, text: str) -> str:
    """Return a text with escape sequences as SVG."""
    width, height = picture.size
    console = Console(
        record=True, width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for line in AnsiDecoder().decode(text):  # a line may begin in the colours of the one before
        console.print(line, overflow="crop", no_wrap=True)
    svg = console.export_svg(title=f"gw tui: {picture.screen}", theme=_theme(picture), unique_id=f"gw-{picture.name}")
    return WEB_FONT.sub("", svg)


def _theme(picture: Picture) -> TerminalTheme:
    theme = next(each for each in THEMES if each.name == picture.theme)
    ground, letters = (_rgb(str(colour)) for colour in (theme.background, theme.foreground))
    return TerminalTheme(ground, letters, [ground] * 8)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


def main(folder: Path, pictures: Sequence[Picture]) -> None:
    """Write the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with messy_queue(os.environ["DATABASE_URL"]) as url:
        for picture in pictures:
            (folder / f"{picture.name}.svg").write_text(take(picture, url), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), list(every_screen()))
    else:
        main(Path(__file__).parent / "pictures", PICTURES)
