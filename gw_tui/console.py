"""What screens, dialogs and actions use of the app that runs them, and do not import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from gw_tui.actions import Action
    from gw_tui.state import ConsoleState

T = TypeVar("T")


class Console(Protocol):
    """The running console: its state, and what it does for the screen in front."""

    @property
    def state(self) -> ConsoleState: ...

    def ask(self, screen: Screen[Any]) -> None:
        """Run a screen's query from now on, while it is in front."""

    def refresh_now(self) -> None:
        """Query immediately."""

    def visit(self, place: str, filter: str = "") -> None:
        """Go to a screen and apply a filter to it."""

    def draw_frame(self) -> None:
        """Draw the lines around the screen."""

    def copy(self, text: str, words: str = "") -> None:
        """Copy a text, and confirm it; reject one that is too long for a terminal to copy."""

    def copy_preview(self, action: Action) -> None:
        """Copy the gw command that does the same as an action."""

    # -- of Textual ------------------------------------------------------------------------------------------------

    def notify(self, message: str, *, severity: SeverityLevel = ...) -> None: ...

    def push_screen(self, screen: Screen[Any]) -> object: ...

    async def push_screen_wait(self, screen: Screen[T]) -> T: ...

    def run_worker(self, work: Coroutine[Any, Any, None], *, exit_on_error: bool = ...) -> object: ...
