"""Jump mode: a letter on everything that can be focused, and the next key goes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """Something to jump to, its letter, and where on the screen it begins."""

    letter: str
    widget: Widget
    x: int
    y: int


def places(screen: ConsoleScreen) -> tuple[JumpTarget, ...]:
    """Return what can be focused on a screen, in the order of the tab key."""
    shown = [each for each in screen.focus_chain if each.region.area]
    return tuple(
        JumpTarget(letter, widget, widget.region.x, widget.region.y)
        for letter, widget in zip(LETTERS, shown, strict=False)
    )


class JumpScreen(ModalScreen[Widget | None]):
    """Shows the letters over the screen below; dismissed with what was chosen, or None. Digits go to their screens."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+o,q", "leave", "Cancel", show=False)]

    DEFAULT_CSS = """
    JumpScreen { background: $background 30%; }
    JumpScreen .letter {
        position: absolute; width: 3; height: 1; background: $primary; color: $background; text-style: bold reverse;
    }
    """

    def __init__(self, targets: Sequence[JumpTarget]) -> None:
        super().__init__()
        self._targets = {each.letter: each for each in targets}

    def compose(self) -> ComposeResult:
        for each in self._targets.values():
            letter = Static(Content(f" {each.letter} "), classes="letter", markup=False)
            letter.styles.offset = (each.x, each.y)
            yield letter

    def on_key(self, event: events.Key) -> None:
        """Go to the screen of the letter; any other key cancels."""
        event.stop()
        if (target := self._targets.get(event.key)) is not None:
            self.dismiss(target.widget)
            return
        self.dismiss(None)
        place = next((each for each in SCREENS if each.key == event.key), None)
        if place is not None:
            self.app.call_later(self.app.run_action, f"go('{place.id}')")

    def action_leave(self) -> None:
        """Leave without a jump."""
        self.dismiss(None)
