"""What each task does: its jobs by state, its failures, how long its jobs wait and run, and who knows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from gw_core import JobState
from gw_core.front_ends import STOPPED_AFTER, Count, PauseKind, counted, written
from gw_core.operations import Pause, QueueCounts, RunSeries, TaskLimit
from gw_tui.data.source import DataSource, Query, known
from gw_tui.rules import run_charts
from gw_tui.rules.alerts import is_failing
from gw_tui.rules.chart_series import HOUR_RANGE
from gw_tui.rules.task_info import TaskInfo, tasks_of
from gw_tui.screens.list_screen import ListScreen
from gw_tui.screens.pause_actions import LimitMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.bars import Bars
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, count_cell, duration_cell, sign_cell

SETTLE_SECONDS: Final = 0.2
"""The cursor rests so long on a task before its statistics are read: not for each row that it passes."""
UNKNOWN: Final = "counts are unknown now"
MINUTES: Final = 10
"""Failures are counted over this many minutes."""


@dataclass(frozen=True)
class TasksQuery(Query):
    """A sample of the jobs by task, and what workers recorded of one task."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    task: str | None = None

    def ask(self, source: DataSource) -> tuple[QueueCounts | None, RunSeries | None]:
        runs = None if self.task is None else known(partial(source.runs, run_charts.HOUR, run_charts.MINUTE, self.task))
        return known(source.statistics), runs


class TasksScreen(LimitMixin, ListScreen[QueueCounts, TaskInfo]):
    """The tasks that have jobs; `enter` lists the jobs of one."""

    SCREEN_ID = "tasks"
    TABLE = "tasks"
    COLUMNS = (
        TableColumn("task", "task", least=14, rank=9),
        TableColumn("ready", "ready", 8, right=True, rank=8),
        TableColumn("running", "running", 8, right=True, rank=6),
        TableColumn("scheduled", "later", 8, right=True, rank=5),
        TableColumn("waiting", "waiting", 8, right=True, rank=3),
        TableColumn("backoff", "backoff", 8, right=True, rank=7),
        TableColumn("failed", "failed", 8, right=True, rank=7),
        TableColumn("lately", "fails/min", 9, right=True, rank=5),
        TableColumn("wait", "waits", 7, right=True, rank=4),
        TableColumn("run", "runs", 7, right=True, rank=2),
        TableColumn("known_by", "known by", 12, right=True, rank=5),
    )
    EMPTY = "No tasks have jobs"

    def __init__(self) -> None:
        super().__init__()
        self._asked: str | None = None
        self._is_unknown = False  # the last counts could not be read
        self._runs: tuple[str | None, RunSeries | None] = (None, None)
        """A task, and what workers recorded of it."""

    def body(self) -> ComposeResult:
        yield from super().body()
        with Vertical(id="task-runs"):
            yield Static("", id="task-summary", markup=False)
            with Horizontal(classes="charts"):
                yield Bars("done", formatting.rate, id="task-done")
                yield Bars("failed", formatting.rate, short="fail", id="task-failures", classes="-failures")
                yield Bars("run p95", run_charts.run_time, short="p95", id="task-slow")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> TasksQuery:
        self._asked = self.table.highlighted if self.stands else None
        return TasksQuery(self._asked)

    def show_answer(self, query: Query, answer: object) -> None:
        match query, answer:
            case TasksQuery(task), (QueueCounts() | None as counts, RunSeries() | None as runs):
                # What was counted last stays, with its age.
                self._is_unknown, self._runs = counts is None, (task, runs)
                self.answer = self.answer if counts is None else counts
                self.failure = UNKNOWN if self.answer is None else ""
                self.draw()
                self._draw_runs()

    @on(KeyedTable.Highlighted)
    def _follow(self) -> None:
        """Ask about another task when the cursor has stopped on it."""
        self._draw_runs()
        self.set_timer(SETTLE_SECONDS, self._ask_about_highlighted)

    def _ask_about_highlighted(self) -> None:
        if self.stands and self.table.highlighted != self._asked:
            self.ask()

    def _draw_runs(self) -> None:
        """Draw what the task under the cursor did."""
        task, runs = self._runs
        name = self.table.highlighted
        is_asked = name is not None and task == name
        if name is None:
            words = ""
        elif not is_asked:
            words = "loading…"
        elif runs is None:
            words = "unknown: not recorded, not visible to this role, or not read in time"
        elif runs.points:
            words = f"last hour: {run_charts.summary(runs.total)}"
        else:
            words = "nothing recorded in the last hour"
        title = sanitize.line(f"{name or ''}  {words}", 200)
        self.query_one("#task-summary", Static).update(Content.styled(title, "$quiet"), layout=False)
        for chart, values_of in (
            ("done", run_charts.done),
            ("failures", run_charts.failures),
            ("slow", run_charts.slow_runs),
        ):
            values = None if not is_asked else () if runs is None else values_of(runs)
            self.query_one(f"#task-{chart}", Bars).draw(values, "1h", HOUR_RANGE.seconds)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def rows(self, known: QueueCounts) -> Iterator[TableRow] | None:
        if self.state.snapshot is None:
            return None
        paused, limited = self._pauses(), self._limits()
        now = self.state.now
        return (_row(each, now, paused.get(each.name), limited.get(each.name)) for each in self._tasks())

    def _pauses(self) -> dict[str, Pause]:
        """Return the pauses of tasks, by their names."""
        pauses = () if self.answer is None else self.answer.pauses
        return {each.target.name: each for each in pauses if each.target.kind is PauseKind.TASK}

    def _limits(self) -> dict[str, TaskLimit]:
        return {} if self.answer is None else {each.task: each for each in self.answer.limits}

    def _tasks(self) -> list[TaskInfo]:
        if self.answer is None or self.state.snapshot is None:
            return []
        found = (task for task in tasks_of(self.answer, self.state.snapshot) if any(_values(task)))
        return sorted(found, key=self._weight)

    def _weight(self, task: TaskInfo) -> tuple[bool, bool, int, str]:
        """Return the place of a task: those with a problem first, then those with the most ready jobs."""
        ready = task.jobs[JobState.READY].value
        limit = self._limits().get(task.name)
        is_kept = task.name in self._pauses() or (limit is not None and limit.is_full)
        has_problem = is_failing(task, self.state.now) or bool(ready and (task.is_unknown or is_kept))
        return not has_problem, not ready, -ready, task.name

    @property
    def has_warning(self) -> bool:
        return super().has_warning or self._is_unknown

    def status(self, known: QueueCounts) -> Iterator[str]:
        found = self._tasks()
        if self._is_unknown:
            yield UNKNOWN
        yield counted(len(found), "task")
        if unknown := sum(task.is_unknown for task in found):
            yield f"{unknown} unknown to every live worker"
        if (pause := self._pauses().get(self.table.highlighted or "")) is not None:
            yield sanitize.line(pause.description, 120)
        if (limit := self._limits().get(self.table.highlighted or "")) is not None:
            yield sanitize.line(f"limit: {limit.description}", 120)
        yield f"sampled {formatting.duration(max(timedelta(), self.state.now - known.at))} ago"

    # -- commands --------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        if (name := self.table.highlighted) is not None:
            self.console.visit("jobs", f"task:{written(name)}")

    def pause_target(self) -> str | None:
        return None if (name := self.table.highlighted) is None else f"task:{name}"

    def limit_target(self) -> tuple[str, str] | None:
        if (name := self.table.highlighted) is None:
            return None
        limit = self._limits().get(name)
        return name, "" if limit is None else limit.description


def _values(task: TaskInfo) -> Iterator[int]:
    return (count.value for count in task.jobs.values())


def _row(task: TaskInfo, now: datetime, pause: Pause | None, limit: TaskLimit | None) -> TableRow:
    return TableRow(
        task.name,
        {
            "task": Cell(task.name, "strong" if task.is_unknown else ""),
            **{state.value: count_cell(task.jobs[state], _role(task.jobs[state], state)) for state in task.jobs},
            "lately": _failures(task, now),
            "wait": _age(task.activity.due_since, now),
            "run": _age(task.activity.running_since, now),
            "known_by": _claimed_by(task, pause, limit),
        },
    )


def _failures(task: TaskInfo, now: datetime) -> Cell:
    """Return the failed attempts per minute, as recorded; those of jobs that wait for a retry until they are."""
    recorded, inferred = task.activity.recorded, task.activity.failed_lately
    if recorded is not None and now - recorded.last < STOPPED_AFTER:
        return Cell(f"{recorded.per_minute:.1f}", "failed", recorded.per_minute)
    if not is_failing(task, now):
        return Cell("")
    return Cell(f"~{inferred.value / MINUTES:.1f}", "failed", inferred.value / MINUTES)


def _claimed_by(task: TaskInfo, pause: Pause | None, limit: TaskLimit | None) -> Cell:
    """Return what keeps all workers from claiming jobs of the task, else who knows it."""
    if pause is not None:
        return sign_cell(symbols.WARNING, "paused")
    if limit is not None and limit.is_full:
        return sign_cell(symbols.WARNING, "at limit")
    return _known_by(task)


def _role(count: Count, state: JobState) -> str:
    return state.value if count.value else "quiet"


def _age(since: datetime | None, now: datetime) -> Cell | str:
    return "" if since is None else duration_cell(max(timedelta(), now - since))


def _known_by(task: TaskInfo) -> Cell:
    if task.known_by is None:
        return sign_cell(symbols.UNKNOWN, "unknown")
    if task.is_unknown:
        return sign_cell(symbols.ALARM, "no worker", 0)
    return Cell(counted(len(task.known_by), "worker"), "", len(task.known_by))
