"""A large number with its explanation below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content
from textual.message import Message

from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.line import Line

SHORT: Final = len("s SCHED")


class Tile(Line):
    """A sign and a word, a number, and a line about it."""

    DEFAULT_CSS = """
    Tile { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *states: str, id: str) -> None:
        super().__init__(id=id)
        self._states = states
        self._numbers: Sequence[str] = (formatting.NOTHING,)
        self._about = ""

    @dataclass
    class Clicked(Message):
        """The operator clicked the tile."""

        tile: Tile

    def on_click(self) -> None:
        self.post_message(self.Clicked(self))

    def show(self, numbers: Sequence[str], about: str) -> None:
        """Show a number for each state, and a line about them."""
        self._numbers, self._about = numbers, about
        self.draw()

    def content_for(self, width: int) -> Content:
        about = self._about if len(self._about) <= width else self._about.partition(", ")[0]
        titles = self._titles(width)
        sizes = [max(map(len, pair)) for pair in zip(titles, self._numbers, strict=False)]
        colours = [
            Content.styled(title.ljust(size), f"$state-{state}")
            for title, size, state in zip(titles, sizes, self._states, strict=False)
        ]
        numbers = " ".join(number.ljust(size) for number, size in zip(self._numbers, sizes, strict=False))
        lines = [Content.styled(sanitize.line(numbers), "bold"), Content.styled(sanitize.line(about), "$quiet")]
        return Content("\n").join([Content(" ").join(colours), *lines])

    def _titles(self, width: int) -> list[str]:
        """Return the states with their signs; short words where the long ones do not fit."""
        titles = [symbols.state(each).upper() for each in self._states]
        if len(" ".join(titles)) > width and len(titles) > 1:
            titles[0] = titles[0][:SHORT]
        return titles
