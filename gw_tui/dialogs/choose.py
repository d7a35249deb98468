"""One of a few things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gw_tui.text import sanitize


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to choose, with a word about it."""

    id: str
    label: str
    words: str = ""


class Choose(ModalScreen[str | None]):
    """Asks for one of several; dismissed with its id, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Cancel", show=False),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    DEFAULT_CSS = """
    Choose { align: center middle; background: $background 60%; }
    Choose #choose {
        width: 72; max-width: 100%; height: auto; max-height: 90%;
        border: round $primary; background: $panel; padding: 0 1;
    }
    Choose OptionList { height: auto; max-height: 16; border: none; background: $panel; padding: 0; }
    """

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.title_words = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Lay out the choices."""
        with Vertical(id="choose") as panel:
            panel.border_title = Content(sanitize.line(self.title_words, 60))
            panel.border_subtitle = "enter selects, esc cancels"
            yield OptionList(*(Option(_line(each), id=each.id) for each in self._choices))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer."""
        event.stop()
        self.dismiss(event.option.id)

    def action_leave(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)

    def action_down(self) -> None:
        """Go to the next choice."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Go to the choice before."""
        self.query_one(OptionList).action_cursor_up()


def _line(choice: Choice) -> Content:
    return Content.assemble((choice.label, "bold"), (f"  {choice.words}" if choice.words else "", "$quiet"))
