"""How wide the columns of a table are: as their contents need, as far as there is room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from gw_tui.rules.preferences import TableSort
from gw_tui.text import sanitize
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow

GAP: Final = 1
"""Cells between two columns."""
MAX_MEASURED: Final = 200
"""Longer contents do not fit on any terminal."""


class ColumnWidths:
    """The columns of a table, and the widths of those that are shown."""

    def __init__(self, columns: Sequence[TableColumn]) -> None:
        self.columns = tuple(columns)
        self.widths: dict[str, int] = {}
        self._needed: dict[str, int] = {}  # the widest content of each column since `forget`
        self._sort: TableSort | None = None

    def forget(self) -> None:
        """Forget the contents measured so far."""
        self._needed.clear()

    def measure(self, rows: Iterable[TableRow]) -> bool:
        """Note the widest content of each column; return True if one is wider than before."""
        before = dict(self._needed)
        for row in rows:
            for column in self.columns:
                cell = row.cells.get(column.key, "")
                text = (cell.text if isinstance(cell, Cell) else cell)[:MAX_MEASURED]
                if len(text) > self._needed.get(column.key, 0) or not text.isascii():
                    needed = cell_len(sanitize.line(text))
                    self._needed[column.key] = max(self._needed.get(column.key, 0), needed)
        return before != self._needed

    def fit(self, width: int, sort: TableSort | None) -> None:
        """Choose the columns that fit, and their widths."""
        self._sort = sort
        kept = list(self.columns)
        while len(kept) > 1 and self._total(kept) > width:
            kept.remove(min(kept, key=lambda column: column.rank))
        self.widths = {column.key: self._size_of(column) for column in kept}
        self._widen(kept, max(0, width - self._total(kept)))

    def _widen(self, kept: Sequence[TableColumn], spare: int) -> None:
        """Give columns what is left, those that need little first; one that needs at most half of it is shown whole."""
        flexible = sorted((each for each in kept if each.width is None), key=self._missing)
        parts = sum(column.share for column in flexible)
        for column in flexible:
            missing, share = self._missing(column), spare * column.share // parts
            more = missing if missing <= spare // 2 else min(share, missing)
            self.widths[column.key] += more
            spare, parts = spare - more, parts - column.share
        for column in sorted(kept, key=self._missing):  # also beyond the usual width, where there is room
            more = min(spare, self._missing(column))
            self.widths[column.key] += more
            spare -= more

    def shown(self) -> Iterator[tuple[TableColumn, int]]:
        """Yield the columns that fit, from left to right, with their widths."""
        for column in self.columns:
            if (width := self.widths.get(column.key)) is not None:
                yield column, width

    def _size_of(self, column: TableColumn) -> int:
        """Return the width that a column needs at least."""
        if column.width is None:
            return column.least
        size = min(column.width, max(len(column.title), self._needed.get(column.key, 0)))
        title = titled(column, self._sort)
        return size if title == column.title else max(size, len(title))

    def _missing(self, column: TableColumn) -> int:
        """Return how much wider a column must be to show all of its contents."""
        needed = max(self._needed.get(column.key, 0), len(titled(column, self._sort)))
        return max(0, needed - self.widths[column.key])

    def _total(self, columns: Iterable[TableColumn]) -> int:
        return sum(self._size_of(column) + GAP for column in columns)


def titled(column: TableColumn, sort: TableSort | None) -> str:
    """Return the title of a column, with the direction of the sort if the table is sorted by it."""
    return column.title if sort is None or sort.column != column.key else f"{column.title}{sort.arrow}"
