"""A large number with its explanation below."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from gw_tui.text import formatting, sanitize


class Tile(Static):
    """A sign and a word, a number, and a line about it."""

    DEFAULT_CSS = """
    Tile { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, head: str, role: str, *, short: str = "", id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._short = short or head
        self._head = head
        self._role = role
        self._shown = ("", "")

    class Clicked(Message):
        """The operator clicked the tile."""

        def __init__(self, tile: Tile) -> None:
            super().__init__()
            self.tile = tile

    def on_click(self) -> None:
        """Report the click."""
        self.post_message(self.Clicked(self))

    def on_mount(self) -> None:
        """Show that nothing is known yet."""
        self.show(formatting.NOTHING, "")

    def show(self, number: str, about: str) -> None:
        """Show a number and what there is to say about it."""
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
        head = self._head if len(self._head) <= width else self._short
        about = about if len(about) <= width else about.partition(", ")[0]
        self.update(
            Content.assemble(
                (head, f"${self._role}"),
                "\n",
                (sanitize.line(number), "bold"),
                "\n",
                (sanitize.line(about), "$quiet"),
            ),
            layout=False,
        )
