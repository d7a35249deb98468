"""Which permanently failed jobs to delete: of which task, and how old."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Label

from gw_core import Selection
from gw_core.selection import parse
from gw_tui.dialogs.base import Dialog, entry

FAILED = "state:failed"


class NarrowDialog(Dialog[Selection]):
    """Asks for a task and an age; answers with the selection of failed jobs."""

    AUTO_FOCUS = "#task"

    def __init__(self) -> None:
        super().__init__("Clean up failed jobs", "Leave both empty to select all failed jobs.", ok="Count")

    def fields(self) -> ComposeResult:
        yield Label(Content("Task, such as mail or send*:"))
        yield entry("task")
        yield Label(Content("Added longer ago than, such as 7d or 12h:"))
        yield entry("age")

    def answer(self) -> Selection:
        return parse(" ".join(self._conditions()))

    def _conditions(self) -> Iterator[str]:
        task, age = self.text_of("task"), self.text_of("age")
        yield FAILED
        if task:
            yield f"task:{task}"
        if age:
            yield f"created_at:<-{age.removeprefix('-')}"
