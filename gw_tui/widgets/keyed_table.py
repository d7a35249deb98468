"""A table whose cursor stands on a row and not on a place: what is highlighted changes only by the operator's hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gw_tui.rules.preferences import TableSort
from gw_tui.rules.stable_order import RowOrder, arranged, held
from gw_tui.text import sanitize
from gw_tui.text.symbols import GONE, MARK
from gw_tui.widgets.column_widths import GAP, ColumnWidths, titled
from gw_tui.widgets.contrast import readable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, sorted_rows

SETTLING: Final = 3.0
"""Rows keep their place for this many seconds after the cursor moved."""

GUTTER: Final = 2
ROLES: Final = (
    *("head", "cursor", "cursor-blurred", "gone", "mark"),
    *("quiet", "strong", "warning", "error"),
    *("ready", "running", "scheduled", "waiting", "backoff", "failed"),
)
"""What has a style of its own: parts of the table, roles of cells, and states."""


@dataclass
class TableMessage(Message):
    """Something happened in a table."""

    table: KeyedTable

    @property
    def control(self) -> KeyedTable:
        return self.table


class KeyedTable(ScrollView, can_focus=True):
    """Shows rows and moves a cursor over them. Texts are cleaned here; keys are not shown, and stay as they are."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"keyed-table--{role}" for role in ROLES}
    DEFAULT_CSS = """
    KeyedTable {
        height: 1fr;
        overflow-x: hidden;
        scrollbar-size-horizontal: 0;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move_page(-1)", "Page up", show=False),
        Binding("pagedown", "move_page(1)", "Page down", show=False),
        Binding("home,g", "move_to_end(-1)", "First", show=False),
        Binding("end,G", "move_to_end(1)", "Last", show=False),
    ]

    class Highlighted(TableMessage):
        """The operator moved the cursor, or the first rows arrived."""

    class Opened(TableMessage):
        """The operator clicked twice on a row, which is now under the cursor."""

    class Waiting(TableMessage):
        """Another number of changes wait to be shown while the rows are frozen."""

    class Sorted(TableMessage):
        """The operator chose another order by a click on a title."""

    def __init__(
        self,
        columns: Sequence[TableColumn],
        *,
        empty: str = "Nothing to show.",
        id: str | None = None,
        classes: str | None = None,
        starts_first: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._columns = ColumnWidths(columns)
        self.shown_rows: dict[str, TableRow] = {}
        self._shown = RowOrder(())
        self._latest: tuple[str, ...] = ()
        self.sort: TableSort | None = None
        """What the rows are sorted by; None leaves them in the order given."""
        self._empty = empty
        self._above = ""
        self._clock = clock
        self.moved_at: float | None = None
        self._is_moved = False  # the operator has moved the cursor since the list was last replaced
        self._has_rows = False
        self.starts_first = starts_first
        self._picture: list[tuple[object, ...]] = []
        self.highlighted: str | None = None
        """The key of the row under the cursor."""
        self.marks: set[str] = set()
        """The keys of marked rows, also of those not on this page."""

    # -- what is in it ---------------------------------------------------------------------------------------------

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys in the order shown."""
        return self._shown.order

    @property
    def widths(self) -> Mapping[str, int]:
        """The widths of the columns that are shown, from left to right."""
        return self._columns.widths

    @property
    def waiting(self) -> int:
        """How many changes wait to be shown."""
        return self._shown.waiting

    @property
    def is_holding(self) -> bool:
        """True while rows keep their place: something is marked, or the cursor has just moved."""
        moved_lately = self.moved_at is not None and self._clock() - self.moved_at < SETTLING
        return bool(self.marks) or moved_lately

    @property
    def shows_highlighted(self) -> bool:
        """True when the row under the cursor is visible."""
        index = self._index
        return index is not None and 0 <= index - self.scroll_offset.y < max(1, self.size.height - 1)

    @property
    def selected(self) -> object:
        """What the row under the cursor describes; None without a row, and for one that is gone."""
        row = self.shown_rows.get(self.highlighted or "")
        return None if row is None or self.is_gone(row.key) else row.item

    def is_gone(self, key: str) -> bool:
        """True for a row that is still shown, and in truth is there no more."""
        return key in self._shown.gone

    def apply(self, rows: Iterable[TableRow]) -> None:
        """Show new rows: cells change immediately; rows move only when they are not frozen."""
        wanted = {row.key: row for row in (rows if self.sort is None else sorted_rows(rows, self.sort))}
        self._latest = tuple(wanted)
        kept = {key: self.shown_rows[key] for key in self._shown.order if key in self.shown_rows}
        self.shown_rows = {**kept, **wanted}
        if self._columns.measure(wanted.values()):
            self._fit()
        if self.is_holding and self._shown.order:
            self._arrange(held(self._shown.order, self._latest))
        else:
            self._arrange(arranged(self._shown.order, self._latest, highlighted=self._kept))

    @property
    def _kept(self) -> str | None:
        """The key that the cursor stays on; None if it stays on the first row until the operator moves it."""
        return None if self.starts_first and not self._is_moved else self.highlighted

    def replace(self, rows: Iterable[TableRow]) -> None:
        """Show another list, with the cursor on its first row: the operator asked for it."""
        self._shown, self.moved_at, self._is_moved = RowOrder(()), None, False
        self._columns.forget()
        self._set_highlighted(None)
        self._has_rows = True
        self.apply(rows)
        self.scroll_to(y=0, animate=False, immediate=True)

    def release(self) -> None:
        """Show what has waited."""
        self.moved_at = None
        self._arrange(arranged(self._shown.order, self._latest, highlighted=self._kept))

    def set_columns(self, columns: Sequence[TableColumn]) -> None:
        self._columns.columns = tuple(columns)
        self._columns.measure(self.shown_rows.values())
        self._fit()
        self.refresh()

    def sort_by(self, sort: TableSort | None) -> None:
        """Show the rows in another order; None takes effect with the next rows."""
        self.sort = sort
        self.apply([self.shown_rows[key] for key in self._latest])
        self.release()
        self._fit()

    def next_sort(self, column: str) -> TableSort | None:
        """Return the order after a click on a title: numbers from the largest, then the reverse, then none."""
        if self.sort is None or self.sort.column != column:
            return self.first_sort(column)
        return self.sort.reversed if self.sort == self.first_sort(column) else None

    def first_sort(self, column: str) -> TableSort:
        """Return the usual order of a column: numbers and times from the largest, texts from A."""
        return TableSort(column, any(each.right for each in self._columns.columns if each.key == column))

    def say_when_empty(self, words: str) -> None:
        """Say this when there are no rows."""
        if words != self._empty:
            self._empty = words
            self.refresh()

    def move_to(self, key: str) -> None:
        """Put the cursor on a row, for the operator."""
        if key in self._shown.order:
            self._move_to_index(self._shown.order.index(key))

    def _arrange(self, new: RowOrder) -> None:
        before = self._index
        offset = None if before is None else before - self.scroll_offset.y
        was_waiting, self._shown = self._shown.waiting, new
        self.marks -= new.gone
        self.shown_rows = {key: self.shown_rows[key] for key in {*new.order, *self._latest}}
        if not new.waiting or not self.is_holding:
            self._has_rows = True
        # Without rows there is one line, for what an empty list shows.
        self.virtual_size = Size(self.size.width, max(1, len(new.order)) + 1)
        if self._kept is None or self.highlighted not in new.order:
            self._set_highlighted(new.order[0] if new.order else None)
        elif not self._is_moved:
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
        elif offset is not None and (index := self._index) is not None:
            self.scroll_to(y=max(0, index - offset), animate=False, immediate=True, force=True)
        if was_waiting != new.waiting:
            self.post_message(self.Waiting(self))
        self._refresh_changes()

    def _show_rows_above(self) -> None:
        """Report in the border, or in the head, how many rows are above the visible part."""
        above = self.scroll_offset.y
        words = f"↑ {above:,} above" if above else ""
        if words != self._above:
            self._above = words
            if self.has_class("panel"):
                self.border_subtitle = words
            else:
                self.refresh(Region(0, 0, self.size.width, 1))

    def _refresh_changes(self) -> None:
        """Draw only the lines that look different."""
        before, self._picture = self._picture, self._visible()
        if len(before) != len(self._picture) or before[:1] != self._picture[:1]:
            self.refresh()
            return
        changes = enumerate(zip(before, self._picture, strict=True))
        if lines := [Region(0, y, self.size.width, 1) for y, (old, new) in changes if old != new]:
            self.refresh(*lines)

    def _visible(self) -> list[tuple[object, ...]]:
        """Return what each line shows, the place it is scrolled to first."""
        top, height = self.scroll_offset.y, self.size.height
        shown, gone = self._shown.order[top : top + height], self._shown.gone
        head: tuple[object, ...] = (top, self.size, bool(shown))
        return [
            head,
            *((key, self.shown_rows[key], key in gone, key == self.highlighted, key in self.marks) for key in shown),
        ]

    # -- the cursor ------------------------------------------------------------------------------------------------

    @property
    def _index(self) -> int | None:
        if self.highlighted is None:
            return None
        try:
            return self._shown.order.index(self.highlighted)
        except ValueError:
            return None

    def action_move(self, by: int) -> None:
        self._move_to_index((self._index or 0) + by)

    def action_move_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 2))

    def action_move_to_end(self, direction: int) -> None:
        self._move_to_index(0 if direction < 0 else len(self._shown.order) - 1)

    def _move_to_index(self, index: int) -> None:
        order = self._shown.order
        if not order:
            return
        index = min(max(0, index), len(order) - 1)
        self.moved_at, self._is_moved = self._clock(), True
        self._set_highlighted(order[index])
        top, visible = self.scroll_offset.y, max(1, self.size.height - 1)
        if not top <= index < top + visible:
            wanted = index if index < top else index - visible + 1
            self.scroll_to(y=wanted, animate=False, immediate=True, force=True)
        self._refresh_changes()

    def _set_highlighted(self, key: str | None) -> None:
        if key != self.highlighted:
            self.highlighted = key
            self.post_message(self.Highlighted(self))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse points; twice opens."""
        place = event.get_content_offset(self)
        if place is not None and place.y == 0:
            self._sort_at(place.x)
            return
        index = -1 if place is None else place.y - 1 + self.scroll_offset.y
        if not 0 <= index < len(self._shown.order):
            return
        self._move_to_index(index)
        if event.chain == 2 and self.highlighted is not None:
            self.post_message(self.Opened(self))

    def _sort_at(self, x: int) -> None:
        """Sort by the column whose title is there."""
        begin = GUTTER
        for key, width in self.widths.items():
            if begin <= x < begin + width + GAP:
                self.sort_by(self.next_sort(key))
                self.post_message(self.Sorted(self))
            begin += width + GAP

    # -- how it looks ----------------------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Count the rows above whatever scrolled the list."""
        super().watch_scroll_y(old_value, new_value)
        self._show_rows_above()

    def on_resize(self) -> None:
        """Give the columns their widths."""
        self._fit()
        self.virtual_size = Size(self.size.width, len(self._shown.order) + 1)
        if (index := self._index) is not None and not 0 <= index - self.scroll_offset.y < self.size.height - 1:
            self.scroll_to(y=max(0, index - self.size.height + 2), animate=False, immediate=True, force=True)
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def _fit(self) -> None:
        self._columns.fit(self.size.width - GUTTER, self.sort)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line: the head, a row, or nothing."""
        width = self.size.width
        plain = self.rich_style
        index = y - 1 + self.scroll_offset.y
        if y == 0:
            style = plain + self._style("head")
            head = self._line([Segment(" " * GUTTER, style), *self._header(style)], width, style)
            is_said = not self._above or self.has_class("panel")
            return head if is_said else Strip(_stamped(list(head), width, style, self._above))
        if index >= len(self._shown.order):
            words = self._empty if index == 0 and self._has_rows else ""
            return self._line([Segment(f"{' ' * GUTTER}{words}", plain + self._style("quiet"))], width, plain)
        return self._row_line(self._shown.order[index], width, plain)

    def _row_line(self, key: str, width: int, plain: Style) -> Strip:
        row = self.shown_rows[key]
        ground = plain
        is_gone, is_cursor = key in self._shown.gone, key == self.highlighted
        if is_gone:
            ground += self._style("gone")
        over = self._style("cursor" if self.has_focus else "cursor-blurred") if is_cursor else None
        mark = Segment(f"{MARK if key in self.marks else ' '} ", _over(ground + self._style("mark"), over))
        cells = [mark]
        for column, size in self._columns.shown():
            cell = row.cells.get(column.key, "")
            cell = cell if isinstance(cell, Cell) else Cell(cell)
            text = _fitted(sanitize.line(cell.text), size, right=column.right)
            base = _over(ground, over)
            style = base if is_gone or not cell.role else base + readable(self._style(cell.role), over)
            cells += [
                Segment(text[: cell.coloured], style),
                Segment(text[len(text[: cell.coloured]) :] + " " * GAP, base),
            ]
        if is_gone:
            cells = _stamped(cells, width, _over(ground, over), GONE)
        return self._line(cells, width, _over(ground, over))

    def _header(self, style: Style) -> Iterable[Segment]:
        for column, size in self._columns.shown():
            yield Segment(_fitted(titled(column, self.sort), size, right=column.right) + " " * GAP, style)

    def _line(self, segments: Sequence[Segment], width: int, style: Style) -> Strip:
        return Strip(segments).adjust_cell_length(width, style)

    def _style(self, role: str) -> Style:
        return self.get_component_rich_style(f"keyed-table--{role}", partial=True)


def _fitted(text: str, width: int, *, right: bool) -> str:
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width else ""
    space = " " * (width - size)
    return space + text if right else text + space


def _over(style: Style, over: Style | None) -> Style:
    return style if over is None else style + over


def _stamped(segments: Sequence[Segment], width: int, style: Style, words: str) -> list[Segment]:
    """Write words over the end of a line."""
    stamp = f" {words} "
    return [*Strip(segments).adjust_cell_length(max(0, width - len(stamp)), style), Segment(stamp, style)]
