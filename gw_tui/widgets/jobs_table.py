"""The list of jobs: a table that can be followed."""

from __future__ import annotations

from collections.abc import Iterable

from textual.message import Message

from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import TableRow


class JobsTable(KeyedTable):
    """The list of jobs. While it is followed it stays at its top, and no row is under the cursor.

    No key may act on a row that has just moved under the cursor, so any cursor movement ends following.
    """

    class Unfollowed(Message):
        """The operator moved the cursor."""

    is_followed = False

    def follow(self) -> None:
        """Stay at the top from now on."""
        self.is_followed = True
        self.replace([])

    def apply(self, rows: Iterable[TableRow]) -> None:
        """Show new rows, each at its place."""
        if self.is_followed:
            self.moved_at = None
        super().apply(rows)

    def action_move(self, by: int) -> None:
        """Move the cursor; to begin with, onto the first row."""
        super().action_move(0 if self.is_followed else by)

    def _move_to_index(self, index: int) -> None:
        if self.is_followed:
            self.is_followed = False
            self.post_message(self.Unfollowed())
        super()._move_to_index(index)

    def _set_highlighted(self, key: str | None) -> None:
        super()._set_highlighted(None if self.is_followed else key)
