"""Recurring tasks: known, next, last and missed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual import work
from textual.content import Content

from gw_core import CronItem, JobSpec
from gw_core.front_ends import QueueSnapshot, counted, describe_schedule, written
from gw_tui.actions import Action, Add, Forget
from gw_tui.data.source import DataSource, Query
from gw_tui.dialogs.choose import Choice
from gw_tui.dialogs.confirm import confirmed
from gw_tui.rules.recurring import CronStatus, Crontabs, Recurring, recurring
from gw_tui.screens.job_actions import AddJobMixin
from gw_tui.screens.list_screen import ListScreen
from gw_tui.screens.pause_actions import PauseMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.json_view import json_view
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, day_cell, duration_cell, sign_cell
from gw_tui.widgets.text_panel import TextPanel

_SYMBOLS: Final = {
    CronStatus.ON_TIME: symbols.OK,
    CronStatus.PAUSED: symbols.WARNING,
    CronStatus.MISSED: symbols.ALARM,
    CronStatus.NEW: symbols.WARNING,
    CronStatus.FOREIGN: symbols.UNKNOWN,
    CronStatus.UNKNOWN: symbols.NOTHING,
}
_MEANINGS: Final = {
    CronStatus.ON_TIME: "All due runs were added.",
    CronStatus.PAUSED: "No job of it is added. The runs of this time are skipped and not backfilled.",
    CronStatus.MISSED: "Due runs were not added: no worker ran this crontab at the time.",
    CronStatus.NEW: "Not registered yet: no worker has started with this crontab.",
    CronStatus.FOREIGN: "Not in the given crontab; another worker may run it.",
    CronStatus.UNKNOWN: "Give its crontab with --crontab to see when it is due.",
}

_REGISTERED_AGAIN: Final = (
    "It is still in the crontab: its worker registers it again at the next start, without backfill."
)
_FORGOTTEN: Final = {
    CronStatus.ON_TIME: _REGISTERED_AGAIN,
    CronStatus.PAUSED: "A worker that has it registers it again at the next start, without backfill. It stays paused.",
    CronStatus.MISSED: _REGISTERED_AGAIN,
    CronStatus.FOREIGN: (
        "A worker that has it in another crontab registers it again at the next start, without backfill."
    ),
    CronStatus.UNKNOWN: (
        "A worker that still has it in its crontab registers it again at the next start, without backfill."
    ),
    CronStatus.NEW: "",
}


@dataclass(frozen=True)
class CrontabsQuery(Query):
    """The recurring tasks; the file is read again each time."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    def ask(self, source: DataSource) -> Crontabs:
        return source.crontabs()


class CronScreen(PauseMixin, AddJobMixin, ListScreen[Crontabs, Recurring]):
    """The recurring tasks above, and below everything about the one under the cursor."""

    PAUSE_WORDS = "No further job of it is added until it is resumed. Runs in between are skipped and not backfilled."

    SCREEN_ID = "cron"
    TABLE = "crontabs"
    COLUMNS = (
        TableColumn("id", "recurring task", least=14, rank=9),
        TableColumn("course", "state", 13, rank=8),
        TableColumn("last", "last run", 12, right=True, rank=6),
        TableColumn("next", "next run", 10, right=True, rank=7),
        TableColumn("missed", "missed", 6, right=True, rank=5),
        TableColumn("fill", "backfill", 8, right=True, rank=4),
    )
    WIDE_COLUMNS = (
        *COLUMNS,
        TableColumn("task", "task", 16, rank=2),
        TableColumn("words", "when", least=16, rank=3),
    )
    EMPTY = "No recurring tasks"
    PREVIEW = "below"

    CSS = """
    CronScreen #below { height: 9; }
    CronScreen.-tall #crontabs { height: auto; max-height: 60%; }
    CronScreen.-tall #below { height: auto; min-height: 9; max-height: 40%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Recurring, ...] = ()

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> Query | None:
        return CrontabsQuery()

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        is_known = dict(snapshot.errors).keys().isdisjoint({"crontabs", "cron pauses"})
        if self.answer is not None and is_known:
            self.answer = Crontabs(known=snapshot.crontabs, items=self.answer.items)
            self.draw()

    # -- drawing ---------------------------------------------------------------------------------------------------

    def rows(self, known: Crontabs) -> Iterator[TableRow]:
        now = self.state.now
        self._rows = recurring(known.known, known.items, now)
        return (_row(each, now) for each in self._rows)

    def status(self, known: Crontabs) -> Iterator[str]:
        found = [row.course for row in self._rows]
        yield counted(len(found), "recurring task")
        yield from (f"{found.count(each)} {each}" for each in CronStatus if each in found)
        if known.items is None:
            yield "--crontab FILE shows when they are due"

    def preview(self) -> Content:
        if (row := self.selected) is None:
            return Content("")
        self.query_one("#below", TextPanel).border_title = Content(sanitize.line(row.identifier, 60))
        return _about(row, self.state.now)

    # -- commands --------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        if (row := self.selected) is not None:
            self.console.visit("jobs", f"task:{written(row.task)}")

    @work
    async def action_forget(self) -> None:
        row = self.selected
        if row is None:
            return
        if row.known_since is None:
            self.notify("Not registered in the database")
            return
        action = Forget(identifier=row.identifier)
        words = f"{_FORGOTTEN[row.course]}\nThis cannot be undone. Its jobs stay."
        if await confirmed(self.console, action, f"Forget {row.identifier}?", words, ok="Forget"):
            await self.action_runner.begin(action)
            self.ask()

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        row = self.selected
        found: list[tuple[Choice, Action]] = []
        if row is not None and row.item is not None:
            found.append((Choice("run", "run now", "add one job of it"), Add(spec=self._run_of(row.item))))
        if row is not None and row.known_since is not None:
            choice = Choice("forget", "forget", "forget it in the database")
            found.append((choice, Forget(identifier=row.identifier)))
        return found

    def _run_of(self, item: CronItem) -> JobSpec:
        return replace(item.job_spec(self.state.now, backfilled=False), run_at=None)

    def pause_target(self) -> str | None:
        return None if self.selected is None else f"cron:{self.selected.identifier}"

    def task_to_add(self) -> str:
        return "" if self.selected is None else self.selected.task

    @work
    async def action_run_now(self) -> None:
        row = self.selected
        if row is None:
            return
        if row.item is None:
            self.notify("Needs its crontab: start with --crontab FILE", severity="warning")
            return
        action = Add(spec=self._run_of(row.item))
        words = f"Adds a job of {sanitize.line(action.spec.task, 60)}, as the crontab would now."
        if await confirmed(self.console, action, f"Run {row.identifier} now?", words, ok="Run", destroys=False):
            self.action_runner.begin(action)


def _row(row: Recurring, now: datetime) -> TableRow:
    fill = None if row.item is None else row.item.fill
    return TableRow(
        row.identifier,
        {
            "id": Cell(row.identifier, "strong"),
            "course": sign_cell(_SYMBOLS[row.course], str(row.course)),
            "last": Cell("never", "quiet") if row.last_run is None else day_cell(row.last_run, now),
            "next": "" if row.next_run is None else _in(row.next_run - now),
            "missed": Cell(_missed(row), "error" if row.missed else "quiet", row.missed),
            "fill": "none" if fill == timedelta() else "" if fill is None else duration_cell(fill),
            "task": row.task,
            "words": "" if row.item is None else describe_schedule(row.item.schedule),
        },
        row,
    )


def _in(time: timedelta) -> Cell:
    return duration_cell(time, "", f"in {formatting.duration(time)}")


def _missed(row: Recurring) -> str:
    return "" if row.missed is None else f"{row.missed:,}{'+' * row.missed_is_bound}"


def _about(row: Recurring, now: datetime) -> Content:
    """Return everything about a recurring task."""
    lines: list[tuple[str, str]] = [("", _MEANINGS[row.course])]
    if (item := row.item) is not None:
        lines.append(("when", f"{describe_schedule(item.schedule)}   ({item.schedule})"))
        lines.append(("task", sanitize.line(item.task)))
        options = (
            ("queue", item.queue_name),
            ("key", item.job_key),
            ("prio", item.priority),
            ("max attempts", item.max_attempts),
            ("backfill", formatting.duration(item.fill) if item.fill else "none"),
        )
        given = ", ".join(f"{name} {sanitize.line(value)}" for name, value in options if value is not None)
        lines.append(("options", given))
        if item.payload:
            compact = " ".join(str(json_view(json.dumps(item.payload, ensure_ascii=False))).split())
            lines.append(("payload", sanitize.line(compact)))
    if row.pause is not None:
        lines.insert(1, ("pause", sanitize.line(row.pause.description, 120)))
    if row.known_since is not None:
        lines.append(("known", f"since {formatting.day(row.known_since, now)}"))
    return Content("\n").join(Content.assemble((f"{name:<9}" if name else "", "$quiet"), text) for name, text in lines)
