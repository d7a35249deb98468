"""What this console saw and did, as far back as fits."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

MAX_ENTRIES: Final = 5_000


class EntryKind(StrEnum):
    """What an entry is about."""

    CONNECTION = "connection"
    JOBS = "jobs"
    """Jobs were announced."""
    ACTION = "action"
    ERROR = "error"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Something that was seen or done; the words may hold data and are cleaned where they are shown."""

    number: int
    at: datetime
    kind: EntryKind
    words: str
    is_bad: bool = False

    def as_json(self) -> str:
        """Return the entry as JSON on one line."""
        at = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        record = {"at": at, "kind": self.kind.value, "words": self.words, "is_bad": self.is_bad}
        return json.dumps(record)


class Journal:
    """A series of entries, newest last."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=most)
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries)

    def newest_first(self) -> Iterator[LogEntry]:
        """Yield the entries from the newest back."""
        return reversed(self._entries)

    def note(self, at: datetime, kind: EntryKind, words: str, *, is_bad: bool = False) -> LogEntry:
        """Keep an entry and return it."""
        self._number += 1
        entry = LogEntry(self._number, at, kind, words, is_bad)
        self._entries.append(entry)
        return entry
