"""A screen with a table under a status line; subclasses declare columns, rows and status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import sanitize
from gw_tui.widgets.keyed_table import KeyedTable, TableColumn, TableRow

if TYPE_CHECKING:
    from gw_core.operations import QueueSnapshot
    from gw_tui.rules.connection_state import FailureKind

WIDE: Final = 100


class ListScreen(ConsoleScreen):
    """Draws its rows and its status when a snapshot, an answer or the time changes them."""

    TABLE: ClassVar[str] = ""
    """The id of the table."""
    COLUMNS: ClassVar[Sequence[TableColumn]] = ()
    WIDE_COLUMNS: ClassVar[Sequence[TableColumn]] = ()
    EMPTY: ClassVar[str] = "No rows"

    def __init__(self) -> None:
        super().__init__()
        self.failure = ""
        """Why the last query failed; empty when it did not."""

    def body(self) -> ComposeResult:
        """Lay out the status line and the table."""
        yield Static("", id="status", classes="status", markup=False)
        yield KeyedTable(self.COLUMNS, empty=self.EMPTY, id=self.TABLE)

    # -- for subclasses --------------------------------------------------------------------------------------------

    def rows(self) -> Iterable[TableRow] | None:
        """Return the rows to show; None while none are known."""
        return None

    def status(self) -> Iterable[str]:
        """Yield the parts of the status line."""
        return ("loading…",)

    @property
    def has_warning(self) -> bool:
        """True when the status line shows a warning."""
        return bool(self.failure)

    def columns_for(self, width: int) -> Sequence[TableColumn]:
        """Return the columns that fit."""
        return self.WIDE_COLUMNS if self.WIDE_COLUMNS and width >= WIDE else self.COLUMNS

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def table(self) -> KeyedTable:
        """The table."""
        return self.query_one(f"#{self.TABLE}", KeyedTable)

    def draw(self) -> None:
        """Draw the rows and the status line."""
        if not self.stands:
            return
        rows = self.rows()
        if rows is not None:
            self.table.apply(rows)
        self.draw_status()

    def draw_status(self) -> None:
        """Draw the status line: the failure, or else the status."""
        words = self.failure or " · ".join(self.status())
        style = "$warning" if self.has_warning else "$quiet"
        self.query_one("#status", Static).update(Content.styled(words, style), layout=False)

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        """Draw what depends on workers and locks."""
        self.draw()

    def show_time(self) -> None:
        """Update ages."""
        self.draw()

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        """Show why there is no answer."""
        self.failure = sanitize.line(f"{failure}: {reason}", 200)
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Show the columns that fit."""
        super().on_resize(event)
        self.table.set_columns(self.columns_for(event.size.width))

    # -- commands --------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy the key of the selected row."""
        if (key := self.table.highlighted) is not None:
            self.console.copy(key)
