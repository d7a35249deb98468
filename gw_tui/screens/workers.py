"""Who works, who went silent, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from gw_core import JobFilter, JobState, RecoverySettings
from gw_core.operations import JobPage, QueueSnapshot, WorkerInfo
from gw_tui.actions.actions import Act, Sweep, Unlock
from gw_tui.data.source import FRESH, LOCKS_AGAIN, Question, Source
from gw_tui.dialogs.choose import Choice
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.filter_language import quoted
from gw_tui.rules.worker_health import Health, health, silence
from gw_tui.screens.jobs import PATIENCE, show_jobs
from gw_tui.screens.worker_actions import SweepMixin, WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.job_rows import RowContext, row_of
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row

MOST_JOBS: Final = 50
BAR: Final = 10
WIDE: Final = 100

_WORKER_COLUMNS: Final = (
    Column("id", "worker", least=22, rank=9),
    Column("health", "state", 9, rank=8),
    Column("beat", "last beat", 9, right=True, rank=7),
    Column("bar", "", BAR, rank=4),
    Column("jobs", "jobs", 6, right=True, rank=6),
    Column("queues", "queues", 6, right=True, rank=5),
    Column("lock", "lock", 8, right=True, rank=3),
)
_WIDE_WORKER_COLUMNS: Final = (
    *_WORKER_COLUMNS,
    Column("host", "host", 14, rank=2),
    Column("pid", "pid", 8, right=True, rank=2),
    Column("started", "started", 12, right=True, rank=1),
    Column("version", "version", 8, rank=0),
)
_JOB_COLUMNS: Final = (
    Column("id", "id", 10, right=True, rank=9),
    Column("state", "state", 13, rank=8),
    Column("task", "task", least=10, rank=7),
    Column("queue", "queue", least=8, rank=5),
    Column("attempts", "att", 5, right=True, rank=4),
    Column("locked", "held for", 8, right=True, rank=6),
)
_ROLES: Final = {
    Health.HEALTHY: (symbols.DONE, "ready"),
    Health.LATE: (symbols.STATE_GLYPHS["scheduled"], "warning"),
    Health.STALE: (symbols.STATE_GLYPHS["failed"], "error"),
    Health.UNKNOWN: ("?", "quiet"),
}
_WEIGHT: Final = (Health.STALE, Health.LATE, Health.UNKNOWN, Health.HEALTHY)
"""Those who need a hand come first."""


@dataclass(frozen=True)
class HeldJobsQuestion(Question):
    """The jobs that one worker holds; all that are held are walked past to find them."""

    every: ClassVar[timedelta | None] = LOCKS_AGAIN

    worker: str

    def ask(self, source: Source) -> JobPage:
        """Return some of them."""
        wanted = JobFilter(state=JobState.RUNNING, worker=self.worker)
        return source.page(wanted, limit=MOST_JOBS, timeout=PATIENCE)


class WorkersScreen(WorkerActionsMixin, SweepMixin):
    """The workers above, and below the jobs of the one under the cursor."""

    PLACE = "workers"
    AUTO_FOCUS = "#workers"

    CSS = """
    WorkersScreen #line { height: 1; padding: 0 1; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    WorkersScreen #workers { height: 1fr; }
    WorkersScreen #pane { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, WorkerInfo] = {}
        self._at: datetime | None = None
        self._held: JobPage | None = None
        self._held_by: str | None = None
        self._unseen = ""
        self._trouble = ""

    def body(self) -> ComposeResult:
        """Lay out the workers, and the pane below."""
        yield Static("", id="line", markup=False)
        yield KeyedTable(_WORKER_COLUMNS, empty="No worker is known.", id="workers")
        with Vertical(id="pane", classes="panel") as pane:
            pane.border_title = "Its jobs"
            yield KeyedTable(_JOB_COLUMNS, empty="It holds no jobs.", id="held")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    @property
    def highlighted(self) -> WorkerInfo | None:
        """The worker under the cursor, as it was last seen."""
        key = self.query_one("#workers", KeyedTable).highlighted
        return None if key is None else self._workers.get(key)

    def holder(self) -> str | None:
        """Return the id of the worker under the cursor."""
        return self.query_one("#workers", KeyedTable).highlighted

    def question(self) -> Question | None:
        """Return the question about the worker under the cursor."""
        key = self.query_one("#workers", KeyedTable).highlighted if self.stands else None
        return None if key is None else HeldJobsQuestion(key)

    def show_answer(self, question: Question, answer: object) -> None:
        """Show what the worker holds."""
        if isinstance(question, HeldJobsQuestion) and isinstance(answer, JobPage) and self.stands:
            self._held, self._trouble = answer, ""
            if self._held_by != question.worker:
                self._held_by = question.worker
                self.query_one("#held", KeyedTable).replace([])
            self._draw_held()

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Show the workers."""
        self._workers = {each.id: each for each in glance.workers}
        self._at = glance.at
        self._unseen = next((why for part, why in glance.unseen if part == "workers"), "")
        self._draw()

    def show_time(self) -> None:
        """Let ages go on."""
        self._draw()
        self._draw_held()

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say why there is no answer."""
        self._trouble = sanitize.line(f"{trouble}: {sentence}", 200)
        self._draw()

    @on(KeyedTable.Highlighted, "#workers")
    def _look_at_another(self) -> None:
        """Ask for the jobs of the worker that the cursor is on now."""
        self.ask()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def _recovery(self) -> RecoverySettings:
        return self.console.source.target.recovery

    def _draw(self) -> None:
        if not self.stands or self._at is None:
            return
        away = max(timedelta(), self.console.now - self._at)
        aged = sorted((_aged(each, away) for each in self._workers.values()), key=self._weight)
        self.query_one("#workers", KeyedTable).apply(_row(each, self._recovery, self.console.now) for each in aged)
        style = "$warning" if self._trouble or self._unseen else "$quiet"
        self.query_one("#line", Static).update(Content.styled(self._words(aged), style), layout=False)

    def _weight(self, worker: WorkerInfo) -> tuple[int, str]:
        return _WEIGHT.index(health(worker, self._recovery)), worker.id

    def _words(self, workers: list[WorkerInfo]) -> str:
        if self._trouble or self._unseen:
            return self._trouble or sanitize.line(self._unseen, 200)
        found = [health(each, self._recovery) for each in workers]
        counts = [f"{found.count(each)} {each}" for each in Health if each in found]
        jobs = sum(each.jobs for each in workers)
        dead_after = f"dead after {formatting.span(self._recovery.threshold)} of silence"
        return " · ".join(
            [
                formatting.counted(len(workers), "worker"),
                *counts,
                f"{formatting.counted(jobs, 'job')} held",
                *self._age(),
                dead_after,
            ]
        )

    def _age(self) -> Sequence[str]:
        """Say how old the numbers of held jobs are, where that matters."""
        age = None if self.console.glance is None else self.console.glance.locks_age
        return () if age is None or age <= FRESH else (f"counted {formatting.span(age)} ago",)

    def _draw_held(self) -> None:
        if not self.stands or self._held is None:
            return
        now, around = self.console.now, RowContext.of(self.console.glance)
        rows = []
        for each in self._held.jobs:
            row = row_of(each, now, around)
            since = "" if each.job.started_at is None else formatting.span(now - each.job.started_at)
            rows.append(Row(row.key, {**row.cells, "locked": since}))
        self.query_one("#held", KeyedTable).apply(rows)
        pane = self.query_one("#pane", Vertical)
        more = "+" if self._held.after is not None else ""
        pane.border_title = Content(f"Jobs of {sanitize.line(self._held_by, 60)}")
        pane.border_subtitle = Content(f"{len(rows)}{more}")

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as there is room for."""
        super().on_resize(event)
        wide = event.size.width >= WIDE
        self.query_one("#workers", KeyedTable).set_columns(_WIDE_WORKER_COLUMNS if wide else _WORKER_COLUMNS)

    # -- commands --------------------------------------------------------------------------------------------------

    async def action_open(self) -> None:
        """Go to the jobs of a worker, or show the job under the cursor."""
        held = self.query_one("#held", KeyedTable)
        if self.focused is held:
            if held.highlighted is not None:
                from gw_tui.screens.job import JobScreen

                self.app.push_screen(JobScreen(int(held.highlighted)))
        elif (key := self.query_one("#workers", KeyedTable).highlighted) is not None:
            await show_jobs(self.console, f"state:running worker:{quoted(key)}")

    def offered(self) -> Sequence[tuple[Choice, Act]]:
        """Return what can be done to the worker under the cursor, and to the dead ones."""
        found: list[tuple[Choice, Act]] = []
        if (worker_id := self.holder()) is not None:
            choice = Choice("unlock", "unlock", sanitize.line(worker_id, 50))
            found.append((choice, Unlock(workers=(worker_id,))))
        if any(each.is_stale for each in self._workers.values()):
            found.append((Choice("sweep", "sweep", "give back the jobs of all dead workers"), Sweep()))
        return found

    def action_back(self) -> None:
        """Go back to the workers."""
        self.query_one("#workers", KeyedTable).focus()

    def action_copy(self) -> None:
        """Copy the id of the worker, or of the job, under the cursor."""
        table = self.focused if isinstance(self.focused, KeyedTable) else self.query_one("#workers", KeyedTable)
        if table.highlighted is not None:
            self.console.copy(table.highlighted)


def _aged(worker: WorkerInfo, by: timedelta) -> WorkerInfo:
    """Return a worker with ages that went on since it was looked at."""
    return replace(
        worker,
        heartbeat_age=None if worker.heartbeat_age is None else worker.heartbeat_age + by,
        lock_age=None if worker.lock_age is None else worker.lock_age + by,
    )


def _row(worker: WorkerInfo, recovery: RecoverySettings, now: datetime) -> Row:
    found = health(worker, recovery)
    sign, role = _ROLES[found]
    return Row(
        worker.id,
        {
            "id": Cell(worker.id, "strong" if found is Health.STALE else ""),
            "health": Cell(f"{sign} {found}", role),
            "beat": "none" if worker.heartbeat_age is None else formatting.span(worker.heartbeat_age),
            "bar": Cell(_bar(silence(worker, recovery)), role),
            "jobs": f"{worker.jobs:,}",
            "queues": f"{worker.queues:,}",
            "lock": "" if worker.lock_age is None else Cell(formatting.span(worker.lock_age), "quiet"),
            "host": worker.host or "",
            "pid": "" if worker.pid is None else str(worker.pid),
            "started": "" if worker.started_at is None else Cell(formatting.day(worker.started_at, now), "quiet"),
            "version": Cell(worker.version or "", "quiet"),
        },
    )


def _bar(share: float) -> str:
    """Return how near a worker is to counting as dead."""
    full = round(share * BAR)
    return "█" * full + "·" * (BAR - full)
