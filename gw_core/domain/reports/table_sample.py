"""The sample of a table that is too large to be counted."""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

COUNTED_PAGES: Final = 2_000
"""A larger table is sampled; a smaller one is counted, at about a microsecond for each row and 20 for each page."""
SAMPLED_PAGES: Final = 500
"""Pages that stand for the whole of a larger table: 10,000 to 30,000 jobs."""
MIN_PAGES: Final = 40
"""Pages that one read samples at least; with 65 jobs on each, in a table of ten million, it takes 6 ms."""
MAX_AGE: Final = 60.0
"""Seconds that what was read counts; asked every five seconds, the least a read samples then renews the whole."""

Rows = list[tuple[Any, ...]]


class _Part(NamedTuple):
    at: float
    pages: float
    share: float
    rows: Rows


class TableSample:
    """What the reads of the last minute sampled, together: of many reads, each takes few pages.

    The first read samples all pages. Times are seconds of one clock. The owner guards it against other threads.
    """

    def __init__(self) -> None:
        self._parts: deque[_Part] = deque()

    def next_share(self, table_pages: int, now: float) -> float:
        """Return the share (0 to 1) of a table of this many pages that is to be read next; 1 counts it."""
        if table_pages <= COUNTED_PAGES:
            return 1.0
        self._forget(now)
        return max(MIN_PAGES, SAMPLED_PAGES - self._pages) / table_pages

    def add(self, rows: Rows, share: float, table_pages: int, now: float) -> tuple[Rows, float]:
        """Add what was found in this share of the table; return all that counts now, and the share that it is of."""
        self._parts.append(_Part(now, share * table_pages, share, rows))
        self._forget(now)
        return [row for part in self._parts for row in part.rows], sum(part.share for part in self._parts)

    @property
    def _pages(self) -> float:
        return sum(part.pages for part in self._parts)

    def _forget(self, now: float) -> None:
        """Drop the parts that are too old, and those without which there are enough."""
        parts = self._parts
        while parts and (parts[0].at < now - MAX_AGE or self._pages - parts[0].pages >= SAMPLED_PAGES):
            parts.popleft()
