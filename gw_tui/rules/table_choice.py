"""What the operator chose for a list: its columns, their order, and its sort; or saved, with a selection, as a view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")

ASCENDING, DESCENDING = "asc", "desc"
_NUMBER: Final = re.compile(r"-?[0-9][0-9,]*([.][0-9]+)?")


@dataclass(frozen=True, slots=True)
class TableSort:
    """A column to sort by, and the direction."""

    column: str
    is_descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} {DESCENDING if self.is_descending else ASCENDING}"

    @classmethod
    def parse(cls, text: str) -> TableSort:
        """Return the order written as `failed desc`; without a direction it is ascending. Raises `ValueError`."""
        column, _, direction = text.strip().partition(" ")
        if not column or direction.strip() not in ("", ASCENDING, DESCENDING):
            raise ValueError(f"give a column, with {ASCENDING} or {DESCENDING} after it")
        return cls(column, direction.strip() == DESCENDING)

    @property
    def reversed(self) -> TableSort:
        """The same column in the other direction."""
        return TableSort(self.column, not self.is_descending)

    @property
    def arrow(self) -> str:
        """The direction as a sign."""
        return "↓" if self.is_descending else "↑"


@dataclass(frozen=True, slots=True)
class TableChoice:
    """The columns in their order, and the sort; without columns the list shows those that fit."""

    columns: tuple[str, ...] = ()
    sort: TableSort | None = None

    @classmethod
    def read(cls, record: object) -> TableChoice:
        """Return the choice that a record describes; anything else in it is ignored."""
        if not isinstance(record, Mapping):
            return cls()
        columns = record.get("columns")
        names = [each for each in columns if isinstance(each, str)] if isinstance(columns, list) else []
        try:
            sort = TableSort.parse(str(record.get("sort") or ""))
        except ValueError:
            sort = None
        return cls(tuple(dict.fromkeys(names)), sort)

    @property
    def record(self) -> dict[str, object]:
        """The choice as `read` takes it."""
        return {"columns": list(self.columns), "sort": "" if self.sort is None else str(self.sort)}

    def possible(self, columns: Iterable[str]) -> TableChoice:
        """Return the choice without columns that the list does not have."""
        known = set(columns)
        sort = self.sort if self.sort is not None and self.sort.column in known else None
        return TableChoice(tuple(each for each in self.columns if each in known), sort)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """What a saved view shows: a screen with a selection, columns and an order."""

    screen: str
    selection: str = ""
    choice: TableChoice = TableChoice()

    @classmethod
    def read(cls, record: Mapping[str, object]) -> SavedView:
        """Return the view of a table in `gw.toml`, whose types were checked; raises `ValueError`."""
        columns, sort = record.get("columns", ()), str(record.get("sort", ""))
        return cls(
            screen=str(record["screen"]),
            selection=str(record.get("selection", "")),
            choice=TableChoice(
                tuple(columns) if isinstance(columns, list) else (), TableSort.parse(sort) if sort else None
            ),
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """Every column that it names."""
        sort = self.choice.sort
        return (*self.choice.columns, *([] if sort is None else [sort.column]))

    @property
    def words(self) -> str:
        """What it shows, in one line."""
        order = "" if self.choice.sort is None else f"by {self.choice.sort}"
        return " ".join(each for each in (self.screen, self.selection, order) if each)


def sort_value(text: str, value: float | None) -> tuple[int, float, str] | None:
    """Return what a cell sorts by: a number before texts; None for an empty cell."""
    if value is None and _NUMBER.fullmatch(text):
        value = float(text.replace(",", ""))
    if value is not None:
        return (0, value, "")
    return (1, 0.0, text.casefold()) if text else None


def sorted_by(items: Sequence[tuple[tuple[int, float, str] | None, T]], *, is_descending: bool) -> list[T]:
    """Return the items in the order of their values, those without a value last."""
    known = sorted(
        ((value, item) for value, item in items if value is not None),
        key=lambda each: each[0],
        reverse=is_descending,
    )
    return [item for _, item in known] + [item for value, item in items if value is None]
