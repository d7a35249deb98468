"""A list in pages, with a line above it in which a filter is typed."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar

from textual.app import ComposeResult
from textual.widgets import Input

from gw_tui.screens.list_screen import LOADING, ListScreen, T
from gw_tui.text import sanitize


class Page(Protocol):
    """A page of a list."""

    @property
    def after(self) -> object:
        """The cursor of the next page; None after the last one."""


P = TypeVar("P", bound=Page)


class PagedList(ListScreen[P, T]):
    """Turns pages by cursors and takes a filter. Subclasses ask for the page that begins at `begins[-1]`."""

    PLACEHOLDER: ClassVar[str] = ""
    """An example of a filter."""
    FIRST: ClassVar[Any] = None
    """The cursor of the first page."""

    def __init__(self) -> None:
        super().__init__()
        self.begins: tuple[Any, ...] = (self.FIRST,)
        """The cursors of the pages up to this one."""

    def body(self) -> ComposeResult:
        entry = Input(id="entry", placeholder=self.PLACEHOLDER)
        entry.cursor_blink = False
        entry.display = False
        yield entry
        yield from super().body()

    @property
    def typed(self) -> str:
        """The filter as the operator typed it."""
        raise NotImplementedError

    def turn_to(self, begins: tuple[Any, ...]) -> None:
        """Show the page that begins at the last of these cursors."""
        self.begins = begins
        self.answer = None
        self.table.say_when_empty(LOADING)
        self.table.replace([])
        self.ask()
        self.draw()

    def action_next_page(self) -> None:
        if self.answer is None or self.answer.after is None:
            self.notify("Last page")
        else:
            self.turn_to((*self.begins, self.answer.after))

    def action_previous_page(self) -> None:
        if len(self.begins) == 1:
            self.notify("First page")
        else:
            self.turn_to(self.begins[:-1])

    @property
    def _entry(self) -> Input:
        return self.query_one("#entry", Input)

    def action_filter(self) -> None:
        self._entry.display = True
        self._entry.value = self.typed
        self.set_focus(self._entry)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_entry()
        text = sanitize.UNSAFE.sub(" ", event.value).strip()
        self.keep_filter(text)
        self.take_filter(text)

    def on_descendant_blur(self) -> None:
        """Typing ends when something else is focused."""
        if self.app.app_focus and self.focused is not self._entry:
            self._entry.display = False

    def _close_entry(self) -> None:
        self._entry.display = False
        self.table.focus()

    def action_back(self) -> None:
        """Close the line for typing, or show everything from the first page on."""
        if self._entry.display:
            self._close_entry()
        elif self.typed or len(self.begins) > 1:
            self.take_filter("")
