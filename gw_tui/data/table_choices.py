"""Remember the columns and the order of each list in a file, so that they survive a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gw_core.runtime.files import replace_file
from gw_tui.rules.table_choice import TableChoice

MAX_SIZE: Final = 100_000
"""A larger file is not ours."""


class TableChoices:
    """The choices by screen. Without a path, nothing is remembered."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()  # writes in order; the last one holds the latest choice
        self._choices = dict(_read(path))

    def of(self, screen: str) -> TableChoice:
        """Return what was chosen for a screen."""
        return self._choices.get(screen, TableChoice())

    def choose(self, screen: str, choice: TableChoice) -> None:
        """Change what is remembered for a screen; `write` stores it."""
        self._choices[screen] = choice

    def write(self, screen: str) -> None:
        """Store the choice of a screen, and leave those that another console stored."""
        if self._path is None:
            return
        with self._lock:
            choices = {**_read(self._path), screen: self.of(screen)}
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
