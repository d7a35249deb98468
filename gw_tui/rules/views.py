"""Saved views: a screen with a selection, columns and an order under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gw_tui.rules.table_choice import TableChoice, TableSort

UNCHANGED: Final = TableChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """What a view shows."""

    screen: str
    selection: str = ""
    choice: TableChoice = UNCHANGED

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
