"""What the operator prefers: keys, saved views, and the columns and the order of each list."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gw_core.runtime.files import replace_file

MAX_SIZE: Final = 100_000
"""A larger file of choices is not ours."""
ASCENDING, DESCENDING = "asc", "desc"


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
        if sort := record.get("sort"):
            TableSort.parse(str(sort))  # which raises for a wrong one
        choice = TableChoice.read(record)
        return cls(screen=str(record["screen"]), selection=str(record.get("selection", "")), choice=choice)

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


class Preferences:
    """The user's keys by command and views by name, as configured, and what was chosen for lists, which a file keeps.

    Without a path, choices are forgotten.
    """

    def __init__(
        self,
        *,
        keys: Mapping[str, str] = MappingProxyType({}),
        views: Mapping[str, SavedView] = MappingProxyType({}),
        path: Path | None = None,
    ) -> None:
        self.keys = {name: tuple(each.split()) for name, each in keys.items()}
        self.views = views
        self._path = path
        self._lock = threading.Lock()  # writes in order; the last one holds the latest choice
        self._choices = dict(_read(path))

    def choice(self, screen: str) -> TableChoice:
        """Return what was chosen for a screen."""
        return self._choices.get(screen, TableChoice())

    def choose(self, screen: str, choice: TableChoice) -> None:
        """Change what was chosen for a screen; `write` stores it."""
        self._choices[screen] = choice

    def write(self, screen: str) -> None:
        """Store the choice of a screen, and leave those that another console stored. Raises `OSError`."""
        if self._path is None:
            return
        with self._lock:
            choices = {**_read(self._path), screen: self.choice(screen)}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            records = {name: each.record for name, each in choices.items()}
            replace_file(self._path, json.dumps({"screens": records}))


def _read(path: Path | None) -> Mapping[str, TableChoice]:
    """Return what a file holds; nothing if it is missing, damaged or of another kind."""
    try:
        if path is None or path.stat().st_size > MAX_SIZE:
            return {}
        stored = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    screens = stored.get("screens") if isinstance(stored, dict) else None
    return {str(name): TableChoice.read(each) for name, each in screens.items()} if isinstance(screens, dict) else {}
