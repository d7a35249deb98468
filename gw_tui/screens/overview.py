"""The overview: states, rates, waiting jobs by priority, and alerts by their causes."""

# Long: one screen of several panels, all drawn from one snapshot.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from msgspec import structs
from textual import work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content

from gw_core import JobState, Selection
from gw_core.front_ends import (
    BackendSession,
    Count,
    FoundJob,
    Quality,
    counted,
    written,
)
from gw_tui.actions import CountExactly
from gw_tui.data.source import FRESH, DataSource, Query, known
from gw_tui.rules import run_charts
from gw_tui.rules.alerts import Alert, AlertInput, QueueSample, Severity, alerts, drain_time, knows_workers
from gw_tui.rules.chart_series import HOUR_RANGE, LENGTH, TIME_RANGES, TimeRange
from gw_tui.rules.commands import BY_ID, SCREEN_BY_ID, SCREENS
from gw_tui.rules.connection_state import ConnectionPhase, FailureKind
from gw_tui.rules.error_groups import ErrorGroup, error_groups
from gw_tui.rules.worker_health import aged
from gw_tui.screens.pause_actions import LimitMixin, SessionMixin
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.bars import Bars
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, age_cell
from gw_tui.widgets.text_panel import TextPanel
from gw_tui.widgets.tiles import Tile

if TYPE_CHECKING:
    from gw_core.front_ends import QueueSize, QueueSnapshot
    from gw_core.operations import QueueCounts, RunSeries

T = TypeVar("T")

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
QUEUES: Final = (
    TableColumn("queue", "queue"),
    TableColumn("due", "due", 7, right=True),
    TableColumn("unclaimed", "unclaimed", 9, right=True, rank=3),
)
ERRORS: Final = (
    TableColumn("task", "task", 16, rank=8),
    TableColumn("error", "error"),
    TableColumn("last", "last", 7, right=True, rank=3),
)
ACTS: Final = {
    "pause": "pauses or resumes it",
    "unlock": "releases its locks",
    "end_session": "ends the session",
    "limit": "changes its limit",
}
"""The commands that end an alert where it stands, in words."""
WHEN_EMPTY: Final = {
    "alerts": "No alerts",
    "priorities": "No waiting jobs",
    "largest": "No jobs in named queues",
    "last-errors": "No errors",
}
"""What an empty box shows whose rows were read."""
MAX_LISTED: Final = 6
"""Rows of a box beside the alerts."""
MAX_ERRORS: Final = 100
ERRORS_TIMEOUT: Final = timedelta(milliseconds=20)
MAX_SIZED: Final = 1_000_000
"""With more jobs, the queues are not counted here."""
TILES: Final = {
    "ready": "state:ready",
    "running": "state:running",
    "later": "state:scheduled,waiting,backoff",
    "failed": "state:failed",
}
"""What a click on a tile lists."""
BLOCKED_FOR: Final = 2
"""After this many snapshots with blocked sessions, the overview asks who blocks them."""
GO: Final = {screen.id: screen.key for screen in SCREENS}


@dataclass(frozen=True)
class OverviewQuery(Query):
    """A sample of the table by state and task, and what changes slowly."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    is_small: bool = True
    """Whether the table is searched for errors, and every named queue counted: where that takes the server little."""
    with_held: bool = False
    """Also ask what waits in locked queues: worth it while a worker is gone."""
    step: timedelta = timedelta(seconds=HOUR_RANGE.seconds)
    """The time of one column of the charts."""

    def ask(self, source: DataSource) -> QueueSample:
        return QueueSample.of({name: known(ask) for name, ask in self._parts(source)})

    def _parts(self, source: DataSource) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what to ask, under the name that it has in the sample."""
        if self.is_small:
            yield "sizes", source.queue_sizes
        yield "errors", partial(self._errors, source)
        if self.with_held:
            yield "held", partial(source.queues, only_locked=True)
        yield "runs", partial(source.runs, self.step * LENGTH, self.step)
        yield "statistics", source.statistics
        yield "crontabs", source.crontabs
        yield "findings", source.findings

    def _errors(self, source: DataSource) -> Sequence[FoundJob] | None:
        """Return some jobs with errors, to show why: the latest permanent failures, and a few that wait for a retry.

        None is unknown: nothing was found, and not all of it could be read. No index has the jobs that wait for a
        retry. In a large table only the jobs that come due next are searched, because most retries come soon.
        """
        ended, retried = [JobState.FAILED], [JobState.BACKOFF]
        searched = retried if self.is_small else [*retried, JobState.SCHEDULED, JobState.WAITING]
        pages = [
            known(partial(source.page, Selection.of(state=states), limit=MAX_ERRORS, timeout=ERRORS_TIMEOUT))
            for states in (ended, searched)
        ]
        found = [job for page in pages if page is not None for job in page.jobs if job.state in (*ended, *retried)]
        was_read = all(page is not None and (page.is_full or page.after is None) for page in pages)
        return found if found or was_read else None


@dataclass(frozen=True)
class BlockedQuery(OverviewQuery):
    """Who blocks whom; and whatever else can be read."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    def _parts(self, source: DataSource) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "waits", source.blockages
        yield from super()._parts(source)


class OverviewScreen(LimitMixin, WorkerActionsMixin, SessionMixin):
    """The first screen: the state of the queue, its alerts, and everything about the selected one."""

    SCREEN_ID = "overview"
    AUTO_FOCUS = "#alerts"

    def __init__(self) -> None:
        super().__init__()
        self._sample = QueueSample()
        self._exact: QueueCounts | None = None
        self._alerts: dict[str, Alert] = {}
        self._groups: dict[str, ErrorGroup] = {}
        self._range = 0
        self._asked: Query | None = None
        self._has_dead = False
        self._unread = "loading…"  # what a box shows whose rows are not known
        self._noted = ""
        self._blocked_for = 0  # snapshots in a row that found blocked sessions

    def body(self) -> ComposeResult:
        with Horizontal(id="tiles"):
            yield Tile("ready", id="ready")
            yield Tile("running", id="running")
            yield Tile("scheduled", "backoff", id="later")
            yield Tile("failed", id="failed")
        with Horizontal(id="charts"):
            yield Bars("done", formatting.rate, id="done")
            yield Bars("failed", formatting.rate, short="fail", id="failures", classes="-failures")
            yield Bars("run p95", run_charts.run_time, short="p95", id="runs")
            yield Bars("added", formatting.rate, id="added")
            yield Bars("backlog age", _seconds, short="age", id="age")
        with Container(id="lists"):
            with Vertical(id="left"):
                yield _panel("Alerts", KeyedTable(ALERTS, id="alerts", starts_first=True))
                yield TextPanel("Selected alert", id="alert")
            with Vertical(id="right"):
                yield _panel("Next jobs, by priority", KeyedTable(PRIORITIES, id="priorities"))
                yield _panel("Largest queues", KeyedTable(QUEUES, id="largest"))
                yield _panel("Last errors", KeyedTable(ERRORS, id="last-errors"))

    # -- queries and answers --------------------------------------------------------------------------------------

    def current_query(self) -> Query:
        self._asked = self._query()
        return self._asked

    def _query(self) -> Query:
        kind = BlockedQuery if self._blocked_for >= BLOCKED_FOR else OverviewQuery
        snapshot = self.state.snapshot
        is_small = snapshot is not None and snapshot.total is not None and snapshot.total.value <= MAX_SIZED
        step = timedelta(seconds=self._long_range.seconds)
        return kind(is_small=is_small, with_held=self._has_dead, step=step)

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        if self.is_mounted:
            self._has_dead = any(worker.is_stale for worker in snapshot.workers)
            # Sessions of a busy database wait for each other now and then; a snapshot without answers waits itself.
            self._blocked_for = 0 if not snapshot.blocked else BLOCKED_FOR if snapshot.errors else self._blocked_for + 1
            if self._query() != self._asked:
                self.ask()
            self._draw(snapshot)

    def show_time(self) -> None:
        snapshot = self.state.snapshot
        if snapshot is not None and self.is_mounted and self.state.phase is not ConnectionPhase.LIVE:
            self._draw(_aged(snapshot, self.state.now))

    def show_answer(self, query: Query, answer: object) -> None:
        if isinstance(answer, QueueSample):
            # What a lock hides is as it was; what takes too long is unknown.
            is_blocked = answer.waits is not None
            self._sample = answer.with_missing_of(self._sample) if is_blocked else answer
            self._unread = "unknown"
            self._note(f"unknown now: {', '.join(answer.unknown)}" if answer.unknown else "")
            if self.state.snapshot is not None:
                self.show_snapshot(self.state.snapshot)

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        self._unread = "unknown"
        self._note(f"sample: {failure}")

    def _note(self, words: str) -> None:
        """Show below the alerts why some of them may be missing."""
        if self.stands and words != self._noted:
            self._noted = words
            self.query_one("#alerts").border_subtitle = words

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self, snapshot: QueueSnapshot) -> None:
        self._draw_tiles(snapshot)
        self._draw_charts(snapshot)
        self._draw_alerts(snapshot)
        self._show("priorities", _priorities(snapshot), is_known=snapshot.knows_waiting)
        sizes, errors = self._sample.sizes, self._sample.errors
        self._show("largest", (_size(each) for each in (sizes or ())[:MAX_LISTED]), is_known=sizes is not None)
        groups = sorted(error_groups(errors or ()), key=lambda each: each.last, reverse=True)
        self._groups = {each.key: each for each in groups[:MAX_LISTED]}
        shown = (_error(each, self.state.now) for each in self._groups.values())
        self._show("last-errors", shown, is_known=errors is not None)

    def _show(self, name: str, rows: Iterable[TableRow], *, is_known: bool) -> None:
        table = self.query_one(f"#{name}", KeyedTable)
        table.say_when_empty(WHEN_EMPTY[name] if is_known else self._unread)
        table.apply(rows)

    def _draw_tiles(self, snapshot: QueueSnapshot) -> None:
        ready = self._count(JobState.READY, snapshot)
        self._tile("ready", ready, self._about_ready(snapshot, ready))
        alive = _workers(snapshot)
        if snapshot.locks_age is not None and snapshot.locks_age > FRESH:
            alive = f"{formatting.duration(snapshot.locks_age)} ago · {alive}"
        self._tile(
            "running",
            snapshot.running or self._count(JobState.RUNNING, snapshot),
            alive,
        )
        later = [self._count(state, snapshot) for state in (JobState.SCHEDULED, JobState.BACKOFF)]
        due = next_due(snapshot.next_due_at, snapshot.at) if snapshot.knows_waiting else "unknown"
        waiting = self._count(JobState.WAITING, snapshot)
        about = f"{due}, {formatting.count(waiting)} waiting" if waiting and waiting.value else due
        self.query_one("#later", Tile).show([_shown(count) for count in later], about)
        self._tile("failed", snapshot.failed or self._count(JobState.FAILED, snapshot), self._total(snapshot))

    def _total(self, snapshot: QueueSnapshot) -> str:
        """Return how many jobs there are: never fewer than the tiles count."""
        if snapshot.total is None:
            return ""
        known = self._sample.statistics
        total = snapshot.total if known is None or known.total.quality is Quality.ESTIMATE else known.total
        counts = [self._count(state, snapshot) for state in JobState]
        least = sum(count.value for count in counts if count is not None)
        return f"of {formatting.count(total if total.value >= least else Count(least, Quality.AT_LEAST))} jobs"

    def _about_ready(self, snapshot: QueueSnapshot, ready: Count | None) -> str:
        if not snapshot.knows_waiting:
            return "unknown"
        if (age := snapshot.backlog_age) is None:
            return "no ready jobs"
        values = self.state.history.done.values(TIME_RANGES[0], snapshot.at.timestamp())
        known = [value for value in values if value is not None]
        left = drain_time(ready, sum(known) / len(known)) if ready is not None and known else None
        return f"oldest {formatting.duration(age)}" + ("" if left is None else f", ~{formatting.duration(left)} left")

    def _tile(self, name: str, count: Count | None, about: str) -> None:
        self.query_one(f"#{name}", Tile).show([_shown(count)], about)

    def _count(self, state: JobState, snapshot: QueueSnapshot) -> Count | None:
        """Return the best number known: exact ones first, then the sample's; None where the role sees no rows."""
        if not snapshot.knows_waiting:
            return None
        if state is JobState.READY and snapshot.ready.quality.value == "exact":
            return snapshot.ready
        if self._exact is not None and snapshot.at - self._exact.at < timedelta(seconds=10):
            return self._exact.states.get(state)
        if self._sample.statistics is not None:
            return self._sample.statistics.states.get(state)
        return snapshot.ready if state is JobState.READY else None

    def _draw_charts(self, snapshot: QueueSnapshot) -> None:
        history, reach, second = self.state.history, TIME_RANGES[self._range], snapshot.at.timestamp()
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
        elif self._sample.asked and self._sample.runs is None:
            for name in ("failures", "runs"):
                self._chart(name, (), long_range)

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
            is_listening=self.state.is_listening,
        )
        self._alerts = {alert.key: alert for alert in alerts(known)}
        rows = (_alert(key, alert) for key, alert in self._alerts.items())
        self._show("alerts", rows, is_known=bool(self._sample.asked) and not self._noted)
        self._draw_alert()
        self.refresh_bindings()

    def _draw_alert(self) -> None:
        """Draw everything about the selected alert: its evidence, its age, whom it affects, and what ends it."""
        panel = self.query_one("#alert", TextPanel)
        panel.show(Content("") if (alert := self.alert) is None else self._about(alert))

    def _about(self, alert: Alert) -> Content:
        jobs = {} if self._sample.statistics is None else self._sample.statistics.tasks.get(alert.task, {})
        states = ", ".join(f"{formatting.count(count)} {state}" for state, count in jobs.items() if count.value)
        errors = [each.job.last_error for each in self._sample.errors or () if each.job.task == alert.task]
        first = next((line for line in (errors[0] or "").splitlines() if line.strip()), "") if errors else ""
        key = BY_ID[alert.act].keys[0] + f" {ACTS[alert.act]}   " if alert.act else ""
        opens = SCREEN_BY_ID[alert.place].title
        facts = (
            ("do", f"{key}enter opens {opens}"),
            ("or", alert.remedy),
            ("error", masked(first)),
            ("jobs", states),
            ("what", alert.what),
            ("fact", alert.because),
        )
        lines = [Content.assemble((f"{name:<6}", "$quiet"), sanitize.line(text, 300)) for name, text in facts if text]
        return Content("\n").join(lines)

    # -- what the selected alert acts on -----------------------------------------------------------------------------

    @property
    def alert(self) -> Alert | None:
        """The selected alert."""
        return self._alerts.get(self.query_one("#alerts", KeyedTable).highlighted or "") if self.stands else None

    def on_keyed_table_highlighted(self) -> None:
        super().on_keyed_table_highlighted()
        if self.stands:
            self._draw_alert()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ACTS and (self.alert is None or self.alert.act != action):
            return False  # it would not end the selected alert
        return super().check_action(action, parameters)

    def pause_target(self) -> str | None:
        return None if self.alert is None else self.alert.target

    def limit_target(self) -> tuple[str, str] | None:
        if self.alert is None or self._sample.statistics is None:
            return None
        limits = {each.task: each.description for each in self._sample.statistics.limits}
        return self.alert.target, limits.get(self.alert.target, "")

    def holder(self) -> str | None:
        return None if self.alert is None else self.alert.target

    def session_target(self) -> BackendSession | None:
        sessions = () if self._sample.waits is None else self._sample.waits.blockers
        target = None if self.alert is None else self.alert.target
        return next((each for each in sessions if str(each.pid) == target), None)

    # -- commands --------------------------------------------------------------------------------------------------

    def on_tile_clicked(self, event: Tile.Clicked) -> None:
        self.console.visit("jobs", TILES[str(event.tile.id)])

    def action_open(self) -> None:
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        if table.id == "priorities":
            self.console.visit("jobs", f"state:ready priority:{table.highlighted}")
        elif table.id == "largest":
            self.console.visit("jobs", f"queue:{written(table.highlighted)}")
        elif table.id == "last-errors":
            self.console.visit("jobs", self._groups[table.highlighted].selection)
        elif (alert := self._alerts.get(table.highlighted)) is not None:
            self.console.visit(alert.place, alert.filter)

    def action_copy(self) -> None:
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        alert = self._alerts.get(table.highlighted) if table.id == "alerts" else None
        priorities = () if self.state.snapshot is None else self.state.snapshot.priorities
        tasks = {str(head.priority): head.oldest_task for head in priorities}
        text = alert.what if alert is not None else tasks.get(table.highlighted, table.highlighted)
        if text:
            self.console.copy(text)

    @work
    async def action_count_exactly(self) -> None:
        self.notify("Counting …")
        outcome = await self.action_runner.submit(CountExactly())
        if outcome.result.statistics is None:
            self.notify(outcome.reason, severity="warning")
            return
        self._exact = outcome.result.statistics
        self.notify("Count complete")
        if self.state.snapshot is not None:
            self.show_snapshot(self.state.snapshot)

    def action_range_shorter(self) -> None:
        self._set_range(self._range - 1)

    def action_range_longer(self) -> None:
        self._set_range(self._range + 1)

    def _set_range(self, reach: int) -> None:
        before = self._long_range
        self._range = min(max(0, reach), len(TIME_RANGES) - 1)
        if self._long_range is not before:
            self.ask()
        if self.state.snapshot is not None:
            self._draw_charts(self.state.snapshot)


def _aged(snapshot: QueueSnapshot, now: datetime) -> QueueSnapshot:
    """Return what was known then as it looks by now: ages have gone on."""
    workers = [aged(worker, now - snapshot.at) for worker in snapshot.workers]
    return structs.replace(snapshot, at=now, workers=workers)


def _workers(snapshot: QueueSnapshot) -> str:
    """Return how many workers there are; those without heartbeats are known by their locks alone."""
    if not knows_workers(snapshot):
        return "workers unknown"
    live = [worker for worker in snapshot.workers if not worker.is_stale]
    beating = sum(worker.has_heartbeat for worker in live)
    # Stale ones first: the end of the line is cut in a narrow terminal.
    more = [(len(snapshot.workers) - len(live), "stale"), (len(live) - beating, "unknown")]
    parts = [f"{count} {words}" for count, words in more if count]
    return " · ".join([f"{beating} live", *parts]) if parts else counted(beating, "worker")


def _panel(title: str, table: KeyedTable) -> KeyedTable:
    table.add_class("panel")
    table.border_title = title
    return table


def _size(queue: QueueSize) -> TableRow:
    cells = {"queue": queue.name, "due": formatting.number(queue.due), "unclaimed": formatting.number(queue.unclaimed)}
    return TableRow(queue.name, cells)


def _error(group: ErrorGroup, now: datetime) -> TableRow:
    cells: dict[str, Cell | str] = {
        "task": group.task,
        "error": masked(group.fingerprint),
        "last": age_cell(now - group.last, "quiet"),
    }
    return TableRow(group.key, cells)


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


def _alert(key: str, alert: Alert) -> TableRow:
    symbol = symbols.ALARM if alert.severity is Severity.CRITICAL else symbols.WARNING
    what = sanitize.line(alert.what)
    subject = next(
        (each for each in (alert.subject, alert.subject.split(" ")[-1]) if each and what.startswith(each)), ""
    )
    cells: dict[str, Cell | str] = {
        "what": Cell(symbol.before(what), symbol.role, coloured=len(symbol.before(subject))),
        "age": formatting.duration(alert.age),
        "go": GO[alert.place],
    }
    return TableRow(key, cells)


def _shown(count: Count | None) -> str:
    return formatting.NOTHING if count is None else formatting.count(count)


def next_due(due: datetime | None, now: datetime) -> str:
    """Return when the next scheduled job is due; a job that is due this second waits for no time worth a number."""
    if due is None:
        return "none scheduled"
    return "next due now" if abs(due - now) < timedelta(seconds=1) else f"next due {formatting.until(due, now)}"


def _seconds(value: float) -> str:
    return formatting.duration(timedelta(seconds=value))
