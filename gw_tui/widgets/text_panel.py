"""A panel of text that can be focused and scrolled."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static


class TextPanel(VerticalScroll, can_focus=True):
    """Shows text under a title; the text is `Content`, never markup."""

    DEFAULT_CSS = """
    TextPanel { scrollbar-size-vertical: 1; padding: 0 1; }
    TextPanel > Static { height: auto; width: 1fr; }
    """

    def __init__(self, title: str, *, id: str | None = None, wraps: bool = True) -> None:
        super().__init__(id=id, classes="panel")
        self.border_title = Content(title)
        self._text = Static("", markup=False)
        if not wraps:
            self._text.styles.text_wrap = "nowrap"
            self._text.styles.text_overflow = "ellipsis"
        self._shown: Content | None = None

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield self._text

    def show(self, text: Content) -> None:
        """Show another text, scrolled as it was."""
        if self._shown is None or not text.is_same(self._shown):
            self._shown = text
            self._text.update(text)
