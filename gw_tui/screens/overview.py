"""Is it healthy, and where is the pain: states, rates, the heads of the queue, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Container, Horizontal

from gw_core import JobState
from gw_core.operations import Count
from gw_tui.actions.actions import CountExactly
from gw_tui.data.source import FRESH, Crontabs, Question, Source
from gw_tui.rules.alerts import Alert, AlertInput, Severity, drain_time, worries
from gw_tui.rules.connection_state import ConnectionPhase, FailureKind
from gw_tui.rules.history import REACHES
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, symbols
from gw_tui.widgets.bars import Bars
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row
from gw_tui.widgets.tiles import Tile

if TYPE_CHECKING:
    from gw_core.operations import Finding, QueueSnapshot, QueueStatistics
    from gw_tui.data.messages import ActionFinished

HEADS: Final = (
    Column("priority", "prio", 6, right=True),
    Column("ready", "ready", 7, right=True),
    Column("age", "oldest", 7, right=True),
    Column("task", "task"),
    Column("next", "next due", 9, right=True, rank=3),
)
ATTENTION: Final = (Column("what", "what"), Column("age", "age", 7, right=True), Column("go", "go", 2, rank=3))
GO: Final = {"overview": "1", "jobs": "2", "queues": "3", "workers": "4", "cron": "5", "locks": "6", "events": "7"}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the overview asks beside the glance."""

    statistics: QueueStatistics
    crontabs: Crontabs
    findings: Sequence[Finding]


@dataclass(frozen=True)
class SampleQuestion(Question):
    """A sample of the table by state and task, and what changes slowly."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    def ask(self, source: Source) -> Sample:
        """Ask for the sample."""
        return Sample(source.statistics(), source.crontabs(), source.findings())


class OverviewScreen(ConsoleScreen):
    """The first screen."""

    PLACE = "overview"
    AUTO_FOCUS = "#attention"

    def __init__(self) -> None:
        super().__init__()
        self._sample: Sample | None = None
        self._exact: QueueStatistics | None = None
        self._worries: dict[str, Alert] = {}
        self._reach = 0

    def body(self) -> ComposeResult:
        """Lay out tiles, charts and the two lists."""
        with Horizontal(id="tiles"):
            yield Tile("▶ READY", "state-ready", id="ready")
            yield Tile("● RUNNING", "state-running", id="running")
            yield Tile("◷ SCHEDULED ↻ BACKOFF", "state-scheduled", short="◷ SCHED ↻ BACKOFF", id="waiting")
            yield Tile("✖ FAILED", "state-failed", id="failed")
        with Horizontal(id="charts"):
            yield Bars("done", formatting.rate, id="done")
            yield Bars("added", formatting.rate, id="added")
            yield Bars("backlog age", _seconds, id="age")
        with Container(id="lists"):
            attention = KeyedTable(ATTENTION, empty="Nothing: all is well.", id="attention", classes="panel")
            attention.border_title = "Needs attention"
            yield attention
            heads = KeyedTable(HEADS, empty="No job waits.", id="heads", classes="panel")
            heads.border_title = "Queue heads, by priority"
            yield heads

    # -- what is asked and told ------------------------------------------------------------------------------------

    def question(self) -> Question:
        """Ask for a sample now and then."""
        return SampleQuestion()

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Draw everything anew."""
        if self.is_mounted:
            self._draw(glance)

    def show_time(self) -> None:
        """Let ages go on while nothing new is heard."""
        glance = self.console.glance
        if glance is not None and self.is_mounted and self.console.phase is not ConnectionPhase.LIVE:
            self._draw(_aged(glance, self.console.now))

    def show_answer(self, question: Question, answer: object) -> None:
        """Take in the sample."""
        if isinstance(answer, Sample):
            self._sample = answer
            if self.console.glance is not None:
                self.show_glance(self.console.glance)

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say that the sample is not to be had."""
        self.query_one("#attention").border_subtitle = f"sample: {trouble}"

    def show_acted(self, acted: ActionFinished) -> None:
        """Take in an exact count."""
        if acted.result is not None and acted.result.statistics is not None:
            self._exact = acted.result.statistics
            self.notify("Counted exactly.", markup=False)
        elif acted.act == CountExactly():
            self.notify(acted.sentence, severity="warning", markup=False)
        if self.console.glance is not None:
            self.show_glance(self.console.glance)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self, glance: QueueSnapshot) -> None:
        self._draw_tiles(glance)
        self._draw_charts(glance)
        self.query_one("#heads", KeyedTable).apply(_heads(glance))
        self._draw_worries(glance)

    def _draw_tiles(self, glance: QueueSnapshot) -> None:
        ready = self._count(JobState.READY, glance)
        self._tile("ready", ready, self._about_ready(glance, ready))
        stale = sum(worker.is_stale for worker in glance.workers)
        alive = formatting.counted(len(glance.workers) - stale, "worker")
        alive = f"{len(glance.workers) - stale} alive · {stale} stale" if stale else alive
        if glance.locks_age is not None and glance.locks_age > FRESH:
            alive = f"{formatting.span(glance.locks_age)} ago · {alive}"
        self._tile(
            "running",
            glance.running or self._count(JobState.RUNNING, glance),
            alive,
        )
        later = [self._count(state, glance) for state in (JobState.SCHEDULED, JobState.BACKOFF)]
        due = glance.next_due_at
        self.query_one("#waiting", Tile).show(
            "  ".join(_shown(count) for count in later),
            "none is due later" if due is None else f"next due {formatting.until(due, glance.at)}",
        )
        total = "" if glance.total is None else f"of {formatting.count(glance.total)} jobs"
        self._tile("failed", glance.failed or self._count(JobState.FAILED, glance), total)

    def _about_ready(self, glance: QueueSnapshot, ready: Count | None) -> str:
        if (age := glance.backlog_age) is None:
            return "none waits"
        second = glance.at.timestamp()
        done = next((value for value in reversed(self.console.rings.done.values(REACHES[0], second)) if value), None)
        left = None if ready is None else drain_time(ready, done)
        return f"oldest {formatting.span(age)}" + ("" if left is None else f", ~{formatting.span(left)} left")

    def _tile(self, name: str, count: Count | None, about: str) -> None:
        self.query_one(f"#{name}", Tile).show(_shown(count), about)

    def _count(self, state: JobState, glance: QueueSnapshot) -> Count | None:
        """Return the best number known: exact ones first, then the sample's."""
        if state is JobState.READY and glance.ready.quality.value == "exact":
            return glance.ready
        if self._exact is not None and glance.at - self._exact.at < timedelta(seconds=10):
            return self._exact.states[state]
        if self._sample is not None:
            return self._sample.statistics.states[state]
        return glance.ready if state is JobState.READY else None

    def _draw_charts(self, glance: QueueSnapshot) -> None:
        rings, reach, second = self.console.rings, REACHES[self._reach], glance.at.timestamp()
        for name, ring in (("done", rings.done), ("added", rings.added), ("age", rings.age)):
            self.query_one(f"#{name}", Bars).draw(ring.values(reach, second), reach.name)

    def _draw_worries(self, glance: QueueSnapshot) -> None:
        sample, rings = self._sample, self.console.rings
        second = glance.at.timestamp()
        known = AlertInput(
            glance=glance,
            statistics=None if sample is None else sample.statistics,
            crontabs=() if sample is None else sample.crontabs.known,
            items=None if sample is None else sample.crontabs.items,
            findings=() if sample is None else sample.findings,
            ages=rings.age.values(REACHES[0], second),
            hears=self.console.hears,
        )
        self._worries = {f"{worry.place}/{worry.what}": worry for worry in worries(known)}
        self.query_one("#attention", KeyedTable).apply(
            Row(key, {"what": _words(worry), "age": formatting.span(worry.age), "go": GO[worry.place]})
            for key, worry in self._worries.items()
        )

    # -- commands --------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Go where the trouble is."""
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        if table.id == "heads":
            self.console.visit("jobs", "state:ready")
        elif (worry := self._worries.get(table.highlighted)) is not None:
            self.console.visit(worry.place, worry.filter)

    def action_copy(self) -> None:
        """Copy what the cursor is on: what needs attention, or the task at the head of a queue."""
        table = self.focused
        if not isinstance(table, KeyedTable) or table.highlighted is None:
            return
        worry = self._worries.get(table.highlighted) if table.id == "attention" else None
        heads = () if self.console.glance is None else self.console.glance.heads
        tasks = {str(head.priority): head.oldest_task for head in heads}
        text = worry.what if worry is not None else tasks.get(table.highlighted)
        if text:
            self.console.copy(text)

    def action_exact(self) -> None:
        """Count every job."""
        self.notify("Counting …", markup=False)
        self.console.act(CountExactly())

    def action_range_shorter(self) -> None:
        """Let the charts show a shorter time."""
        self._set_reach(self._reach - 1)

    def action_range_longer(self) -> None:
        """Let the charts show a longer time."""
        self._set_reach(self._reach + 1)

    def _set_reach(self, reach: int) -> None:
        self._reach = min(max(0, reach), len(REACHES) - 1)
        if self.console.glance is not None:
            self._draw_charts(self.console.glance)


def _aged(glance: QueueSnapshot, now: datetime) -> QueueSnapshot:
    """Return what was known then as it looks by now: ages have gone on."""
    older = now - glance.at
    workers = [
        replace(
            worker,
            heartbeat_age=None if worker.heartbeat_age is None else worker.heartbeat_age + older,
            lock_age=None if worker.lock_age is None else worker.lock_age + older,
        )
        for worker in glance.workers
    ]
    return replace(glance, at=now, workers=workers)


def _heads(glance: QueueSnapshot) -> Iterator[Row]:
    for head in glance.heads:
        age = None if head.oldest_due_at is None else glance.at - head.oldest_due_at
        yield Row(
            str(head.priority),
            {
                "priority": str(head.priority),
                "ready": Cell(formatting.count(head.ready), "ready" if head.ready.value else "quiet"),
                "age": formatting.span(age),
                "task": head.oldest_task or "",
                "next": Cell(
                    "" if head.next_due_at is None else formatting.until(head.next_due_at, glance.at), "quiet"
                ),
            },
        )


def _words(worry: Alert) -> Cell:
    if worry.grade is Severity.BAD:
        return Cell(f"{symbols.STATE_GLYPHS['failed']} {worry.what}", "error")
    return Cell(f"{symbols.WARNING} {worry.what}", "warning")


def _shown(count: Count | None) -> str:
    return formatting.NOTHING if count is None else formatting.count(count)


def _seconds(value: float) -> str:
    return formatting.span(timedelta(seconds=value))
