"""Jobs that have ended: each attempt with its worker, its duration and its error, the latest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual.content import Content

from gw_core.errors import InvalidInputError
from gw_core.front_ends import HISTORY_TERMS, HistoryState, counted
from gw_core.operations import EndedAttempt, HistoryPage
from gw_core.selection import parse
from gw_tui.data.source import DataSource, Query
from gw_tui.screens.list_screen import facts
from gw_tui.screens.paged_list import PagedList
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, duration_cell, sign_cell

_SYMBOLS: Final = {
    HistoryState.COMPLETED: symbols.OK,
    HistoryState.FAILED: symbols.STATES["failed"],
    HistoryState.RETRIED: symbols.STATES["backoff"],
}


@dataclass(frozen=True)
class HistoryQuery(Query):
    """A page of history."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    which: str
    after: str | None

    def ask(self, source: DataSource) -> HistoryPage:
        return source.history(self.which, after=self.after)


class HistoryScreen(PagedList[HistoryPage, EndedAttempt]):
    """A page of ended attempts; `enter` shows all attempts of one job."""

    SCREEN_ID = "history"
    TABLE = "history"
    COLUMNS = (
        TableColumn("at", "ended", 8, right=True, rank=9),
        TableColumn("id", "id", 9, right=True, rank=8),
        TableColumn("state", "state", 11, rank=8),
        TableColumn("task", "task", least=12, rank=7),
        TableColumn("tries", "tries", 6, right=True, rank=5),
        TableColumn("took", "took", 8, right=True, rank=6),
        TableColumn("worker", "worker", least=8, rank=2),
        TableColumn("error", "error", least=24, share=3, rank=4),
    )
    PREVIEW = "beside"
    SORT_NOTE = "Sorting affects the page shown; pages begin with the latest end."
    EMPTY = 'No jobs have ended, or history is off; history = "7d" in gw.toml turns it on'

    PLACEHOLDER = "task:mail state:failed finished_at:-1h..now"

    def __init__(self) -> None:
        super().__init__()
        self._which = ""

    def current_query(self) -> HistoryQuery:
        return HistoryQuery(self._which, self.begins[-1])

    def rows(self, known: HistoryPage) -> Iterator[TableRow]:
        return (_row(each, self.state.now) for each in known.attempts)

    def emptiness(self, known: HistoryPage) -> str:
        return "Nothing in history matches" if self._which else self.EMPTY

    def status(self, known: HistoryPage) -> Iterator[str]:
        yield counted(len(known.attempts), "attempt")
        if len(self.begins) > 1 or known.after is not None:
            yield f"page {len(self.begins)}{'' if known.after is None else ' of more'}"
        if self._which:
            yield sanitize.line(self._which, 60)
        if (chosen := self.selected) is not None and chosen.error is not None:
            yield sanitize.line(masked(chosen.error), 200)

    def preview(self) -> Content:
        if (chosen := self.selected) is None:
            return Content("")
        now = self.state.now
        known = (
            ("job", f"{chosen.job_id}  {chosen.task}"),
            ("state", f"{chosen.state}, attempt {chosen.attempt} of {chosen.max_attempts}"),
            ("started", formatting.day(chosen.started_at, now)),
            ("ended", formatting.day(chosen.finished_at, now)),
            ("worker", chosen.worker_id or formatting.NOTHING),
        )
        return facts(known, masked(chosen.error or ""))

    def take_filter(self, text: str) -> None:
        try:
            parse(text, HISTORY_TERMS)
        except InvalidInputError as error:
            self.notify(sanitize.line(str(error), 200), severity="warning")
            return
        self._which = text
        self.turn_to((self.FIRST,))

    @property
    def typed(self) -> str:
        return self._which

    def action_open(self) -> None:
        if (chosen := self.selected) is not None:
            self.take_filter(f"id:{chosen.job_id}")

    def action_copy(self) -> None:
        if (chosen := self.selected) is not None:
            self.console.copy(str(chosen.job_id))


def _row(attempt: EndedAttempt, now: datetime) -> TableRow:
    started = attempt.started_at
    return TableRow(
        f"{attempt.job_id}/{attempt.attempt}/{attempt.state}",
        {
            "at": duration_cell(max(timedelta(), now - attempt.finished_at), "quiet"),
            "id": str(attempt.job_id),
            "state": sign_cell(_SYMBOLS.get(attempt.state, symbols.NOTHING), str(attempt.state)),
            "task": Cell(attempt.task, "strong"),
            "tries": Cell(f"{attempt.attempt}/{attempt.max_attempts}", "", attempt.attempt),
            "took": "" if started is None else duration_cell(max(timedelta(), attempt.finished_at - started)),
            "worker": Cell(attempt.worker_id or "", "quiet"),
            "error": "" if attempt.error is None else sanitize.line(masked(attempt.error), 200),
        },
        attempt,
    )
