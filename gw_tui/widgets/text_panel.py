"""Panels that can be focused and scrolled, with text or with other panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static


class ScrollPanel(VerticalScroll, can_focus=True):
    """Scrolls with the keys of lists, and without an animation, so that a key acts when it is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", show=False),
        Binding("j", "scroll_down", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]
    DEFAULT_CSS = "ScrollPanel { scrollbar-size-vertical: 1; }"

    def scroll_to(self, *place: Any, **options: Any) -> None:
        super().scroll_to(*place, **{**options, "animate": False})

    def action_scroll_end(self) -> None:
        self.scroll_end(animate=False)


class TextPanel(ScrollPanel):
    """Shows text under a title; the text is `Content`, never markup."""

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy_text", id="copy", show=False)]
    DEFAULT_CSS = """
    TextPanel { padding: 0 1; }
    TextPanel > Static { height: auto; width: 1fr; }
    """

    @dataclass
    class Copied(Message):
        """The operator copies the text."""

        panel: TextPanel

    def __init__(self, title: str, *, id: str | None = None, wraps: bool = True, copies: bool = True) -> None:
        super().__init__(id=id, classes="panel")
        self._copies = copies
        self.border_title = Content(title)
        self._text = Static("", markup=False)
        if not wraps:
            self._text.styles.text_wrap = "nowrap"
            self._text.styles.text_overflow = "ellipsis"
        self._shown: Content | None = None

    def compose(self) -> ComposeResult:
        yield self._text

    @property
    def text(self) -> str:
        return "" if self._shown is None else self._shown.plain

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave copying to the screen where that copies something else."""
        return self._copies if action == "copy_text" else super().check_action(action, parameters)

    def action_copy_text(self) -> None:
        self.post_message(self.Copied(self))

    def show(self, text: Content) -> None:
        """Show another text, scrolled as it was."""
        if self._shown is None or not text.is_same(self._shown):
            # A layout of the whole screen costs more than everything else that a second changes.
            keeps_height = self._shown is not None and self._keeps_height(self._shown.plain, text.plain)
            self._shown = text
            self._text.update(text, layout=not keeps_height)

    def _keeps_height(self, before: str, after: str) -> bool:
        """Return whether a text needs as many lines as the one before: lines that differ fit without wrapping."""
        old, new = before.split("\n"), after.split("\n")
        room = self._text.size.width
        return len(old) == len(new) and all(
            one == other or max(cell_len(one), cell_len(other)) <= room for one, other in zip(old, new, strict=True)
        )
