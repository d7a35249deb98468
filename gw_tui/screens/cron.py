"""Recurring tasks: known, next, last and missed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gw_core import CronItem, JobSpec
from gw_core.crontab import describe_schedule
from gw_core.operations import QueueSnapshot
from gw_tui.actions.actions import Act, Add, Forget
from gw_tui.actions.batch import ActionBatch
from gw_tui.data.source import Crontabs, Question, Source
from gw_tui.dialogs.choose import Choice
from gw_tui.dialogs.confirm import Confirm
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.filter_language import quoted
from gw_tui.rules.recurring import CronStatus, Recurring, recurring
from gw_tui.screens.job_actions import AddJobMixin
from gw_tui.screens.jobs import show_jobs
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.json_view import json_view
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row
from gw_tui.widgets.text_panel import TextPanel

WIDE: Final = 100

_NARROW_COLUMNS: Final = (
    Column("id", "recurring task", least=14, rank=9),
    Column("course", "state", 13, rank=8),
    Column("last", "last run", 12, right=True, rank=6),
    Column("next", "next run", 10, right=True, rank=7),
    Column("missed", "missed", 6, right=True, rank=5),
    Column("fill", "backfill", 8, right=True, rank=4),
)
_WIDE_COLUMNS: Final = (
    *_NARROW_COLUMNS,
    Column("task", "task", 16, rank=2),
    Column("words", "when", least=16, rank=3),
)
_ROLES: Final = {
    CronStatus.ON_TIME: (symbols.DONE, "ready"),
    CronStatus.MISSED: (symbols.WARNING, "error"),
    CronStatus.NEW: (symbols.STATE_GLYPHS["scheduled"], "warning"),
    CronStatus.FOREIGN: ("?", "quiet"),
    CronStatus.UNKNOWN: (" ", "quiet"),
}
_MEANINGS: Final = {
    CronStatus.ON_TIME: "Every run that was due has been added.",
    CronStatus.MISSED: "Runs that were due have not been added: no worker runs this crontab, or none did at the time.",
    CronStatus.NEW: "The database has not heard of it yet: no worker has started with this crontab.",
    CronStatus.FOREIGN: "It is not in the crontab given; another worker may run it, or it may be a leftover.",
    CronStatus.UNKNOWN: "Without its crontab nobody can say when it is due; give one with --crontab.",
}

_MADE_ANEW: Final = (
    "The crontab has it still: its worker makes it known again at its next start, and makes up for nothing."
)
_FORGOTTEN: Final = {
    CronStatus.ON_TIME: _MADE_ANEW,
    CronStatus.MISSED: _MADE_ANEW,
    CronStatus.FOREIGN: (
        "It is not in the crontab given. A worker that has it in another makes it known again at its next start, and "
        "makes up for nothing."
    ),
    CronStatus.UNKNOWN: (
        "Nobody can say here whether a crontab has it still; a worker that has it makes it known again at its next "
        "start, and makes up for nothing."
    ),
    CronStatus.NEW: "",
}


@dataclass(frozen=True)
class CrontabsQuestion(Question):
    """The recurring tasks; the file is read anew each time."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    def ask(self, source: Source) -> Crontabs:
        """Return what the database knows, and what the crontab says."""
        return source.crontabs()


class CronScreen(AddJobMixin):
    """The recurring tasks above, and below everything about the one under the cursor."""

    PLACE = "cron"

    CSS = """
    CronScreen #line { height: 1; padding: 0 1; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    CronScreen #about { height: 9; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._crontabs: Crontabs | None = None
        self._rows: tuple[Recurring, ...] = ()
        self._trouble = ""

    def body(self) -> ComposeResult:
        """Lay out the tasks, and the pane below."""
        yield Static("", id="line", markup=False)
        yield KeyedTable(_NARROW_COLUMNS, empty="No recurring task is known.", id="crontabs")
        yield TextPanel("About it", id="about")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def question(self) -> Question | None:
        """Return the question about the recurring tasks."""
        return CrontabsQuestion()

    def show_answer(self, question: Question, answer: object) -> None:
        """Show the recurring tasks."""
        if isinstance(answer, Crontabs):
            self._crontabs, self._trouble = answer, ""
            self._draw()

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Take note of runs that were added meanwhile."""
        if self._crontabs is not None:
            self._crontabs = Crontabs(known=glance.crontabs, items=self._crontabs.items)
            self._draw()

    def show_time(self) -> None:
        """Let the next runs come nearer."""
        self._draw()

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say why there is no answer; a crontab that cannot be read is one."""
        self._trouble = sanitize.line(f"{trouble}: {sentence}", 200)
        self._draw()

    @on(KeyedTable.Highlighted)
    def _look_at_another(self) -> None:
        """Tell about the task that the cursor is on now."""
        self._draw_about()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def highlighted(self) -> Recurring | None:
        """The recurring task under the cursor."""
        key = self.query_one(KeyedTable).highlighted
        return next((row for row in self._rows if row.identifier == key), None)

    def _draw(self) -> None:
        if not self.stands:
            return
        if self._crontabs is not None:
            now = self.console.now
            self._rows = recurring(self._crontabs.known, self._crontabs.items, now)
            self.query_one(KeyedTable).apply(_row(each, now) for each in self._rows)
            self._draw_about()
        style = "$warning" if self._trouble else "$quiet"
        self.query_one("#line", Static).update(Content.styled(self._words(), style), layout=False)

    def _words(self) -> str:
        if self._trouble or self._crontabs is None:
            return self._trouble or "looking…"
        found = [row.course for row in self._rows]
        counts = [f"{found.count(each)} {each}" for each in CronStatus if each in found]
        words = [formatting.counted(len(found), "recurring task"), *counts]
        if self._crontabs.items is None:
            words.append("start with --crontab FILE to see when they are due")
        return " · ".join(words)

    def _draw_about(self) -> None:
        panel = self.query_one("#about", TextPanel)
        row = self.highlighted
        if row is None:
            panel.show(Content(""))
            return
        panel.border_title = Content(sanitize.line(row.identifier, 60))
        panel.show(_about(row, self.console.now))

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as there is room for."""
        super().on_resize(event)
        self.query_one(KeyedTable).set_columns(_WIDE_COLUMNS if event.size.width >= WIDE else _NARROW_COLUMNS)

    # -- commands --------------------------------------------------------------------------------------------------

    async def action_open(self) -> None:
        """Go to the jobs of the task."""
        if (row := self.highlighted) is not None:
            await show_jobs(self.console, f"task:{quoted(row.task)}")

    @work
    async def action_forget(self) -> None:
        """Have the database forget the recurring task, after a question."""
        row = self.highlighted
        if row is None:
            return
        if row.known_since is None:
            self.notify("The database does not know it; there is nothing to forget.")
            return
        act = Forget(identifier=row.identifier)
        words = f"{_FORGOTTEN[row.course]}\nThis cannot be undone; its jobs stay."
        question = Confirm(f"Forget {row.identifier}?", words, ok="Forget", act=act)
        if await self.app.push_screen_wait(question) is not None:
            self.console.deeds.begin(
                ActionBatch(done_words="forgotten", parts=(act,), thing="recurring task"), lambda _: self.ask()
            )

    def offered(self) -> Sequence[tuple[Choice, Act]]:
        """Return what can be done to the recurring task under the cursor."""
        row = self.highlighted
        found: list[tuple[Choice, Act]] = []
        if row is not None and row.item is not None:
            found.append((Choice("run", "run now", "add one job of it"), Add(spec=self._run_of(row.item))))
        if row is not None and row.known_since is not None:
            choice = Choice("forget", "forget", "let the database forget it")
            found.append((choice, Forget(identifier=row.identifier)))
        return found

    def _run_of(self, item: CronItem) -> JobSpec:
        return replace(item.job_spec(self.console.now, backfilled=False), run_at=None)

    def task_to_add(self) -> str:
        """Return the task under the cursor."""
        return "" if self.highlighted is None else self.highlighted.task

    @work
    async def action_run_now(self) -> None:
        """Add one run of the recurring task now, after a question."""
        row = self.highlighted
        if row is None:
            return
        if row.item is None:
            self.notify("Its options stand in the crontab; start with --crontab FILE.", severity="warning")
            return
        act = Add(spec=self._run_of(row.item))
        words = f"A job of {sanitize.line(act.spec.task, 60)} is added, as its crontab would at this moment."
        question = Confirm(f"Run {row.identifier} now?", words, ok="Run", destroys=False, act=act)
        if await self.app.push_screen_wait(question) is not None:
            self.console.deeds.begin(ActionBatch(done_words="added", parts=(act,)))

    def action_copy(self) -> None:
        """Copy the identifier."""
        if (row := self.highlighted) is not None:
            self.console.copy(row.identifier)


def _row(row: Recurring, now: datetime) -> Row:
    sign, role = _ROLES[row.course]
    fill = None if row.item is None else row.item.fill
    return Row(
        row.identifier,
        {
            "id": Cell(row.identifier, "strong"),
            "course": Cell(f"{sign} {row.course}", role),
            "last": Cell("never" if row.last_run is None else formatting.day(row.last_run, now), "quiet"),
            "next": "" if row.next_run is None else f"in {formatting.span(row.next_run - now)}",
            "missed": Cell(_missed(row), "error" if row.missed else "quiet"),
            "fill": "none" if fill == timedelta() else "" if fill is None else formatting.span(fill),
            "task": row.task,
            "words": "" if row.item is None else describe_schedule(row.item.schedule),
        },
    )


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
            ("backfill", formatting.span(item.fill) if item.fill else "none"),
        )
        given = ", ".join(f"{name} {sanitize.line(value)}" for name, value in options if value is not None)
        lines.append(("options", given))
        if item.payload:
            compact = " ".join(str(json_view(json.dumps(item.payload, ensure_ascii=False))).split())
            lines.append(("payload", sanitize.line(compact)))
    if row.known_since is not None:
        lines.append(("known", f"since {formatting.day(row.known_since, now)}"))
    return Content("\n").join(Content.assemble((f"{name:<9}" if name else "", "$quiet"), text) for name, text in lines)
