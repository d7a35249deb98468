"""One page of jobs being found, shown and kept fresh: what to ask next, and what an answer makes of it.

Most pages arrive with the first answer and are queried again at each tick. A filter that no index serves takes several
answers; its results stream in. After it ends, only the results are refreshed, because searching is expensive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gw_core import JobState, Selection
from gw_core.front_ends import EVERYTHING, FoundJob, PageCursor
from gw_core.operations import JobPage

PAGE: Final = 100
MAX_ROWS: Final = 200
CHEAP: Final = 20_000
"""A search that scanned no more jobs than this is repeated at each tick."""


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
    """What to ask the core for: the jobs that match and follow a mark."""

    wanted: Selection
    after: PageCursor | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A page that begins after a mark, as far as it was found; `jobs` is what to show."""

    wanted: Selection = EVERYTHING
    begin: PageCursor | None = None
    jobs: tuple[FoundJob, ...] = ()
    scanned: int = 0
    stage: Stage = Stage.SEARCHING
    go_on: PageCursor | None = None
    coming: Search | None = None
    """The same page, being rebuilt in the background."""
    asks: int = 0
    order: str = "id"
    """In which order the jobs are."""

    @property
    def is_searching(self) -> bool:
        """True while answers are awaited that add to the page."""
        return self.stage is Stage.SEARCHING

    @property
    def is_dear(self) -> bool:
        """True when rebuilding the page would scan too many jobs."""
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
        """Where the next page begins; None when nothing can follow, or that is not known yet."""
        return self.go_on if self.stage in (Stage.FULL, Stage.STOPPED) else None

    @property
    def ask(self) -> Ask:
        """What to ask for next."""
        if self.is_searching:
            return Ask(self.wanted, self.begin if self.go_on is None else self.go_on, PAGE)
        if self.is_dear:
            # Jobs that were found before are only dropped when they change their state.
            states = [each for each in JobState if each in self.wanted.states]
            return Ask(Selection.of(id=[each.job.id for each in self.jobs], state=states), None, MAX_ROWS)
        return self._restarted.ask

    def answered(self, page: JobPage) -> Search:
        """Return the search after an answer to `ask`."""
        if self.is_searching:
            return self._found(page)
        if self.is_dear:
            return replace(self, jobs=self._refreshed(page))
        coming = self._restarted.answered(page)
        if coming.is_searching and not coming.is_dear:
            return replace(self, coming=coming)
        return coming

    def stopped(self) -> Search:
        """Return the search with what was found so far, and no more to come."""
        return replace(self, stage=Stage.STOPPED) if self.is_searching else self

    @property
    def _restarted(self) -> Search:
        return self.coming or Search(wanted=self.wanted, begin=self.begin)

    def _refreshed(self, page: JobPage) -> tuple[FoundJob, ...]:
        """Return what is left of the finds, in the order in which they were found."""
        now = {each.job.id: each for each in page.jobs}
        return tuple(now[each.job.id] for each in self.jobs if each.job.id in now)

    def _found(self, page: JobPage) -> Search:
        jobs = (*self.jobs, *page.jobs)
        # An answer also fills the page if jobs that changed in the meantime are missing from it.
        full = page.is_full or len(jobs) >= PAGE
        return replace(
            self,
            jobs=jobs,
            scanned=self.scanned + page.scanned,
            stage=Stage.OVER if page.after is None else Stage.FULL if full else Stage.SEARCHING,
            go_on=page.after,
            asks=self.asks + 1,
            order=page.order,
        )


@dataclass(frozen=True, slots=True)
class BulkMark:
    """All jobs that match, being gathered to be marked; `ask` is what to ask for next."""

    ask: Ask
    most: int
    found: tuple[FoundJob, ...] = ()
    is_over: bool = False

    def answered(self, page: JobPage) -> BulkMark:
        """Take over what an answer brought."""
        found = (*self.found, *page.jobs)[: self.most]
        is_over = page.after is None or len(found) == self.most
        return BulkMark(replace(self.ask, after=page.after), self.most, found, is_over)
