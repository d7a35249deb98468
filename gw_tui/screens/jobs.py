"""Find jobs, and choose those to act on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from gw_core import JobFilter, JobState
from gw_core.operations import FoundJob, JobPage, NameKind, PageCursor, QueueSnapshot
from gw_tui.data.source import Question, Source
from gw_tui.dialogs import export
from gw_tui.dialogs.choose import Choose
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.filter_language import EVERYTHING, Filter, FilterError, parse
from gw_tui.rules.search import Ask, Pages, Search, Stage
from gw_tui.screens.job_actions import AddJobMixin, JobActionsMixin
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize
from gw_tui.widgets.filter_bar import FilterBar
from gw_tui.widgets.job_rows import ORDERS, RowContext, columns_for, row_of
from gw_tui.widgets.keyed_table import KeyedTable, Row

if TYPE_CHECKING:
    from gw_tui.actions.batch import ActionBatch
    from gw_tui.app import ConsoleApp

PATIENCE: Final = timedelta(milliseconds=200)
AGAIN: Final = 5.0
"""A page that takes several answers is made anew after so many seconds."""

FOUND_ORDERS: Final = {
    "id": "in order of id",
    "turn": "in order of turn",
    "queue": "in order of turn",
    "failed": "latest failure first",
    "newest": "newest first",
}
GATHERED_AT_ONCE: Final = 1_000


# -- what is asked ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PageQuestion(Question):
    """A page of jobs, at each tick."""

    what: Ask
    skew: timedelta = field(default=timedelta(), compare=False)
    """How far the database's clock is ahead of this machine's."""

    def ask(self, source: Source) -> JobPage:
        """Return the page."""
        what, now = self.what, datetime.now(UTC) + self.skew
        return source.page(
            what.filter(now), after=what.after, limit=what.limit, timeout=PATIENCE, with_payload=what.with_payload
        )


@dataclass(frozen=True)
class StepQuestion(PageQuestion):
    """One step of a search: once."""

    every: ClassVar[timedelta | None] = timedelta(hours=1)


@dataclass(frozen=True)
class NamesQuestion(Question):
    """Names to suggest while a filter is typed."""

    every: ClassVar[timedelta | None] = timedelta(seconds=30)

    def ask(self, source: Source) -> Mapping[str, Sequence[str]]:
        """Return the names of tasks, queues and workers; these tables are small."""
        return {kind.value: source.names(kind) for kind in (NameKind.TASKS, NameKind.QUEUES, NameKind.WORKERS)}


@dataclass(frozen=True, slots=True)
class BulkMark:
    """All jobs that match, being gathered to be marked."""

    search: Search
    most: int
    found: tuple[FoundJob, ...] = ()
    is_over: bool = False

    def answered(self, search: Search) -> BulkMark:
        """Take over what a step of the search brought."""
        if search.is_searching:
            return BulkMark(search, self.most, self.found)
        found = (*self.found, *search.jobs)
        if search.follows is None or len(found) >= self.most:
            return BulkMark(search, self.most, found[: self.most], is_over=True)
        following = Search(wanted=search.wanted, begin=search.follows, limit=search.limit)
        return BulkMark(following, self.most, found)


# -- the screen ------------------------------------------------------------------------------------------------------


class JobsTable(KeyedTable):
    """The list of jobs. While it is followed it stays at its top, and no row is under the cursor.

    None shall be acted on that came there by itself. Whatever moves the cursor ends the following.
    """

    class Unfollowed(Message):
        """The operator moved the cursor."""

    is_followed = False

    def follow(self) -> None:
        """Stay at the top from now on."""
        self.is_followed = True
        self.replace([])

    def apply(self, rows: Iterable[Row]) -> None:
        """Show new rows, each at its place."""
        if self.is_followed:
            self._moved_at = None
        super().apply(rows)

    def action_move(self, by: int) -> None:
        """Move the cursor; to begin with, onto the first row."""
        super().action_move(0 if self.is_followed else by)

    def _move_to_index(self, index: int) -> None:
        if self.is_followed:
            self.is_followed = False
            self.post_message(self.Unfollowed())
        super()._move_to_index(index)

    def _set_highlighted(self, key: str | None) -> None:
        super()._set_highlighted(None if self.is_followed else key)


class JobsScreen(JobActionsMixin, WorkerActionsMixin, AddJobMixin):
    """A page of the jobs that match a filter; marks are kept by id over pages and filters."""

    PLACE = "jobs"

    # Before the list has its say: what is typed right after it belongs to the filter.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="filter", show=False, priority=True)
    ]

    CSS = """
    JobsScreen #page { height: 1; padding: 0 1; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._pages = Pages()
        self._search = Search.of(EVERYTHING)
        self._order = 0
        self._seen: dict[str, FoundJob] = {}
        self._last_mark: str | None = None
        self._gathering: BulkMark | None = None
        self._is_unmasked = False
        self._trouble = ""
        self._again: Timer | None = None

    def body(self) -> ComposeResult:
        """Lay out the filter, what was searched, and the jobs."""
        yield FilterBar()
        yield Static("", id="page", markup=False)
        yield JobsTable(columns_for(80), empty="Looking…", id="jobs")

    def on_mount(self) -> None:
        """Begin with the filter given on the command line."""
        if self._search.wanted is EVERYTHING and self.console.options.filter:
            try:
                self.look_for(parse(self.console.options.filter))
            except FilterError as error:
                self.notify(sanitize.line(error), title="This filter is not understood", severity="error", markup=False)
        self.query_one(FilterBar).show(self._search.wanted)

    # -- for others ------------------------------------------------------------------------------------------------

    def look_for(self, wanted: Filter) -> None:
        """Show the jobs that match a filter, from the first page on."""
        if not self.console.options.show_payload and any(term.kind.name == "payload" for term in wanted.terms):
            words = "This filter asks for payloads, and with --no-payload none is fetched."
            self.notify(words, severity="warning", markup=False)
            return
        self._order = 0
        self._turn_to(Pages(), wanted)

    def targets(self) -> tuple[FoundJob, ...]:
        """Return the jobs an act given now would mean, as they were seen: the marked ones, or the highlighted one."""
        table = self._table
        keys = table.marks or ({table.highlighted} if table.highlighted is not None else set())
        return tuple(self._seen[key] for key in sorted(keys, key=int) if key in self._seen)

    def task_to_add(self) -> str:
        """Return the task of the job under the cursor."""
        found = self._seen.get(self._table.highlighted or "")
        return "" if found is None else found.job.task_identifier

    def holder(self) -> str | None:
        """Return the worker that holds the job under the cursor."""
        found = self._seen.get(self._table.highlighted or "")
        return None if found is None else found.job.locked_by

    def done_with(self, done: ActionBatch) -> None:
        """Take the marks from the jobs that were changed; those left alone keep theirs."""
        self._table.marks -= set(done.result.done)
        self._draw()

    def neighbour(self, job_id: int, step: int) -> int | None:
        """Return the id of the job so many rows further in the list, and put the cursor there."""
        keys = self._table.keys
        if str(job_id) not in keys:
            return None
        place = keys.index(str(job_id)) + step
        if not 0 <= place < len(keys):
            return None
        self._table.move_to(keys[place])
        return int(keys[place])

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def question(self) -> Question | None:
        """Return what to ask now: names while a filter is typed, a step of a search, or the page."""
        if self.stands and self.query_one(FilterBar).is_editing:
            return NamesQuestion()
        skew = self.console.now - datetime.now(UTC)
        if self._gathering is not None:
            return StepQuestion(self._gathering.search.ask, skew)
        return (StepQuestion if self._search.is_midway else PageQuestion)(self._search.ask, skew)

    def show_answer(self, question: Question, answer: object) -> None:
        """Draw what came back, and go on with a search that is not over."""
        if isinstance(question, NamesQuestion) and self.stands:
            self.query_one(FilterBar).know(answer)  # type: ignore[arg-type] # each question has its kind of answer
        elif isinstance(question, PageQuestion) and isinstance(answer, JobPage) and self.stands:
            self._trouble = ""
            if self._gathering is not None:
                self._gathered(self._gathering, question, answer)
            elif question.what == self._search.ask:
                self._answered(question, answer)

    def _answered(self, question: PageQuestion, page: JobPage) -> None:
        self._search = self._search.answered(page, self.console.now)
        self._draw()
        if self._search.is_midway:
            self.ask()
        elif not self._search.is_live:
            if self._again is not None:
                self._again.stop()
            self._again = self.set_timer(AGAIN, self._make_anew)
        elif question.what != self._search.ask:
            self.ask()

    def _make_anew(self) -> None:
        """Begin to make a page anew that takes several answers, unless something else is under way."""
        if not self._search.is_midway and not self._search.is_live and self._gathering is None:
            self.ask()

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Judge anew which jobs wait for a queue, and whose worker is dead."""
        self._draw()

    def show_time(self) -> None:
        """Let ages go on."""
        self._draw()

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say why there is no answer."""
        self._trouble = sanitize.line(f"{trouble}: {sentence}", 200)
        self._draw()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> JobsTable:
        return self.query_one("#jobs", JobsTable)

    def _draw(self) -> None:
        if not self.stands:
            return
        if self._search.asks:
            self._table.say_when_empty(self._emptiness())
            self._table.apply(self._rows())
        self._draw_page_line()

    def _rows(self) -> list[Row]:
        now, around = self.console.now, RowContext.of(self.console.glance)
        key = ORDERS[self._order].key
        jobs = self._search.jobs if key is None else sorted(self._search.jobs, key=key)
        self._remember(jobs)
        return [row_of(each, now, around, unmask=self._is_unmasked) for each in jobs]

    def _remember(self, jobs: Sequence[FoundJob]) -> None:
        """Keep jobs as they are seen: those on the page, and those that are marked."""
        marks = self._table.marks | set(self._table.keys)
        kept = {key: found for key, found in self._seen.items() if key in marks}
        self._seen = {**kept, **{str(each.job.id): each for each in jobs}}

    def _emptiness(self) -> str:
        if self._search.is_searching:
            return "Searching…"
        if not self._search.wanted.terms:
            return "There are no jobs."
        return (
            f"No job matches; {self._search.scanned:,} were looked at." if self._search.is_dear else "No job matches."
        )

    def _draw_page_line(self) -> None:
        words = " · ".join(self._page_words())
        style = "$warning" if self._trouble or self._search.is_searching else "$quiet"
        self.query_one("#page", Static).update(Content.styled(words, style), layout=False)

    def _page_words(self) -> Iterator[str]:
        """Yield what the page line says, the weightiest first."""
        search, table = self._search, self._table
        if self._trouble:
            yield self._trouble
        if self._gathering is not None:
            so_far = len(self._gathering.found) + len(self._gathering.search.jobs)
            yield f"marking all that match: {so_far:,} so far · esc stops"
            return
        if not search.asks:
            yield "looking…"
        elif search.is_searching:
            yield f"searching: {search.scanned:,} looked at, {len(search.jobs)} found · esc stops"
        else:
            yield self._extent()
        if table.is_followed:
            yield "following; a key that moves ends it"
        if table.marks:
            yield f"{len(table.marks):,} marked"
        if table.waiting:
            yield f"{formatting.counted(table.waiting, 'change')} (.)"
        yield self._order_words()
        if search.stage is Stage.STOPPED:
            yield f"stopped after {search.scanned:,}; n goes on"
        elif search.is_dear and not search.is_searching:
            yield f"{search.scanned:,} looked at; only these are kept fresh"

    def _extent(self) -> str:
        jobs = len(self._search.jobs)
        if self._pages.number == 1 and self._search.stage is Stage.OVER:
            return formatting.counted(jobs, "job")
        more = "" if self._search.stage is Stage.OVER else self._of_how_many()
        return f"page {self._pages.number} · {jobs} rows{more}"

    def _of_how_many(self) -> str:
        """Return how many there are in all, where the glance knows."""
        glance, wanted = self.console.glance, self._search.wanted
        if glance is None or wanted.rest or wanted.asked(glance.at).narrowing is not None:
            return ""
        counts = {
            JobFilter(): glance.total,
            JobFilter(state=JobState.FAILED): glance.failed,
            JobFilter(state=JobState.RUNNING): glance.running,
            JobFilter(state=JobState.READY): glance.ready,
        }
        count = counts.get(wanted.job_filter)
        return "" if count is None else f" of {formatting.count(count)}"

    def _order_words(self) -> str:
        return ORDERS[self._order].words if self._order else FOUND_ORDERS.get(self._search.order, "as found")

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as there is room for."""
        super().on_resize(event)
        self._table.set_columns(columns_for(event.size.width))

    # -- the filter ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell whether a command is possible; within a filter the key of the filter is a character."""
        if action == "filter" and self.stands and self.query_one(FilterBar).is_editing:
            return False
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Let a filter be typed."""
        self.query_one(FilterBar).edit()

    def on_filter_bar_began(self) -> None:
        """Ask for names to suggest."""
        self.ask()

    def on_filter_bar_left(self) -> None:
        """Go on with the page."""
        self._table.focus()
        self.ask()

    def on_filter_bar_submitted(self, event: FilterBar.Submitted) -> None:
        """Show what matches."""
        self._table.focus()
        self.look_for(event.wanted)

    def action_back(self) -> None:
        """Stop a search, drop the marks, or drop the filter: the first of these that there is."""
        if self._gathering is not None:
            self._gathering = None
            self.ask()
        elif self._search.is_searching and self._search.asks:
            self._search = self._search.stopped()
            self.ask()
        elif self._table.marks:
            self._table.marks.clear()
            self._table.release()
        elif self._search.wanted.terms:
            self.look_for(EVERYTHING)
        self._draw()

    # -- pages and orders ------------------------------------------------------------------------------------------

    def action_next_page(self) -> None:
        """Show the next page."""
        if (mark := self._search.follows) is not None:
            self._turn_to(self._pages.forward(mark))
        else:
            self.notify("This is the last page." if not self._search.is_searching else "Still searching this page.")

    def action_previous_page(self) -> None:
        """Show the page before, exactly as it began."""
        if self._pages.number > 1:
            self._turn_to(self._pages.back())
        else:
            self.notify("This is the first page.")

    def _turn_to(self, pages: Pages, wanted: Filter | None = None) -> None:
        self._pages = pages
        self._search = Search.of(self._search.wanted if wanted is None else wanted, pages.begin)
        self._gathering = None
        self._trouble = ""
        if self.stands:
            self.query_one(FilterBar).show(self._search.wanted)
            self._table.is_followed = False
            self._table.say_when_empty("Looking…")
            self._table.replace([])
            self._draw_page_line()
        self.ask()

    def action_order(self) -> None:
        """Show the page in the next order."""
        before, self._order = ORDERS[self._order], self._next_order()
        if before.is_newest or ORDERS[self._order].is_newest:
            self._turn_to(Pages((PageCursor.newest(),)) if ORDERS[self._order].is_newest else Pages())
        else:
            self._draw()
            self._table.release()

    def _next_order(self) -> int:
        """Return the next order that makes sense: states have orders of their own, and named jobs need none."""
        following = (self._order + 1) % len(ORDERS)
        return following + (ORDERS[following].is_newest and not self._can_be_newest)

    @property
    def _can_be_newest(self) -> bool:
        asked = self._search.wanted.job_filter
        return asked.state is None and asked.worker is None and not asked.names_jobs

    def action_follow(self) -> None:
        """Stay at the top of the list, the newest jobs first where the filter allows it; once more ends that."""
        table = self._table
        if table.is_followed:
            table.action_move(0)
        elif table.marks:
            self.notify("Rows keep their place while some are marked; esc drops the marks.")
        else:
            newest = next(number for number, order in enumerate(ORDERS) if order.is_newest)
            self._order = newest if self._can_be_newest else 0
            self._turn_to(Pages((PageCursor.newest(),)) if self._can_be_newest else Pages())
            table.follow()
            self._draw()

    def on_jobs_table_unfollowed(self) -> None:
        """Say that it is over."""
        self._draw_page_line()
        self.refresh_bindings()

    # -- marks -----------------------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark the job under the cursor, or unmark it, and go on to the next."""
        table = self._table
        if (key := table.highlighted) is None:
            return
        table.marks ^= {key}
        self._last_mark = key
        table.action_move(1)
        self._draw()

    def action_mark_range(self) -> None:
        """Mark every row from the last one marked to the cursor."""
        keys = self._table.keys
        first, last = self._last_mark, self._table.highlighted
        if last is None:
            return
        begin = keys.index(first) if first in keys else keys.index(last)
        low, high = sorted((begin, keys.index(last)))
        self._table.marks |= set(keys[low : high + 1])
        self._last_mark = last
        self._draw()

    def action_mark_page(self) -> None:
        """Mark every row of the page, or unmark them when all are."""
        self._end_following()
        keys = {key for key in self._table.keys if not self._table.is_gone(key)}
        if keys <= self._table.marks:
            self._table.marks -= keys
        else:
            self._table.marks |= keys
        self._draw()

    def action_mark_all(self) -> None:
        """Mark every job that matches the filter, up to a bound."""
        self._end_following()
        most = self.console.options.bulk_cap
        search = Search(wanted=self._search.wanted, limit=GATHERED_AT_ONCE, page=GATHERED_AT_ONCE, most=most)
        self._gathering = BulkMark(search, most)
        self.ask()
        self._draw()

    def _end_following(self) -> None:
        if self._table.is_followed:
            self._table.action_move(0)

    def _gathered(self, gathering: BulkMark, question: PageQuestion, page: JobPage) -> None:
        if question.what != gathering.search.ask:
            return
        self._gathering = gathering = gathering.answered(gathering.search.answered(page, self.console.now))
        if gathering.is_over:
            self._gathering = None
            self._mark_gathered(gathering)
        self.ask()
        self._draw()

    def _mark_gathered(self, gathering: BulkMark) -> None:
        self._seen.update({str(each.job.id): each for each in gathering.found})
        self._table.marks |= {str(each.job.id) for each in gathering.found}
        more = "; more match, but no more are marked at once" if len(gathering.found) == gathering.most else ""
        self.notify(f"{formatting.counted(len(gathering.found), 'job')} marked{more}.")

    # -- other commands --------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Show everything about the job under the cursor."""
        from gw_tui.screens.job import JobScreen

        if (key := self._table.highlighted) is not None:
            self.app.push_screen(JobScreen(int(key), self.neighbour))

    def action_unmask(self) -> None:
        """Show what looks like a secret, or hide it again."""
        self._is_unmasked = not self._is_unmasked
        self._draw()

    def action_copy(self) -> None:
        """Copy the ids of the jobs meant."""
        ids = ",".join(str(each.job.id) for each in self.targets())
        self.console.copy(ids)

    @work
    async def action_export(self) -> None:
        """Write what is marked, or else the page, to a file."""
        jobs = self.targets() if self._table.marks else self._search.jobs
        title = f"Write {formatting.counted(len(jobs), 'job')} to a file"
        if (kind := await self.app.push_screen_wait(Choose(title, export.KINDS))) is None:
            return
        path = Path(f"gw-jobs-{self.console.now:%Y%m%dT%H%M%SZ}.{kind}")
        try:
            await asyncio.to_thread(export.write, path, jobs, unmask=self._is_unmasked)
        except OSError as error:
            self.notify(f"{path} cannot be written: {error.strerror}", severity="error", markup=False)
        else:
            self.notify(f"{formatting.counted(len(jobs), 'job')} written to {path}", markup=False)


async def show_jobs(console: ConsoleApp, text: str) -> None:
    """Go to the jobs that match a filter."""
    await console.switch_mode("jobs")
    screen = console.screen
    if isinstance(screen, JobsScreen):
        screen.look_for(parse(text))
