"""What this console saw and did, as far back as fits."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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


class Journal(deque[LogEntry]):
    """A series of entries, newest last; the oldest go when there are too many."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        super().__init__(maxlen=most)

    def note(self, at: datetime, kind: EntryKind, words: str, *, is_bad: bool = False) -> LogEntry:
        """Keep an entry and return it."""
        entry = LogEntry(self[-1].number + 1 if self else 1, at, kind, words, is_bad)
        self.append(entry)
        return entry

    def move(self, by: timedelta) -> None:
        """Move the times of all entries, such as to another clock."""
        moved = [replace(each, at=each.at + by) for each in self]
        self.clear()
        self.extend(moved)
