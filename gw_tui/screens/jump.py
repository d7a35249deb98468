"""Jump mode: a letter on everything that can be focused, and the next key goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from gw_tui.rules.commands import SCREENS

if TYPE_CHECKING:
    from gw_tui.screens.base import ConsoleScreen

LETTERS: Final = "asdfghjkl"


class JumpScreen(ModalScreen[Widget | None]):
    """Shows the letters over the screen below; dismissed with what was chosen, or None. Digits go to their screens."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+o,q", "leave", "Cancel", show=False)]

    DEFAULT_CSS = """
    JumpScreen { background: $background 30%; }
    JumpScreen .letter {
        position: absolute; width: 3; height: 1; background: $primary; color: $background; text-style: bold reverse;
    }
    """

    def __init__(self, screen: ConsoleScreen) -> None:
        super().__init__()
        shown = [each for each in screen.focus_chain if each.region.area]  # in the order of the tab key
        self._targets = dict(zip(LETTERS, shown, strict=False))

    def compose(self) -> ComposeResult:
        for letter, target in self._targets.items():
            label = Static(Content(f" {letter} "), classes="letter", markup=False)
            label.styles.offset = target.region.offset
            yield label

    def on_key(self, event: events.Key) -> None:
        """Go to the screen of the letter; any other key cancels."""
        event.stop()
        if (target := self._targets.get(event.key)) is not None:
            self.dismiss(target)
            return
        self.dismiss(None)
        place = next((each for each in SCREENS if each.key == event.key), None)
        if place is not None:
            self.app.call_later(self.app.run_action, f"go('{place.id}')")

    def action_leave(self) -> None:
        self.dismiss(None)
