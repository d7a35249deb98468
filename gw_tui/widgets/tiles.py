"""A large number with its explanation below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from gw_tui.text import formatting, sanitize, symbols

SHORT: Final = len("s SCHED")


class Tile(Static):
    """A sign and a word, a number, and a line about it."""

    DEFAULT_CSS = """
    Tile { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *states: str, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self._states = states
        self._shown = ("", "")

    @dataclass
    class Clicked(Message):
        """The operator clicked the tile."""

        tile: Tile

    def on_click(self) -> None:
        self.post_message(self.Clicked(self))

    def on_mount(self) -> None:
        self.show(formatting.NOTHING, "")

    def show(self, number: str, about: str) -> None:
        if (number, about) == self._shown:
            return
        self._shown = (number, about)
        self._draw()

    def on_resize(self) -> None:
        """Take the short head where the long one does not fit."""
        self._draw()

    def _draw(self) -> None:
        number, about = self._shown
        width = self.content_size.width
        about = about if len(about) <= width else about.partition(", ")[0]
        self.update(
            Content.assemble(
                self._head(width),
                "\n",
                (sanitize.line(number), "bold"),
                "\n",
                (sanitize.line(about), "$quiet"),
            ),
            layout=False,
        )

    def _head(self, width: int) -> Content:
        """Return the states with their signs, each in its colour; short words where the long ones do not fit."""
        titles = [symbols.state(each).upper() for each in self._states]
        if len(" ".join(titles)) > width and len(titles) > 1:
            titles[0] = titles[0][:SHORT]
        parts = zip(titles, self._states, strict=True)
        return Content(" ").join(Content.styled(title, f"$state-{state}") for title, state in parts)
