"""A large number with its explanation below."""

from __future__ import annotations

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
        self._shown = (formatting.NOTHING, "")

    @dataclass
    class Clicked(Message):
        """The operator clicked the tile."""

        tile: Tile

    def on_click(self) -> None:
        self.post_message(self.Clicked(self))

    def show(self, number: str, about: str) -> None:
        self._shown = (number, about)
        self.draw()

    def content_for(self, width: int) -> Content:
        number, about = self._shown
        about = about if len(about) <= width else about.partition(", ")[0]
        lines = ((sanitize.line(number), "bold"), (sanitize.line(about), "$quiet"))
        return Content("\n").join([self._head(width), *(Content.styled(*line) for line in lines)])

    def _head(self, width: int) -> Content:
        """Return the states with their signs, each in its colour; short words where the long ones do not fit."""
        titles = [symbols.state(each).upper() for each in self._states]
        if len(" ".join(titles)) > width and len(titles) > 1:
            titles[0] = titles[0][:SHORT]
        parts = zip(titles, self._states, strict=True)
        return Content(" ").join(Content.styled(title, f"$state-{state}") for title, state in parts)
