"""The live and the stale workers, and their locks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from gw_core import JobState, RecoverySettings, Selection
from gw_core.front_ends import QueueSnapshot, counted, written
from gw_core.operations import JobPage, WorkerInfo
from gw_tui.actions import Action
from gw_tui.data.source import BACKGROUND_INTERVAL, FRESH, DataSource, Query
from gw_tui.dialogs.choose import Choice
from gw_tui.maintenance import SWEEP
from gw_tui.rules.alerts import WORKER_PARTS, knows_workers
from gw_tui.rules.worker_health import WorkerHealth, aged, health, staleness
from gw_tui.screens.job_queries import TIMEOUT
from gw_tui.screens.list_screen import LOADING, UNKNOWN, ListScreen
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.job_rows import RowContext, row_of
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, day_cell, duration_cell, sign_cell

NO_JOBS: Final = "No locked jobs"
MAX_JOBS: Final = 50
BAR: Final = 10

_JOB_COLUMNS: Final = (
    TableColumn("id", "id", 10, right=True, rank=9),
    TableColumn("state", "state", 13, rank=8),
    TableColumn("task", "task", least=10, rank=7),
    TableColumn("queue", "queue", least=8, rank=5),
    TableColumn("attempts", "att", 5, right=True, rank=4),
    TableColumn("locked", "running", 8, right=True, rank=6),
)
_SYMBOLS: Final = {
    WorkerHealth.HEALTHY: symbols.OK,
    WorkerHealth.LATE: symbols.WARNING,
    WorkerHealth.STALE: symbols.ALARM,
    WorkerHealth.UNKNOWN: symbols.UNKNOWN,
}
_WEIGHT: Final = (WorkerHealth.STALE, WorkerHealth.LATE, WorkerHealth.UNKNOWN, WorkerHealth.HEALTHY)
"""Those who need a hand come first."""


@dataclass(frozen=True)
class HeldJobsQuery(Query):
    """The jobs that one worker holds; all that are held are walked past to find them."""

    every: ClassVar[timedelta | None] = BACKGROUND_INTERVAL

    worker: str

    def ask(self, source: DataSource) -> JobPage:
        wanted = Selection.of(state=JobState.RUNNING, worker=self.worker)
        return source.page(wanted, limit=MAX_JOBS, timeout=TIMEOUT)


class WorkersScreen(WorkerActionsMixin, ListScreen[QueueSnapshot, WorkerInfo]):
    """The workers above, and below the jobs of the one under the cursor."""

    SCREEN_ID = "workers"
    TABLE = "workers"
    COLUMNS = (
        TableColumn("id", "worker", least=22, rank=9),
        TableColumn("health", "state", 9, rank=8),
        TableColumn("heartbeat", "heartbeat", 9, right=True, rank=7),
        TableColumn("bar", "", BAR, rank=4),
        TableColumn("jobs", "jobs", 6, right=True, rank=6),
        TableColumn("queues", "queues", 6, right=True, rank=5),
        TableColumn("lock", "lock", 8, right=True, rank=3),
    )
    WIDE_COLUMNS = (
        *COLUMNS,
        TableColumn("host", "host", 14, rank=2),
        TableColumn("pid", "pid", 8, right=True, rank=2),
        TableColumn("started", "started", 12, right=True, rank=1),
        TableColumn("version", "version", 8, rank=0),
    )
    EMPTY = "No workers"
    AUTO_FOCUS = "#workers"

    CSS = """
    WorkersScreen #workers { height: 1fr; }
    WorkersScreen #pane { height: 1fr; }
    WorkersScreen.-tall #workers { height: auto; max-height: 50%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, WorkerInfo] = {}
        self._held: JobPage | None = None
        self._held_by: str | None = None
        self._unseen = ""

    def body(self) -> ComposeResult:
        yield from super().body()
        with Vertical(id="pane", classes="panel group") as pane:
            pane.border_title = "Its jobs"
            yield KeyedTable(_JOB_COLUMNS, empty=LOADING, id="held")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def holder(self) -> str | None:
        return self.table.highlighted

    def current_query(self) -> Query | None:
        key = self.table.highlighted if self.stands else None
        return None if key is None else HeldJobsQuery(key)

    def show_answer(self, query: Query, answer: object) -> None:
        if isinstance(query, HeldJobsQuery) and isinstance(answer, JobPage) and self.stands:
            self._held, self.failure = answer, ""
            self.query_one("#held", KeyedTable).say_when_empty(NO_JOBS if answer.after is None else UNKNOWN)
            if self._held_by != query.worker:
                self._held_by = query.worker
                self.query_one("#held", KeyedTable).replace([])
            self._draw_held()

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        self._workers = {each.id: each for each in snapshot.workers}
        self.answer = snapshot
        self._unseen = next((why for part, why in snapshot.errors if part in WORKER_PARTS), "")
        self.draw()

    def show_time(self) -> None:
        self.draw()
        self._draw_held()

    @on(KeyedTable.Highlighted, "#workers")
    def _on_highlight(self) -> None:
        """Ask for the jobs of the worker that the cursor is on now."""
        self.ask()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def _recovery(self) -> RecoverySettings:
        return self.state.source.info.recovery

    def rows(self, known: QueueSnapshot) -> Iterator[TableRow]:
        """Return the workers, those with problems first."""
        away, now = max(timedelta(), self.state.now - known.at), self.state.now
        workers = sorted((aged(each, away) for each in self._workers.values()), key=self._weight)
        unknown = dict(known.errors).keys()
        return (_row(each, self._recovery, now, unknown) for each in workers)

    def emptiness(self, known: QueueSnapshot) -> str:
        return self.EMPTY if knows_workers(known) else UNKNOWN

    @property
    def has_warning(self) -> bool:
        return bool(self.failure or self._unseen)

    def _weight(self, worker: WorkerInfo) -> tuple[int, str]:
        return _WEIGHT.index(health(worker, self._recovery)), worker.id

    def status(self, known: QueueSnapshot) -> Iterator[str]:
        if self._unseen:
            yield f"unknown in part: {sanitize.line(self._unseen, 300)}"
            return
        found = [health(each, self._recovery) for each in self._workers.values()]
        yield counted(len(found), "worker")
        yield from (f"{found.count(each)} {each}" for each in WorkerHealth if each in found)
        yield f"{counted(sum(each.jobs for each in self._workers.values()), 'job')} locked"
        age = None if self.state.snapshot is None else self.state.snapshot.locks_age
        if age is not None and age > FRESH:
            yield f"counted {formatting.duration(age)} ago"
        yield f"presumed dead after {formatting.duration(self._recovery.sweep_threshold)}"

    def _draw_held(self) -> None:
        if not self.stands or self._held is None:
            return
        now, around = self.state.now, RowContext.from_snapshot(self.state.snapshot)
        rows = []
        for each in self._held.jobs:
            row = row_of(each, now, around)
            since = "" if each.job.started_at is None else duration_cell(now - each.job.started_at)
            rows.append(TableRow(row.key, {**row.cells, "locked": since}))
        self.query_one("#held", KeyedTable).apply(rows)
        pane = self.query_one("#pane", Vertical)
        more = "+" if self._held.after is not None else ""
        pane.border_title = Content(f"Jobs of {sanitize.line(self._held_by, 60)}")
        pane.border_subtitle = Content(f"{len(rows)}{more}")

    # -- commands --------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        held = self.query_one("#held", KeyedTable)
        if self.focused is held:
            if held.highlighted is not None:
                from gw_tui.screens.job import JobScreen

                self.app.push_screen(JobScreen(int(held.highlighted)))
        elif (key := self.table.highlighted) is not None:
            self.console.visit("jobs", f"state:running worker:{written(key)}")

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        is_stale = any(each.is_stale for each in self._workers.values())
        return (*super().available_actions(), *((SWEEP,) if is_stale else ()))

    def action_sweep(self) -> None:
        self.maintenance.sweep()

    def action_back(self) -> None:
        self.table.focus()

    def action_copy(self) -> None:
        table = self.focused if isinstance(self.focused, KeyedTable) else self.table
        if table.highlighted is not None:
            self.console.copy(table.highlighted)


def _row(worker: WorkerInfo, recovery: RecoverySettings, now: datetime, unknown: Collection[str] = ()) -> TableRow:
    """Return the row of a worker; `unknown` are the parts of the snapshot that could not be read."""
    no_heartbeat = "none" if {"workers", "rust workers"}.isdisjoint(unknown) else "unknown"
    found = health(worker, recovery)
    symbol = _SYMBOLS[found]
    return TableRow(
        worker.id,
        {
            "id": Cell(worker.id, "strong" if found is WorkerHealth.STALE else ""),
            "health": sign_cell(symbol, str(found)),
            "heartbeat": no_heartbeat if worker.heartbeat_age is None else duration_cell(worker.heartbeat_age),
            "bar": Cell(_bar(staleness(worker, recovery)), symbol.role, staleness(worker, recovery)),
            "jobs": formatting.NOTHING if "locks" in unknown else f"{worker.jobs:,}",
            "queues": formatting.NOTHING if "queues" in unknown else f"{worker.queues:,}",
            "lock": "" if worker.lock_age is None else duration_cell(worker.lock_age, "quiet"),
            "host": worker.host or "",
            "pid": "" if worker.pid is None else str(worker.pid),
            "started": day_cell(worker.started_at, now),
            "version": Cell(worker.version or "", "quiet"),
        },
    )


def _bar(share: float) -> str:
    """Return how near a worker is to counting as dead."""
    full = round(share * BAR)
    return "█" * full + "·" * (BAR - full)
