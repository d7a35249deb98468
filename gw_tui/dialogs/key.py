"""Which job is meant, by its key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Label

from gw_tui.dialogs.base import Dialog, entry
from gw_tui.text import sanitize

WORDS = "You confirm after the job is found."


class KeyDialog(Dialog[str]):
    """Asks for the key of a job; answers with it."""

    AUTO_FOCUS = "#key"

    def __init__(self, key: str = "") -> None:
        super().__init__("Remove by key", WORDS, ok="Find")
        self._key = key

    def fields(self) -> ComposeResult:
        yield Label(Content("Job key:"))
        yield entry("key", sanitize.line(self._key), is_offer=True)

    def answer(self) -> str:
        """Return the key; one that was offered comes back as it is, whatever of it can be shown."""
        shown = self.query_one("#key", Input).value
        if not shown:
            raise ValueError("Enter a job key")
        return self._key if shown == sanitize.line(self._key) else shown
