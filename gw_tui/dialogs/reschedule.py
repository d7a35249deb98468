"""When, how urgently and how often: the form for jobs that wait."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Label

from gw_core.front_ends import FoundJob
from gw_tui.actions import Reschedule
from gw_tui.dialogs.base import MAX_NUMBER, Dialog
from gw_tui.dialogs.confirm import named
from gw_tui.text import formatting


class RescheduleDialog(Dialog[Reschedule]):
    """Asks what to change; what is left empty stays as it is."""

    AUTO_FOCUS = "#run_at"
    has_preview = True

    DEFAULT_CSS = """
    RescheduleDialog #meaning { color: $quiet; height: 1; }
    """

    def __init__(self, jobs: Sequence[FoundJob]) -> None:
        super().__init__("Reschedule", named(jobs), ok="Reschedule")
        self._jobs = jobs

    def fields(self) -> ComposeResult:
        for name, label, example in (
            ("run_at", "Run at", "now, +2h, 2026-03-01T09:00Z"),
            ("priority", "Priority", "lower runs first"),
            ("attempts", "Attempts made", "0 starts over"),
            ("max_attempts", "Max attempts", "1 or more"),
        ):
            yield from self.row(name, label, example)
        yield Label("", id="meaning", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the time that the input means."""
        if event.input.id == "run_at":
            self.query_one("#meaning", Label).update(Content(self._meaning()))

    def _meaning(self) -> str:
        try:
            time = self.time_of("run_at")
        except ValueError as error:
            return str(error)
        if time is None:
            return ""
        here = time.astimezone()
        return f"{time:%Y-%m-%d %H:%M:%S} UTC · {here:%H:%M:%S %Z} here · {formatting.until(time, self.state.now)}"

    def answer(self) -> Reschedule:
        change = Reschedule(
            jobs=(),
            run_at=self.time_of("run_at"),
            priority=self.number_of("priority", least=-MAX_NUMBER - 1),
            attempts=self.number_of("attempts", least=0),
            max_attempts=self.number_of("max_attempts", least=1),
        )
        if change == Reschedule(jobs=()):
            raise ValueError("Fill in at least one field")
        return change

    def pending_action(self) -> Reschedule:
        return replace(self.answer(), jobs=[each.job for each in self._jobs])
