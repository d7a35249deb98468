"""The overview: states, rates, waiting jobs by priority, and alerts by their causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal

from gw_core import JobState
from gw_core.front_ends import Count
from gw_tui.actions.actions import CountExactly
from gw_tui.data.source import FRESH, DataSource, Query, known_runs
from gw_tui.rules import run_charts
from gw_tui.rules.alerts import Alert, AlertInput, QueueSample, Severity, alerts, drain_time
from gw_tui.rules.chart_series import HOUR_RANGE, LENGTH, TIME_RANGES, TimeRange
from gw_tui.rules.commands import SCREENS
from gw_tui.rules.connection_state import ConnectionPhase, FailureKind
from gw_tui.rules.worker_health import aged
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, symbols
from gw_tui.widgets.bars import Bars
from gw_tui.widgets.keyed_table import Cell, KeyedTable, TableColumn, TableRow, sign_cell
from gw_tui.widgets.tiles import Tile

if TYPE_CHECKING:
    from gw_core.front_ends import QueueSnapshot
    from gw_core.operations import QueueCounts, RunSeries

PRIORITIES: Final = (
    TableColumn("priority", "prio", 6, right=True),
    TableColumn("ready", "ready", 7, right=True),
    TableColumn("age", "oldest", 7, right=True),
    TableColumn("task", "task"),
    TableColumn("next", "next due", 9, right=True, rank=3),
)
ALERTS: Final = (
    TableColumn("what", "what"),
    TableColumn("age", "age", 7, right=True),
    TableColumn("go", "go", 2, rank=3),
)
TILES: Final = {
    "ready": "state:ready",
    "running": "state:running",
    "waiting": "state:scheduled,backoff",
    "failed": "state:failed",
}
"""What a click on a tile lists."""
GO: Final = {screen.id: screen.key for screen in SCREENS}


@dataclass(frozen=True)
class OverviewQuery(Query):
    """A sample of the table by state and task, and what changes slowly."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    with_held: bool = False
    """Also ask what waits in locked queues: worth it while a worker is gone."""
    step: timedelta = timedelta(seconds=HOUR_RANGE.seconds)
    """The time of one column of the charts."""

    def ask(self, source: DataSource) -> QueueSample:
        return QueueSample(
            held=source.queues(only_locked=True) if self.with_held else (),
            runs=known_runs(source, self.step * LENGTH, self.step),
            statistics=source.statistics(),
            crontabs=source.crontabs(),
            findings=source.findings(),
        )


class OverviewScreen(ConsoleScreen):
    """The first screen."""

    SCREEN_ID = "overview"
    AUTO_FOCUS = "#alerts"

    def __init__(self) -> None:
        super().__init__()
        self._sample = QueueSample()
        self._exact: QueueCounts | None = None
        self._alerts: dict[str, Alert] = {}
        self._range = 0
        self._has_dead = False

    def body(self) -> ComposeResult:
        with Horizontal(id="tiles"):
            yield Tile("ready", id="ready")
            yield Tile("running", id="running")
            yield Tile("scheduled", "backoff", id="waiting")
            yield Tile("failed", id="failed")
        with Horizontal(id="charts"):
            yield Bars("done", formatting.rate, id="done")
            yield Bars("failed", formatting.rate, id="failures", classes="-failures")
            yield Bars("run p95", run_charts.run_time, id="runs")
            yield Bars("added", formatting.rate, id="added")
            yield Bars("backlog age", _seconds, id="age")
        with Container(id="lists"):
            alerts = KeyedTable(ALERTS, empty="No alerts", id="alerts", classes="panel", starts_first=True)
            alerts.border_title = "Alerts"
            yield alerts
            priorities = KeyedTable(PRIORITIES, empty="No waiting jobs", id="priorities", classes="panel")
            priorities.border_title = "Next jobs, by priority"
            yield priorities

    # -- queries and answers --------------------------------------------------------------------------------------

    def current_query(self) -> Query:
        return OverviewQuery(with_held=self._has_dead, step=timedelta(seconds=self._long_range.seconds))

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        if self.is_mounted:
            has_dead = any(worker.is_stale for worker in snapshot.workers)
            if has_dead is not self._has_dead:
                self._has_dead = has_dead
                self.ask()
            self._draw(snapshot)

    def show_time(self) -> None:
        snapshot = self.console.snapshot
        if snapshot is not None and self.is_mounted and self.console.phase is not ConnectionPhase.LIVE:
            self._draw(_aged(snapshot, self.console.now))

    def show_answer(self, query: Query, answer: object) -> None:
        if isinstance(answer, QueueSample):
            self._sample = answer
            if self.console.snapshot is not None:
                self.show_snapshot(self.console.snapshot)

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        self.query_one("#alerts").border_subtitle = f"sample: {failure}"

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self, snapshot: QueueSnapshot) -> None:
        self._draw_tiles(snapshot)
        self._draw_charts(snapshot)
        self.query_one("#priorities", KeyedTable).apply(_priorities(snapshot))
        self._draw_alerts(snapshot)

    def _draw_tiles(self, snapshot: QueueSnapshot) -> None:
        ready = self._count(JobState.READY, snapshot)
        self._tile("ready", ready, self._about_ready(snapshot, ready))
        stale = sum(worker.is_stale for worker in snapshot.workers)
        alive = formatting.counted(len(snapshot.workers) - stale, "worker")
        alive = f"{len(snapshot.workers) - stale} live · {stale} stale" if stale else alive
        if snapshot.locks_age is not None and snapshot.locks_age > FRESH:
            alive = f"{formatting.duration(snapshot.locks_age)} ago · {alive}"
        self._tile(
            "running",
            snapshot.running or self._count(JobState.RUNNING, snapshot),
            alive,
        )
        later = [self._count(state, snapshot) for state in (JobState.SCHEDULED, JobState.BACKOFF)]
        due = snapshot.next_due_at
        self.query_one("#waiting", Tile).show(
            "  ".join(_shown(count) for count in later),
            next_due(due, snapshot.at),
        )
        total = "" if snapshot.total is None else f"of {formatting.count(snapshot.total)} jobs"
        self._tile("failed", snapshot.failed or self._count(JobState.FAILED, snapshot), total)

    def _about_ready(self, snapshot: QueueSnapshot, ready: Count | None) -> str:
        if (age := snapshot.backlog_age) is None:
            return "no ready jobs"
        values = self.console.history.done.values(TIME_RANGES[0], snapshot.at.timestamp())
        known = [value for value in values if value is not None]
        left = drain_time(ready, sum(known) / len(known)) if ready is not None and known else None
        return f"oldest {formatting.duration(age)}" + ("" if left is None else f", ~{formatting.duration(left)} left")

    def _tile(self, name: str, count: Count | None, about: str) -> None:
        self.query_one(f"#{name}", Tile).show(_shown(count), about)

    def _count(self, state: JobState, snapshot: QueueSnapshot) -> Count | None:
        """Return the best number known: exact ones first, then the sample's; None where the role sees no rows."""
        if snapshot.schema.rows_hidden or "priorities" in dict(snapshot.errors):
            return None
        if state is JobState.READY and snapshot.ready.quality.value == "exact":
            return snapshot.ready
        if self._exact is not None and snapshot.at - self._exact.at < timedelta(seconds=10):
            return self._exact.states[state]
        if self._sample.statistics is not None:
            return self._sample.statistics.states[state]
        return snapshot.ready if state is JobState.READY else None

    def _draw_charts(self, snapshot: QueueSnapshot) -> None:
        history, reach, second = self.console.history, TIME_RANGES[self._range], snapshot.at.timestamp()
        runs, long_range = self._runs, self._long_range
        for name, series in (("done", history.done), ("added", history.added), ("age", history.age)):
            values = series.values(reach, second)
            if name == "done" and runs is not None and reach is long_range:
                values = [
                    seen if counted is None else counted
                    for seen, counted in zip(values, run_charts.done(runs), strict=True)
                ]
            self._chart(name, values, reach)
        if runs is not None:
            self._chart("failures", run_charts.failures(runs), long_range)
            self._chart("runs", run_charts.slow_runs(runs), long_range)

    def _chart(self, name: str, values: Sequence[float | None], reach: TimeRange) -> None:
        self.query_one(f"#{name}", Bars).draw(values, reach.name, reach.seconds)

    @property
    def _long_range(self) -> TimeRange:
        """What workers record is drawn for an hour, or for the longer range chosen."""
        chosen = TIME_RANGES[self._range]
        return chosen if chosen.seconds > HOUR_RANGE.seconds else HOUR_RANGE

    @property
    def _runs(self) -> RunSeries | None:
        """What workers recorded, in the steps of the range chosen; None while it is not known."""
        runs = self._sample.runs
        return runs if runs is not None and runs.step.total_seconds() == self._long_range.seconds else None

    def _draw_alerts(self, snapshot: QueueSnapshot) -> None:
        known = AlertInput(
            snapshot=snapshot,
            sample=self._sample,
            ages=self.console.history.age.values(TIME_RANGES[0], snapshot.at.timestamp()),
            is_listening=self.console.is_listening,
        )
        self._alerts = {alert.key: alert for alert in alerts(known)}
        self.query_one("#alerts", KeyedTable).apply(
            TableRow(key, {"what": _words(alert), "age": formatting.duration(alert.age), "go": GO[alert.place]})
            for key, alert in self._alerts.items()
        )

    # -- commands --------------------------------------------------------------------------------------------------

    def on_tile_clicked(self, event: Tile.Clicked) -> None:
        self.console.visit("jobs", TILES[str(event.tile.id)])

    def action_open(self) -> None:
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        if table.id == "priorities":
            self.console.visit("jobs", f"state:ready priority:{table.highlighted}")
        elif (alert := self._alerts.get(table.highlighted)) is not None:
            self.console.visit(alert.place, alert.filter)

    def action_copy(self) -> None:
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        alert = self._alerts.get(table.highlighted) if table.id == "alerts" else None
        priorities = () if self.console.snapshot is None else self.console.snapshot.priorities
        tasks = {str(head.priority): head.oldest_task for head in priorities}
        text = alert.what if alert is not None else tasks.get(table.highlighted)
        if text:
            self.console.copy(text)

    @work
    async def action_count_exactly(self) -> None:
        self.notify("Counting …")
        outcome = await self.console.submit(CountExactly())
        if outcome.result is None or outcome.result.statistics is None:
            self.notify(outcome.reason, severity="warning")
            return
        self._exact = outcome.result.statistics
        self.notify("Count complete")
        if self.console.snapshot is not None:
            self.show_snapshot(self.console.snapshot)

    def action_range_shorter(self) -> None:
        self._set_range(self._range - 1)

    def action_range_longer(self) -> None:
        self._set_range(self._range + 1)

    def _set_range(self, reach: int) -> None:
        before = self._long_range
        self._range = min(max(0, reach), len(TIME_RANGES) - 1)
        if self._long_range is not before:
            self.ask()
        if self.console.snapshot is not None:
            self._draw_charts(self.console.snapshot)


def _aged(snapshot: QueueSnapshot, now: datetime) -> QueueSnapshot:
    """Return what was known then as it looks by now: ages have gone on."""
    workers = [aged(worker, now - snapshot.at) for worker in snapshot.workers]
    return replace(snapshot, at=now, workers=workers)


def _priorities(snapshot: QueueSnapshot) -> Iterator[TableRow]:
    for head in snapshot.priorities:
        age = None if head.oldest_due_at is None else snapshot.at - head.oldest_due_at
        yield TableRow(
            str(head.priority),
            {
                "priority": str(head.priority),
                "ready": Cell(formatting.count(head.ready), "ready" if head.ready.value else "quiet"),
                "age": formatting.duration(age),
                "task": head.oldest_task or "",
                "next": Cell(
                    "" if head.next_due_at is None else formatting.until(head.next_due_at, snapshot.at), "quiet"
                ),
            },
        )


def _words(alert: Alert) -> Cell:
    return sign_cell(symbols.ALARM if alert.severity is Severity.CRITICAL else symbols.WARNING, alert.what)


def _shown(count: Count | None) -> str:
    return formatting.NOTHING if count is None else formatting.count(count)


def next_due(due: datetime | None, now: datetime) -> str:
    """Return when the next scheduled job is due; a job that is due this second waits for no time worth a number."""
    if due is None:
        return "none scheduled"
    return "next due now" if abs(due - now) < timedelta(seconds=1) else f"next due {formatting.until(due, now)}"


def _seconds(value: float) -> str:
    return formatting.duration(timedelta(seconds=value))
