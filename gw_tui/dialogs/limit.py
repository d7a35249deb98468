"""How many jobs of a task may run at a time."""

from __future__ import annotations

from textual.app import ComposeResult

from gw_tui.actions import SetLimit
from gw_tui.dialogs.base import Dialog
from gw_tui.text import sanitize


class LimitDialog(Dialog[SetLimit]):
    """Asks for the number; answers with the action."""

    AUTO_FOCUS = "#running"
    has_preview = True

    def __init__(self, task: str, words: str = "") -> None:
        now = f"Now: {sanitize.line(words, 120)}.\n" if words else ""
        super().__init__(f"Limit {task}", f"{now}Empty removes the limit of jobs at a time.", ok="Limit")
        self._limited = task

    def fields(self) -> ComposeResult:
        yield from self.row("running", "Jobs at a time", "no limit")

    def answer(self) -> SetLimit:
        return SetLimit(task=self._limited, running=self.number_of("running", least=1))

    def pending_action(self) -> SetLimit:
        return self.answer()
