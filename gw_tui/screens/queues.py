"""Named queues: who holds them and for how long, what waits in them, and which job is next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import ClassVar, Final

from msgspec import structs
from textual import work

from gw_core.front_ends import Count, Quality, counted, written
from gw_core.operations import QueueReport
from gw_tui.actions import CountExactly
from gw_tui.data.source import QUEUES_INTERVAL, DataSource, Query, known
from gw_tui.rules.alerts import knows_workers
from gw_tui.screens.list_screen import UNKNOWN
from gw_tui.screens.paged_list import PagedList
from gw_tui.screens.pause_actions import PauseMixin
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.job_rows import RowContext, when_cell
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, count_cell, duration_cell, sign_cell

PAGE: Final = 100
STUCK: Final = "stuck:"
ONLY: Final = ("locked:", STUCK)
"""What narrows the list to queues that a worker locked, or that a dead one did."""
TIMEOUT: Final = 0.25
"""Seconds that one answer may search for names."""

FRESH: Final = timedelta(seconds=10)
"""So long an exact count stands in for the bounded one."""


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Queues whose names hold a text, and where to go on: a place in the ranking, or a name; None at the end."""

    queues: tuple[QueueReport, ...] = ()
    after: int | str | None = None
    scanned: int = 0
    ranked: int = 0
    """This many of them are in order of their due jobs, before those in order of their names."""
    knows_sizes: bool = True
    """False if the jobs of all queues could not be counted in time."""
    knows_others: bool = True
    """False if the queues without waiting jobs could not be read in time."""


@dataclass(frozen=True, slots=True)
class ExactCount:
    """What an exact count of one queue brought."""

    name: str
    unclaimed: Count
    due: Count
    at: datetime

    def words(self, now: datetime) -> str:
        """Return it in words, with its age."""
        numbers = f"{self.unclaimed.value:,} unclaimed, {self.due.value:,} due"
        return f"{sanitize.line(self.name, 30)}: {numbers}, counted {formatting.duration(now - self.at)} ago"


@dataclass(frozen=True)
class QueuesQuery(Query):
    """A page of queues: those with waiting jobs by their exact number of due jobs, then the others by name.

    Where counting takes too long, all of them are in order of their names.
    """

    every: ClassVar[timedelta | None] = QUEUES_INTERVAL

    after: int | str = 0
    text: str = ""
    only_locked: bool = False
    holders: frozenset[str] | None = None
    """Only queues that one of these workers locked."""

    def ask(self, source: DataSource) -> QueuePage:
        """Return those that match, searching for at most a fraction of a second."""
        sizes = () if self.only_locked else known(source.queue_sizes)
        ranked: Sequence[QueueReport] | None = ()
        if sizes and isinstance(self.after, int):
            ranked = known(partial(source.ranked_queues, self.text, after=self.after))
            matching = sum(self.text.lower() in each.name.lower() for each in sizes)
            if ranked is not None and matching > self.after + PAGE:
                return QueuePage(tuple(ranked), self.after + PAGE, len(ranked), len(ranked))
        if sizes is None or ranked is None:
            return replace(self._by_name(source, (), PAGE), knows_sizes=False)
        if not ranked:
            return self._by_name(source, {each.name for each in sizes}, PAGE)
        others = known(lambda: self._by_name(source, {each.name for each in sizes}, PAGE - len(ranked)))
        if others is None:
            return QueuePage(tuple(ranked), ranked=len(ranked), knows_others=False)
        return replace(others, queues=(*ranked, *others.queues), ranked=len(ranked))

    def _by_name(self, source: DataSource, ranked: Collection[str], limit: int) -> QueuePage:
        until, scanned = monotonic() + TIMEOUT, 0
        after = self.after if isinstance(self.after, str) else ""
        found: list[QueueReport] = []
        while True:
            page = source.queues(after=after, limit=PAGE, only_locked=self.only_locked)
            scanned += len(page)
            for each in page:
                if len(found) >= limit:
                    return QueuePage(tuple(found), after, scanned)
                found += [each] if each.name not in ranked and self._matches(each) else []
                after = each.name
            if len(page) < PAGE:
                return QueuePage(tuple(found), None, scanned)
            if monotonic() >= until:
                return QueuePage(tuple(found), after, scanned)

    def _matches(self, queue: QueueReport) -> bool:
        return self.text.lower() in queue.name.lower() and (self.holders is None or queue.locked_by in self.holders)


class QueuesScreen(PauseMixin, WorkerActionsMixin, PagedList[QueuePage, QueueReport]):
    """A page of named queues."""

    SCREEN_ID = "queues"
    LABELS = {"pause": "Pause queue"}  # noqa: RUF012 - as the base class has it
    TABLE = "queues"
    COLUMNS = (
        TableColumn("queue", "queue", least=14, rank=9),
        TableColumn("state", "state", 9, rank=8),
        TableColumn("locked_for", "for", 7, right=True, rank=6),
        TableColumn("locked_by", "locked by", least=12, rank=5),
        TableColumn("unclaimed", "unclaimed", 9, right=True, rank=7),
        TableColumn("due", "due", 7, right=True, rank=4),
        TableColumn("head", "next", 10, right=True, rank=3),
    )
    WIDE_COLUMNS = (
        *COLUMNS,
        TableColumn("task", "its task", least=12, rank=2),
        TableColumn("run_at", "run at", 10, right=True, rank=1),
    )
    EMPTY = "No named queues"
    SORT_NOTE = "Pages are in order of the due jobs, then of the names; other columns sort the page shown."

    PLACEHOLDER = "part of a name; locked: or stuck: shows only those"
    FIRST = 0

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._only = ""
        self._counted: ExactCount | None = None

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> QueuesQuery:
        holders = self._dead() if self._only == STUCK else None
        return QueuesQuery(after=self.begins[-1], text=self._text, only_locked=bool(self._only), holders=holders)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def rows(self, known: QueuePage) -> Iterator[TableRow]:
        now, dead = self.state.now, self._dead()
        return (_row(self._best(each), now, dead) for each in known.queues)

    def emptiness(self, known: QueuePage) -> str:
        snapshot = self.state.snapshot
        if self._only == STUCK and snapshot is not None and not knows_workers(snapshot):
            return UNKNOWN
        if known.after is not None:
            return "No matches so far; n continues"
        return "No matches" if self.typed else self.EMPTY

    def _best(self, queue: QueueReport) -> QueueReport:
        """Return a queue with the best numbers known: those of an exact count while it is fresh."""
        counted = self._counted
        if counted is None or counted.name != queue.name or self.state.now - counted.at > FRESH:
            return queue
        return structs.replace(queue, unclaimed=counted.unclaimed, due=counted.due)

    def _dead(self) -> frozenset[str]:
        return RowContext.from_snapshot(self.state.snapshot).dead_workers

    def status(self, known: QueuePage) -> Iterator[str]:
        snapshot = self.state.snapshot
        if self._counted is not None:
            yield self._counted.words(self.state.now)
        if self.typed:
            narrowed = f"{self._only.replace(':', ', ')}{f'with {self._text!r}' if self._text else ''}".rstrip(", ")
            yield sanitize.line(narrowed)
        yield f"page {len(self.begins)}"
        yield counted(len(known.queues), "queue")
        if snapshot is not None:
            more = "" if snapshot.locked_queues_are_all else "+"
            is_known = "queues" not in dict(snapshot.errors)
            yield f"{len(snapshot.locked_queues)}{more} locked in all" if is_known else "how many are locked is unknown"
            dead = self._dead()
            if stuck := sum(queue.locked_by in dead for queue in snapshot.locked_queues):
                yield f"{stuck}{more} stuck"
        yield "by due jobs" if known.ranked else "by name" if known.knows_sizes else "by name, sizes unknown"
        if (queue := self.selected) is not None and queue.pause is not None:
            yield sanitize.line(queue.pause.description, 120)
        if (age := self._heartbeat_age_of_holder()) is not None:
            yield f"heartbeat {formatting.duration(age)} ago"
        if not known.knows_others:
            yield "other queues unknown"
        if isinstance(known.after, str):
            yield f"n continues after {sanitize.line(known.after, 30)!r}"

    def _heartbeat_age_of_holder(self) -> timedelta | None:
        """Return the age of the last heartbeat of the worker that locked the selected queue."""
        snapshot, holder = self.state.snapshot, self.holder()
        workers = () if snapshot is None or holder is None else snapshot.workers
        age = next((each.heartbeat_age for each in workers if each.id == holder), None)
        return None if snapshot is None or age is None else age + max(timedelta(), self.state.now - snapshot.at)

    # -- commands --------------------------------------------------------------------------------------------------

    def take_filter(self, text: str) -> None:
        self._only = next((each for each in ONLY if text.startswith(each)), "")
        self._text = text.removeprefix(self._only).strip()
        self.turn_to((self.FIRST,))

    @property
    def typed(self) -> str:
        return f"{self._only}{self._text}"

    def holder(self) -> str | None:
        queue = self.selected
        return None if queue is None or queue.pause is not None else queue.locked_by

    def pause_target(self) -> str | None:
        return None if (queue := self.selected) is None else f"queue:{queue.name}"

    @work
    async def action_count_exactly(self) -> None:
        if (name := self.table.highlighted) is None:
            return
        self.notify(f"Counting {sanitize.line(name, 60)} …")
        outcome = await self.action_runner.submit(CountExactly(queue=name))
        if outcome.result.queue is None:
            self.notify(sanitize.line(outcome.reason, 200), severity="warning")
            return
        self._counted = ExactCount(name, *outcome.result.queue, self.state.now)
        self.draw()

    def action_open(self) -> None:
        if (name := self.table.highlighted) is not None:
            self.console.visit("jobs", f"queue:{written(name)}")


def _row(queue: QueueReport, now: datetime, dead: frozenset[str]) -> TableRow:
    is_stuck = queue.locked_by in dead
    return TableRow(
        queue.name,
        {
            "queue": Cell(queue.name, "strong" if queue.locked_at is not None else ""),
            "state": _state(queue, is_stuck=is_stuck),
            "locked_for": "" if queue.locked_at is None else duration_cell(now - queue.locked_at),
            "locked_by": Cell(_holder(queue), "error" if is_stuck else ""),
            "unclaimed": _counted(queue.unclaimed),
            "due": _counted(queue.due),
            "head": "" if queue.next_job_id is None else str(queue.next_job_id),
            "task": queue.next_job_task or "",
            "run_at": "" if queue.next_job_run_at is None else when_cell(queue.next_job_run_at, now),
        },
        queue,
    )


def _holder(queue: QueueReport) -> str:
    return queue.locked_by or "" if queue.pause is None else queue.pause.by


def _state(queue: QueueReport, *, is_stuck: bool) -> Cell:
    """Return in a word how a queue stands."""
    if queue.pause is not None:
        return sign_cell(symbols.WARNING, "paused")
    if is_stuck:
        return sign_cell(symbols.ALARM, "stuck")
    if queue.locked_at is not None:
        return sign_cell(symbols.STATES["running"], "locked")
    if queue.due.value:
        return sign_cell(symbols.STATES["ready"], "ready")
    if _is_unknown(queue.due) or _is_unknown(queue.unclaimed):
        return sign_cell(symbols.UNKNOWN, "unknown")
    if queue.unclaimed.value:
        return sign_cell(symbols.STATES["scheduled"], "later")
    return sign_cell(symbols.NOTHING, "empty")


def _is_unknown(count: Count) -> bool:
    """Return whether counting stopped before it found anything."""
    return not count.value and count.quality is Quality.AT_LEAST


def _counted(count: Count) -> Cell:
    return Cell(formatting.NOTHING) if _is_unknown(count) else count_cell(count)
