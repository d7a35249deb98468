"""A frame over the screen, with a text to scroll or a list to choose from."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList

T = TypeVar("T")


class Framed(ModalScreen[T | None], Generic[T]):
    """Shows one frame, a widget of the class `framed`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    DEFAULT_CSS = """
    Framed { align: center middle; background: $background 60%; }
    Framed .framed {
        width: 72; max-width: 100%; height: auto; max-height: 90%;
        border: round $primary; background: $panel; padding: 0 1;
    }
    """

    def action_leave(self) -> None:
        self.dismiss(None)


class FramedText(VerticalScroll):
    """A text that is scrolled with the keys of lists; `q` and `enter` leave it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("q,enter", "screen.leave", show=False),
    ]

    def action_scroll(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)


class Choices(OptionList):
    """A list with the keys of our tables; `q` leaves as well."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("q", "screen.leave", show=False),
    ]
