"""This console's events and actions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input

from gw_core.front_ends import counted
from gw_core.runtime.files import write_new
from gw_tui.rules.journal import EntryKind, Journal, LogEntry
from gw_tui.screens.list_screen import ListScreen, facts
from gw_tui.text import formatting
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow

MAX_SHOWN: Final = 500
"""More would be slow to draw; the file has them all."""


class EventsScreen(ListScreen[Journal, LogEntry]):
    """A list of entries, the newest first."""

    SCREEN_ID = "events"
    TABLE = "entries"
    COLUMNS = (TableColumn("at", "time", 9), TableColumn("kind", "about", 10), TableColumn("words", "what"))
    EMPTY = "No events"
    PREVIEW = "beside"

    def body(self) -> ComposeResult:
        yield Input(placeholder="search text", id="filter", classes="-hidden", compact=True)
        yield from super().body()

    @property
    def known(self) -> Journal:
        return self.state.journal

    def rows(self, known: Journal) -> Iterator[TableRow]:
        return (_row(entry) for entry in self._wanted()[:MAX_SHOWN])

    def status(self, known: Journal) -> Iterator[str]:
        yield counted(len(known), "event")

    def _wanted(self) -> Sequence[LogEntry]:
        words = self.query_one("#filter", Input).value.lower().split()
        return [
            entry
            for entry in reversed(self.state.journal)
            if all(word in f"{entry.kind} {entry.words}".lower() for word in words)
        ]

    def preview(self) -> Content:
        if (entry := self.selected) is None:
            return Content("")
        known = (("at", formatting.day(entry.at, self.state.now)), ("about", entry.kind.value))
        return facts(known, entry.words)

    def take_filter(self, text: str) -> None:
        field = self.query_one("#filter", Input)
        field.value = text
        field.remove_class("-hidden")

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.remove_class("-hidden")
        field.focus()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self.table.replace(self.rows(self.known))

    @on(Input.Submitted)
    def _done(self) -> None:
        self.table.focus()

    def action_back(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.add_class("-hidden")
        self.table.focus()

    def action_undo(self) -> None:
        self.action_runner.undo()

    def action_copy(self) -> None:
        if (entry := self.selected) is not None:
            self.console.copy(entry.words)

    @work
    async def action_write(self) -> None:
        """Write every entry to a file of its own, for the operator alone to read."""
        path = Path(f"gw-events-{self.state.now:%Y%m%d-%H%M%S}.jsonl")
        lines = [entry.as_json() for entry in self.state.journal]
        try:
            await asyncio.to_thread(write_new, path, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            self.notify(f"Cannot write the events: {error.strerror}", severity="error")
        else:
            self.notify(f"Wrote {counted(len(lines), 'event')} to {path}")


def _row(entry: LogEntry) -> TableRow:
    role = "error" if entry.is_bad else "strong" if entry.kind is EntryKind.ACTION else ""
    cells = {
        "at": Cell(formatting.clock(entry.at), "quiet"),
        "kind": entry.kind.value,
        "words": Cell(entry.words, role),
    }
    return TableRow(str(entry.number), cells, entry)
