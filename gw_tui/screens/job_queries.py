"""What screens ask about lists of jobs, beside the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from gw_core.front_ends import NameKind
from gw_core.operations import JobPage
from gw_tui.data.source import DataSource, Query
from gw_tui.rules.search import Ask

TIMEOUT: Final = timedelta(milliseconds=200)


@dataclass(frozen=True)
class PageQuery(Query):
    """A page of jobs, at each tick."""

    what: Ask

    def ask(self, source: DataSource) -> JobPage:
        return source.page(self.what.wanted, after=self.what.after, limit=self.what.limit, timeout=TIMEOUT)


@dataclass(frozen=True)
class StepQuery(PageQuery):
    """One step of a search: once."""

    every: ClassVar[timedelta | None] = timedelta(hours=1)


@dataclass(frozen=True)
class NamesQuery(Query):
    """Names to suggest while a filter is typed."""

    every: ClassVar[timedelta | None] = timedelta(seconds=30)

    def ask(self, source: DataSource) -> Mapping[str, Sequence[str]]:
        """Return the names of tasks, queues and workers; these tables are small."""
        return {kind.value: source.names(kind) for kind in (NameKind.TASKS, NameKind.QUEUES, NameKind.WORKERS)}
