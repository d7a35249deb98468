"""What this console saw and did."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from gw_tui.rules.journal import Entry, Kind
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row

if TYPE_CHECKING:
    from gw_core.operations import QueueSnapshot

COLUMNS: Final = (Column("at", "time", 9), Column("kind", "about", 10), Column("words", "what"))
MOST_SHOWN: Final = 500
"""More would be slow to draw and nobody scrolls that far; the file has them all."""


class EventsScreen(ConsoleScreen):
    """A list of entries, the newest first."""

    PLACE = "events"

    def body(self) -> ComposeResult:
        """Lay out the filter and the list."""
        yield Input(placeholder="words to look for", id="filter", classes="-hidden", compact=True)
        yield KeyedTable(COLUMNS, empty="Nothing happened.", id="entries")

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Show what has happened since."""
        self.show_time()

    def show_time(self) -> None:
        """Show what has happened since."""
        if not self.is_mounted:
            return
        entries = self._wanted()
        self.query_one("#entries", KeyedTable).apply(_row(entry) for entry in entries[:MOST_SHOWN])

    def _wanted(self) -> Sequence[Entry]:
        words = self.query_one("#filter", Input).value.lower().split()
        return [
            entry
            for entry in self.console.journal.newest_first()
            if all(word in f"{entry.kind} {entry.words}".lower() for word in words)
        ]

    # -- commands --------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Say which entries to show."""
        field = self.query_one("#filter", Input)
        field.remove_class("-hidden")
        field.focus()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self.query_one("#entries", KeyedTable).replace(_row(entry) for entry in self._wanted()[:MOST_SHOWN])

    @on(Input.Submitted)
    def _done(self) -> None:
        self.query_one("#entries").focus()

    def action_back(self) -> None:
        """Clear the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.add_class("-hidden")
        self.query_one("#entries").focus()

    def action_undo(self) -> None:
        """Bring back what was removed last."""
        self.console.deeds.undo()

    def action_copy(self) -> None:
        """Copy what the entry under the cursor says."""
        key = self.query_one("#entries", KeyedTable).highlighted
        found = next((each.words for each in self.console.journal if str(each.number) == key), None)
        if found is not None:
            self.console.copy(found)

    def action_write(self) -> None:
        """Write every entry to a file of its own, for the operator alone to read."""
        path = Path.cwd() / f"gw-events-{self.console.now:%Y%m%d-%H%M%S}.jsonl"
        lines = [entry.as_json() for entry in self.console.journal]
        self.run_worker(lambda: self._write(path, lines), thread=True, exit_on_error=False)

    def _write(self, path: Path, lines: Sequence[str]) -> None:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            words = f"The events could not be written: {error.strerror}"
            self.app.call_from_thread(self.notify, words, severity="error", markup=False)
            return
        words = f"Wrote {formatting.counted(len(lines), 'event')} to {path.name}"
        self.app.call_from_thread(self.notify, words, markup=False)


def _row(entry: Entry) -> Row:
    role = "error" if entry.is_bad else "strong" if entry.kind is Kind.ACT else ""
    cells = {
        "at": Cell(formatting.clock(entry.at), "quiet"),
        "kind": entry.kind.value,
        "words": Cell(entry.words, role),
    }
    return Row(str(entry.number), cells)
