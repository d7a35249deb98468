"""What screens, dialogs and actions see of the console."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from gw_core.operations import CleanupTarget, QueueSnapshot
    from gw_tui.actions.actions import Action
    from gw_tui.actions.batch import ActionBatch
    from gw_tui.data.source import DataSource
    from gw_tui.data.table_choices import TableChoices
    from gw_tui.rules.commands import CommandContext
    from gw_tui.rules.connection_state import ConnectionPhase
    from gw_tui.rules.history import History
    from gw_tui.rules.journal import EntryKind, Journal
    from gw_tui.rules.options import Options
    from gw_tui.rules.table_choice import TableChoice


class Console(Protocol):
    """The running console. Only the thread of the screen may call it."""

    options: Options
    source: DataSource
    choices: TableChoices
    journal: Journal
    history: History
    snapshot: QueueSnapshot | None
    is_listening: bool

    @property
    def now(self) -> datetime:
        """The database's time, as far as it is known."""

    @property
    def phase(self) -> ConnectionPhase:
        """The state of the connection."""

    @property
    def theme_names(self) -> list[str]:
        """The available themes, ours first."""

    # -- queries ---------------------------------------------------------------------------------------------------

    def ask(self, screen: Screen[Any]) -> None:
        """Run a screen's query from now on, while it is in front."""

    def came_to_front(self, screen: Screen[Any]) -> None:
        """Show a screen what is known, and run its query."""

    def refresh_now(self) -> None:
        """Refresh without waiting for the next interval."""

    # -- actions ---------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """True while a batch runs."""

    def submit(self, action: Action) -> None:
        """Run one action; its result arrives as `ActionFinished`."""

    def begin(self, batch: ActionBatch, on_done: Callable[[ActionBatch], None] | None = None) -> None:
        """Run a batch of actions; `on_done` is called when it has finished without an error."""

    def stop_batch(self) -> None:
        """Stop the running batch after its current part."""

    def undo(self) -> None:
        """Restore the jobs that were completed last."""

    def sweep(self) -> None:
        """Preview a sweep, then ask whether to run it."""

    def clean_up(self, target: CleanupTarget | None = None) -> None:
        """Count what a cleanup would delete, then ask whether to delete it."""

    def note(self, kind: EntryKind, words: str, *, is_bad: bool = False) -> None:
        """Add an entry to the journal."""

    def remember(self, screen: str, choice: TableChoice) -> None:
        """Keep the columns and the order of a list for the next start."""

    # -- the screen ------------------------------------------------------------------------------------------------

    def visit(self, place: str, filter: str = "") -> None:
        """Go to a screen and apply a filter to it."""

    def keep_line(self, line: str) -> None:
        """Add a line to the history of `:`."""

    def draw_frame(self) -> None:
        """Draw the lines around the screen."""

    def command_context(self, *, has_row: bool, has_changes: bool) -> CommandContext:
        """Return what decides which commands are possible."""

    def copy(self, text: str, words: str = "") -> None:
        """Copy a text to the clipboard and report it."""

    def copy_preview(self, action: Action) -> object:
        """Copy the command or the SQL that is equivalent to an action."""

    def use_theme(self, name: str) -> None:
        """Switch to a theme."""

    # -- of the framework ------------------------------------------------------------------------------------------

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a message for some seconds."""

    def push_screen(self, screen: Screen[Any]) -> object:
        """Show a dialog."""

    async def push_screen_wait(self, screen: Screen[Any]) -> Any:
        """Show a dialog and return its answer."""

    def run_worker(self, work: Coroutine[Any, Any, Any], *, exit_on_error: bool = True) -> object:
        """Run a coroutine."""

    async def run_action(self, action: str, default_namespace: Any = None) -> bool:
        """Run a command."""
