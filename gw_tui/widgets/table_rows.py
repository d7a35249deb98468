"""What a table shows: its columns, and rows of cells that know how they are coloured and sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gw_tui.rules.preferences import TableSort
from gw_tui.rules.stable_order import sort_value, sorted_by
from gw_tui.text import formatting
from gw_tui.text.symbols import Symbol

if TYPE_CHECKING:
    from gw_core.front_ends import Count


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. It is as wide as its contents, up to `width`; without a `width` it also gets a share of what is left.

    Room that is left then goes to columns whose contents are wider than their `width`.

    Where there is no room for all, those of the lowest `rank` are left out first.
    """

    key: str
    title: str
    width: int | None = None
    right: bool = False
    rank: int = 9
    least: int = 8
    share: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its role: the name of a state, or `quiet`, `strong`, `warning`, `error`.

    `value` is what its column sorts by where the text is not in that order, such as the seconds of a duration.
    `coloured` is how many of its first characters have the role; all of them if it is None.
    """

    text: str
    role: str = ""
    value: float | None = field(default=None, compare=False)
    coloured: int | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row under a key that stays its own; cells by the keys of their columns. `item` is what the row describes."""

    key: str
    cells: Mapping[str, Cell | str]
    item: object = field(default=None, compare=False)


def sign_cell(symbol: Symbol, words: str, value: float | None = None) -> Cell:
    """Return words with the sign and the colour of their meaning."""
    return Cell(symbol.before(words), symbol.role, value)


def duration_cell(value: timedelta, role: str = "", text: str | None = None) -> Cell:
    """Return a duration, which sorts by its length, as itself or as another text."""
    return Cell(formatting.duration(value) if text is None else text, role, value.total_seconds())


def age_cell(age: timedelta, role: str, bound: str = "") -> Cell:
    """Return how long ago a failure was, with a bound if failures were not read that may be earlier or later.

    The inferred time is wrong, and then in the future, if the task chose the delay itself.
    """
    if age < timedelta():
        return Cell(formatting.NOTHING, "quiet", 0.0)
    return duration_cell(age, role, f"{bound}{formatting.duration(age)}")


def day_cell(time: datetime | None, now: datetime) -> Cell | str:
    """Return a time, which sorts from the past to the future; None is an empty cell."""
    return "" if time is None else duration_cell(time - now, "quiet", formatting.day(time, now))


def count_cell(found: Count, role: str = "") -> Cell:
    """Return a count with its accuracy, which sorts by its value."""
    return Cell(formatting.count(found), role, found.value)


def sorted_rows(rows: Iterable[TableRow], sort: TableSort) -> list[TableRow]:
    """Return rows sorted by a column; those without a value come last."""
    return sorted_by([(_value_of(row, sort.column), row) for row in rows], is_descending=sort.is_descending)


def _value_of(row: TableRow, column: str) -> tuple[int, float, str] | None:
    cell = row.cells.get(column, "")
    return sort_value(cell.text, cell.value) if isinstance(cell, Cell) else sort_value(cell, None)
