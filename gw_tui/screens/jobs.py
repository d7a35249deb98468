"""Find jobs, and choose those to act on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.timer import Timer

from gw_core import JobState, Selection
from gw_core.errors import SelectionError
from gw_core.front_ends import EVERYTHING, FoundJob, PageCursor, counted
from gw_core.operations import JobPage
from gw_core.selection import parse
from gw_tui.actions import GONE
from gw_tui.data.source import Query
from gw_tui.dialogs import export
from gw_tui.dialogs.choose import Choose
from gw_tui.rules.alerts import knows_workers
from gw_tui.rules.commands import BY_ID, Risk
from gw_tui.rules.preferences import TableSort
from gw_tui.rules.search import Ask, BulkMark, Search, Stage
from gw_tui.screens.job_actions import AddJobMixin, JobActionsMixin
from gw_tui.screens.job_queries import NamesQuery, PageQuery, StepQuery
from gw_tui.screens.list_screen import LOADING, ListScreen, facts
from gw_tui.screens.pause_actions import PauseMixin
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize
from gw_tui.text.redact import masked
from gw_tui.widgets.filter_bar import LONGEST, FilterBar
from gw_tui.widgets.job_rows import RowContext, columns_for, facts_of, row_of
from gw_tui.widgets.jobs_table import JobsTable
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import TableColumn, TableRow

if TYPE_CHECKING:
    from gw_tui.actions import Result

REBUILD_INTERVAL: Final = 5.0
"""A page that takes several answers is rebuilt after this many seconds."""

FOUND_ORDERS: Final = {
    "id": "by id",
    "turn": "in claim order",
    "failed": "latest failure first",
    "newest": "newest first",
    "state": "running, next, backoff, failed, later",
}
NEWEST: Final = PageCursor.newest()
BY_STATE: Final = PageCursor.by_state()
LAST_BY_STATE: Final = "Last page: 1,000 jobs of each state and 300 for later are listed; a filter finds others"
BY_NEWEST: Final = TableSort("id", is_descending=True)
"""The only order of a column that an index gives over all pages."""
MARK_PAGE_SIZE: Final = 1_000


class JobsScreen(JobActionsMixin, WorkerActionsMixin, PauseMixin, AddJobMixin, ListScreen[Search, FoundJob]):
    """A page of the jobs that match a filter; marks are kept by id over pages and filters."""

    SCREEN_ID = "jobs"
    TABLE = "jobs"
    PREVIEW = "beside"
    SORT_NOTE = "Newest first (id) is in order over all pages, if no state is chosen. Other columns sort each page."

    def __init__(self) -> None:
        super().__init__()
        self.begins: tuple[PageCursor | None, ...] = (BY_STATE,)
        """The cursors of the pages up to this one."""
        self.search = Search(begin=BY_STATE)
        self._seen: dict[str, FoundJob] = {}
        self._last_mark: str | None = None
        self.gathering: BulkMark | None = None
        self._is_unmasked = False
        self._again: Timer | None = None

    def body(self) -> ComposeResult:
        yield FilterBar()
        yield from super().body()

    def new_table(self) -> KeyedTable:
        return JobsTable(columns_for(80), empty=LOADING, id=self.TABLE)

    def on_mount(self) -> None:
        if self.search.wanted is EVERYTHING and self.state.options.filter:
            self.take_filter(self.state.options.filter)
        self.query_one(FilterBar).show(self.search.wanted)

    # -- for others ------------------------------------------------------------------------------------------------

    def take_filter(self, text: str) -> None:
        try:
            self.apply_filter(parse(text))
        except SelectionError as error:
            self.notify(sanitize.line(error), title="Invalid filter", severity="error")

    def apply_filter(self, wanted: Selection) -> None:
        """Show the jobs that match a filter, from the first page on."""
        if not self.state.options.show_payload and wanted.needs_payload:
            words = "Payload filters are unavailable with --no-payload"
            self.notify(words, severity="warning")
            return
        self._turn_to(self._first_page(wanted, self.choice.sort), wanted)

    def targets(self) -> tuple[FoundJob, ...]:
        """Return the jobs that an action applies to, as displayed: the marked ones, or else the selected one."""
        table = self.table
        keys = table.marks or ({table.highlighted} if table.highlighted is not None else set())
        keys = {key for key in keys if not table.is_gone(key)}
        return tuple(self._seen[key] for key in sorted(keys, key=int) if key in self._seen)

    def task_to_add(self) -> str:
        found = self._seen.get(self.table.highlighted or "")
        return "" if found is None else found.job.task

    def pause_target(self) -> str | None:
        return f"task:{task}" if (task := self.task_to_add()) else None

    def holder(self) -> str | None:
        found = self._seen.get(self.table.highlighted or "")
        return None if found is None else found.job.locked_by

    def done_with(self, result: Result) -> None:
        """Take the marks from the jobs that were changed or are gone; those left alone keep theirs."""
        self.table.marks -= {*result.done, *(each.what for each in result.skipped if each.why == GONE)}
        self.draw()

    def neighbour(self, job_id: int, step: int) -> int | None:
        """Return the id of the job this many rows further in the list, and put the cursor there."""
        keys = self.table.keys
        if str(job_id) not in keys:
            return None
        place = keys.index(str(job_id)) + step
        if not 0 <= place < len(keys):
            return None
        self.table.move_to(keys[place])
        return int(keys[place])

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> Query | None:
        """Return what to ask now: names while a filter is typed, a step of a search, or the page."""
        if self.stands and self.query_one(FilterBar).is_editing:
            return NamesQuery()
        if self.gathering is not None:
            return StepQuery(self.gathering.ask)
        return (StepQuery if self.search.is_midway else PageQuery)(self.search.ask)

    def show_answer(self, query: Query, answer: object) -> None:
        """Draw what came back, and go on with a search that is not over."""
        if isinstance(query, NamesQuery) and self.stands:
            self.query_one(FilterBar).know(answer)  # type: ignore[arg-type] # each query has its kind of answer
        elif isinstance(query, PageQuery) and isinstance(answer, JobPage) and self.stands:
            self.failure = ""
            if self.gathering is not None:
                self._gathered(self.gathering, query, answer)
            elif query.what == self.search.ask:
                self._answered(query, answer)

    def _answered(self, query: PageQuery, page: JobPage) -> None:
        self.search = self.search.answered(page)
        self.draw()
        if self.search.is_midway:
            self.ask()
        elif not self.search.is_live:
            if self._again is not None:
                self._again.stop()
            self._again = self.set_timer(REBUILD_INTERVAL, self._rebuild)
        elif query.what != self.search.ask:
            self.ask()

    def _rebuild(self) -> None:
        """Start to rebuild a page that takes several answers, unless another query is in progress."""
        if not self.search.is_midway and not self.search.is_live and self.gathering is None:
            self.ask()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def table(self) -> JobsTable:
        return self.query_one("#jobs", JobsTable)

    @property
    def known(self) -> Search | None:
        return self.search if self.search.asks or self.gathering is not None else None

    def rows(self, known: Search) -> list[TableRow] | None:
        if not known.asks:
            return None
        now, around = self.state.now, RowContext.from_snapshot(self.state.snapshot)
        self._keep_seen(self.search.jobs)
        return [row_of(each, now, around, unmask=self._is_unmasked) for each in self.search.jobs]

    def _keep_seen(self, jobs: Sequence[FoundJob]) -> None:
        """Keep jobs as they are seen: those on the page, and those that are marked."""
        marks = self.table.marks | set(self.table.keys)
        kept = {key: found for key, found in self._seen.items() if key in marks}
        self._seen = {**kept, **{str(each.job.id): each for each in jobs}}

    def emptiness(self, known: Search) -> str:
        if self.search.is_searching:
            return "Searching…"
        if not self.search.wanted.conditions:
            return "No jobs"
        return f"No matches in {counted(self.search.scanned, 'job')} read" if self.search.is_dear else "No matches"

    @property
    def has_warning(self) -> bool:
        return bool(self.failure) or self.search.is_searching

    def status(self, known: Search) -> Iterator[str]:
        """Yield the parts of the status line, the most important first."""
        search, table, snapshot = known, self.table, self.state.snapshot
        if self.gathering is not None:
            so_far = len(self.gathering.found)
            yield f"marking all matches: {so_far:,} so far · esc stops"
            return
        if search.is_searching:
            yield f"searching: {search.scanned:,} read, {len(search.jobs)} found · esc stops"
        else:
            yield self._extent()
        if snapshot is not None and not knows_workers(snapshot):
            yield "workers and locked queues unknown"
        if table.is_followed:
            yield "following · moving the cursor ends it"
        if table.marks:
            yield f"{len(table.marks):,} marked"
        if table.waiting:
            yield f"{counted(table.waiting, 'change')} (.)"
        if table.sort is None:
            yield FOUND_ORDERS.get(search.order, "as found")
        if search.stage is Stage.STOPPED:
            yield f"stopped after {search.scanned:,} · n continues"
        elif search.is_dear and not search.is_searching:
            yield f"{search.scanned:,} read · only these rows are refreshed"

    def _extent(self) -> str:
        jobs = len(self.search.jobs)
        if len(self.begins) == 1 and self.search.stage is Stage.OVER:
            return counted(jobs, "job")
        more = "" if self.search.stage is Stage.OVER else self._of_how_many()
        return f"page {len(self.begins)} · {jobs} rows{more}"

    def _of_how_many(self) -> str:
        """Return how many there are in all, where the snapshot knows."""
        snapshot, wanted = self.state.snapshot, self.search.wanted
        if snapshot is None:
            return ""
        counts = {
            Selection(): snapshot.total,
            Selection.of(state=JobState.FAILED): snapshot.failed,
            Selection.of(state=JobState.RUNNING): snapshot.running,
            Selection.of(state=JobState.READY): snapshot.ready,
        }
        count = counts.get(wanted)
        return "" if count is None else f" of {formatting.count(count)}"

    def sort_words(self, sort: TableSort) -> str:
        return FOUND_ORDERS["newest"] if self.begins[0] == NEWEST else super().sort_words(sort)

    def columns_for(self, width: int) -> Sequence[TableColumn]:
        return columns_for(width)

    def preview(self) -> Content:
        key = self.table.highlighted or ""
        if (found := self._seen.get(key)) is None:
            return Content("")
        error = found.job.last_error or ""
        known = facts_of(found, self.state.now, is_gone=self.table.is_gone(key))
        return facts(known, error if self._is_unmasked else masked(error))

    # -- the filter ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.gathering is not None and action in BY_ID and BY_ID[action].risk is not Risk.NONE:
            return None  # what the action would change is not known yet
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        self.query_one(FilterBar).edit()

    def on_filter_bar_began(self) -> None:
        """Ask for names to suggest."""
        self.ask()

    def on_filter_bar_left(self) -> None:
        """Go on with the page."""
        self.table.focus()
        self.ask()

    def on_filter_bar_submitted(self, event: FilterBar.Submitted) -> None:
        self.table.focus()
        self.keep_filter(sanitize.line(event.wanted, LONGEST))
        self.apply_filter(event.wanted)

    def action_back(self) -> None:
        """Stop a search, drop the marks, or drop the filter: the first of these that there is."""
        if self.gathering is not None:
            self.gathering = None
            self.refresh_bindings()
            self.ask()
        elif self.search.is_searching and self.search.asks:
            self.search = self.search.stopped()
            self.ask()
        elif self.table.marks:
            self.table.marks.clear()
            self.table.release()
        elif self.search.wanted.conditions:
            if self.is_view:  # its columns and its order go with its filter
                self.use_choice(self.state.options.preferences.choice(self.SCREEN_ID))
            self.apply_filter(EVERYTHING)
        self.draw()

    # -- pages and orders ------------------------------------------------------------------------------------------

    def action_next_page(self) -> None:
        if (mark := self.search.follows) is not None:
            self._turn_to((*self.begins, mark))
        elif self.search.is_searching:
            self.notify("Still searching this page")
        else:
            self.notify(LAST_BY_STATE if self.begins[0] == BY_STATE else "Last page")

    def action_previous_page(self) -> None:
        """Show the page before, exactly as it began."""
        if len(self.begins) > 1:
            self._turn_to(self.begins[:-1])
        else:
            self.notify("First page")

    def _turn_to(self, begins: tuple[PageCursor | None, ...], wanted: Selection | None = None) -> None:
        self.begins = begins
        self.search = Search(wanted=self.search.wanted if wanted is None else wanted, begin=begins[-1])
        self.gathering = None
        self.failure = ""
        if self.stands:
            self.query_one(FilterBar).show(self.search.wanted)
            self.table.is_followed = False
            self.table.say_when_empty(LOADING)
            self.table.replace([])
            self.draw_status()
        self.ask()

    def use_sort(self, sort: TableSort | None) -> None:
        """Sort the page; from the newest job on, read other pages."""
        self.table.sort = sort
        first = self._first_page(self.search.wanted, sort)
        if first[0] != self.begins[0]:
            self._turn_to(first)
        super().use_sort(sort)

    @staticmethod
    def _first_page(wanted: Selection, sort: TableSort | None) -> tuple[PageCursor | None]:
        """Return the first page; states have orders of their own, and named jobs need none."""
        can_be_newest = wanted.states == set(JobState) and not wanted.is_by_name
        if sort == BY_NEWEST and can_be_newest:
            return (NEWEST,)
        return (None if wanted.conditions else BY_STATE,)

    def action_follow(self) -> None:
        """Stay at the top of the list, newest jobs first if the filter allows it; pressed again, end that."""
        table = self.table
        if table.is_followed:
            table.action_move(0)
        elif table.marks:
            self.notify("Marked rows keep their places; esc clears the marks")
        else:
            first = self._first_page(self.search.wanted, BY_NEWEST)
            table.sort = BY_NEWEST if first[0] == NEWEST else None
            self._turn_to(first)
            table.follow()
            self.draw()

    def on_jobs_table_unfollowed(self) -> None:
        self.draw_status()
        self.refresh_bindings()

    # -- marks -----------------------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        table = self.table
        if (key := table.highlighted) is None:
            return
        table.marks ^= {key}
        self._last_mark = key
        table.action_move(1)
        self.draw()

    def action_mark_range(self) -> None:
        keys = self.table.keys
        first, last = self._last_mark, self.table.highlighted
        if last is None:
            return
        begin = keys.index(first) if first in keys else keys.index(last)
        low, high = sorted((begin, keys.index(last)))
        self.table.marks |= set(keys[low : high + 1])
        self._last_mark = last
        self.draw()

    def action_mark_page(self) -> None:
        self._end_following()
        keys = {key for key in self.table.keys if not self.table.is_gone(key)}
        if keys <= self.table.marks:
            self.table.marks -= keys
        else:
            self.table.marks |= keys
        self.draw()

    def action_mark_all(self) -> None:
        """Mark every job that matches the filter, up to a bound."""
        self._end_following()
        most = self.state.options.max_marked
        wanted = self.search.wanted
        # In the order of claims, a list ends after a thousand jobs.
        first = None if wanted.states == {JobState.FAILED} else PageCursor.after_id(0)
        self.gathering = BulkMark(Ask(wanted, first, MARK_PAGE_SIZE), most)
        self.refresh_bindings()
        self.ask()
        self.draw()

    def _end_following(self) -> None:
        if self.table.is_followed:
            self.table.action_move(0)

    def _gathered(self, gathering: BulkMark, query: PageQuery, page: JobPage) -> None:
        if query.what != gathering.ask:
            return
        self.gathering = gathering = gathering.answered(page)
        if gathering.is_over:
            self.gathering = None
            self._mark_gathered(gathering)
            self.refresh_bindings()
        self.ask()
        self.draw()

    def _mark_gathered(self, gathering: BulkMark) -> None:
        self._seen.update({str(each.job.id): each for each in gathering.found})
        self.table.marks |= {str(each.job.id) for each in gathering.found}
        more = " (the limit); more match" if len(gathering.found) == gathering.most else ""
        self.notify(f"{counted(len(gathering.found), 'job')} marked{more}")

    # -- other commands --------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        from gw_tui.screens.job import JobScreen

        if (key := self.table.highlighted) is not None:
            self.app.push_screen(JobScreen(int(key), self.neighbour))

    def action_unmask(self) -> None:
        self._is_unmasked = not self._is_unmasked
        self.draw()

    def action_copy(self) -> None:
        ids = ",".join(str(each.job.id) for each in self.targets())
        self.console.copy(ids)

    @work
    async def action_export(self) -> None:
        jobs = self.targets() if self.table.marks else self.search.jobs
        title = f"Export {counted(len(jobs), 'job')}"
        if (kind := await self.app.push_screen_wait(Choose(title, export.KINDS))) is None:
            return
        path = Path(f"gw-jobs-{self.state.now:%Y%m%dT%H%M%SZ}.{kind}")
        try:
            await asyncio.to_thread(export.write, path, jobs, unmask=self._is_unmasked)
        except OSError as error:
            self.notify(f"{path} cannot be written: {error.strerror}", severity="error")
        else:
            self.notify(f"{counted(len(jobs), 'job')} written to {path}")
