"""One page of jobs being found, shown and kept fresh: what to ask next, and what an answer makes of it.

Most pages come with the first answer and are asked for anew at each tick. A filter that no index serves takes several
answers; its finds stream in, and once it is over only what was found is looked at again, for searching costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from gw_core import JobFilter
from gw_core.operations import FoundJob, JobPage, PageCursor
from gw_tui.rules.filter_language import EVERYTHING, Filter

PAGE: Final = 100
MAX_ROWS: Final = 200
MAX_LISTED: Final = 5_000
"""So many jobs are classify_error here after one answer, when few of them match."""

MAX_LISTED_WITH_PAYLOAD: Final = 100
FIRST_LISTED: Final = 1_000
"""So many at first: the whole of a small queue, in one answer."""

CHEAP: Final = 20_000
"""A search that looked at no more jobs than this is made anew at each tick."""

FEWER: Final = 8


class Stage(StrEnum):
    """How far a search has come."""

    SEARCHING = "searching"
    FULL = "full"
    """The page is full; more may follow."""
    OVER = "over"
    """Nothing follows."""
    STOPPED = "stopped"
    """The operator had enough of it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What to ask the core for: the jobs that match and follow a mark, or of all those only the ones with these ids."""

    wanted: Filter
    after: PageCursor | None
    limit: int
    with_payload: bool = False
    ids: tuple[int, ...] | None = None

    def filter(self, now: datetime) -> JobFilter:
        """Return the filter at a moment of the database's clock."""
        if self.ids is None:
            return self.wanted.asked(now)
        return JobFilter(state=self.wanted.job_filter.state, ids=self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A page that begins after a mark, as far as it was found; `jobs` is what to show."""

    wanted: Filter = EVERYTHING
    begin: PageCursor | None = None
    jobs: tuple[FoundJob, ...] = ()
    scanned: int = 0
    stage: Stage = Stage.SEARCHING
    go_on: PageCursor | None = None
    limit: int = PAGE
    page: int = PAGE
    """So many jobs fill the page."""
    most: int = MAX_ROWS
    """It holds no more than these."""
    coming: Search | None = None
    """The same page being made anew behind the one shown."""
    asks: int = 0
    order: str = "id"
    """In which order the jobs are."""

    @classmethod
    def of(cls, wanted: Filter, begin: PageCursor | None = None) -> Search:
        """Begin to make the page of a filter that begins after a mark."""
        return cls(wanted=wanted, begin=begin, limit=FIRST_LISTED if wanted.rest else PAGE)

    @property
    def is_searching(self) -> bool:
        """True while answers are awaited that add to the page."""
        return self.stage is Stage.SEARCHING

    @property
    def is_dear(self) -> bool:
        """True when making the page anew would look at too many jobs."""
        return self.scanned > CHEAP

    @property
    def is_midway(self) -> bool:
        """True when the next answer goes on where another ended, and must not be asked for twice."""
        return (self.is_searching and self.asks > 0) or self.coming is not None

    @property
    def is_live(self) -> bool:
        """True when the page can be asked for at each tick: it comes with one answer, or its finds are looked up."""
        return not self.is_searching and (self.is_dear or self.asks <= 1)

    @property
    def follows(self) -> PageCursor | None:
        """Where the next page begins; None when nothing can follow, or nobody knows yet."""
        return self.go_on if self.stage in (Stage.FULL, Stage.STOPPED) else None

    @property
    def ask(self) -> Ask:
        """What to ask for next."""
        if self.is_searching:
            most = MAX_LISTED_WITH_PAYLOAD if self.wanted.needs_payload else MAX_LISTED
            after = self.begin if self.go_on is None else self.go_on
            return Ask(self.wanted, after, min(self.limit, most), self.wanted.needs_payload)
        if self.is_dear:
            return Ask(self.wanted, None, MAX_ROWS, ids=tuple(each.job.id for each in self.jobs))
        return self._anew.ask

    def answered(self, page: JobPage, now: datetime) -> Search:
        """Return the search after an answer to `ask`; `now` is the database's moment."""
        if self.is_searching:
            return self._found(page, now)
        if self.is_dear:
            return replace(self, jobs=self._looked_up(page))
        coming = self._anew.answered(page, now)
        if coming.is_searching and not coming.is_dear:
            return replace(self, coming=coming)
        return coming

    def stopped(self) -> Search:
        """Return the search with what was found so far, and no more to come."""
        return replace(self, stage=Stage.STOPPED) if self.is_searching else self

    @property
    def _anew(self) -> Search:
        return self.coming or replace(_BLANK, wanted=self.wanted, begin=self.begin, limit=self.limit)

    def _looked_up(self, page: JobPage) -> tuple[FoundJob, ...]:
        """Return what is left of the finds, in the order in which they were found."""
        now = {each.job.id: each for each in page.jobs}
        return tuple(now[each.job.id] for each in self.jobs if each.job.id in now)

    def _found(self, page: JobPage, now: datetime) -> Search:
        matching = [each for each in page.jobs if self.wanted.matches(each, now)]
        if len(self.jobs) + len(matching) > self.most and self.limit > self.page:
            # Where among them a page could end is not known: the same again, in smaller portions.
            return replace(self, limit=max(self.page, self.limit // FEWER), asks=self.asks + 1)
        jobs = (*self.jobs, *matching)
        full = len(jobs) >= self.page or self._is_filled_by(page)
        return replace(
            self,
            jobs=jobs,
            scanned=self.scanned + page.scanned,
            stage=Stage.OVER if page.after is None else Stage.FULL if full else Stage.SEARCHING,
            go_on=page.after,
            limit=self._next_limit(len(page.jobs), len(matching)),
            asks=self.asks + 1,
            order=page.order,
        )

    def _is_filled_by(self, page: JobPage) -> bool:
        """Tell whether an answer fills the page although it lost jobs that changed meanwhile."""
        return page.is_full and not self.wanted.rest

    def _next_limit(self, listed: int, matching: int) -> int:
        """Ask for as many as will probably fill the page."""
        if not self.wanted.rest or listed == 0:
            return self.limit
        likely = self.page * listed // matching if matching else self.limit * FEWER
        return max(self.page, min(likely, self.limit * FEWER, MAX_LISTED))


_BLANK: Final = Search()


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages gone through: the marks at which they began, so that the way back is exact."""

    begins: tuple[PageCursor | None, ...] = (None,)

    @property
    def number(self) -> int:
        """The number of the page shown, from 1."""
        return len(self.begins)

    @property
    def begin(self) -> PageCursor | None:
        """The mark at which the page shown begins."""
        return self.begins[-1]

    def forward(self, mark: PageCursor) -> Pages:
        """Go to the page that begins at a mark."""
        return Pages((*self.begins, mark))

    def back(self) -> Pages:
        """Go back one page, or stay on the first."""
        return Pages(self.begins[:-1] or self.begins)
