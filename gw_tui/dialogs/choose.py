"""One of a few things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gw_tui.dialogs.framed import Choices, Framed
from gw_tui.text import sanitize


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to choose, with a word about it."""

    id: str
    label: str
    words: str = ""


class Choose(Framed[str]):
    """Asks for one of several; dismissed with its id, or None."""

    DEFAULT_CSS = """
    Choose OptionList { height: auto; max-height: 16; border: none; background: $panel; padding: 0; }
    """

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.title_words = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="framed") as panel:
            panel.border_title = Content(sanitize.line(self.title_words, 60))
            panel.border_subtitle = "enter selects, esc cancels"
            yield Choices(*(Option(_line(each), id=each.id) for each in self._choices))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option.id)


def _line(choice: Choice) -> Content:
    return Content.assemble((choice.label, "bold"), (f"  {choice.words}" if choice.words else "", "$quiet"))
