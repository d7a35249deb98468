"""When, how urgently and how often: the form for jobs that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Label

from gw_core.errors import InvalidInputError
from gw_core.operations import FoundJob, JobVersion, parse_time
from gw_tui.actions.actions import Reschedule
from gw_tui.dialogs.base import Dialog
from gw_tui.dialogs.confirm import named
from gw_tui.text import formatting


class RescheduleDialog(Dialog[Reschedule]):
    """Asks what to change; what is left empty stays as it is."""

    AUTO_FOCUS = "#run_at"
    has_preview = True

    DEFAULT_CSS = """
    RescheduleDialog .field { height: 1; }
    RescheduleDialog .field Label { width: 16; }
    RescheduleDialog .field Input { width: 1fr; }
    RescheduleDialog #meaning { color: $quiet; height: 1; }
    """

    def __init__(self, jobs: Sequence[FoundJob]) -> None:
        super().__init__("Reschedule", named(jobs), ok="Reschedule")
        self._jobs = jobs

    def fields(self) -> ComposeResult:
        """Lay out the fields."""
        for name, label, example in (
            ("run_at", "Run at", "now, +2h, 2026-03-01T09:00Z"),
            ("priority", "Priority", "lower runs first"),
            ("attempts", "Attempts made", "0 starts over"),
            ("max_attempts", "Max attempts", "1 or more"),
        ):
            with Horizontal(classes="field"):
                yield Label(Content(label))
                yield Input(placeholder=example, id=name, select_on_focus=False, compact=True)
        yield Label("", id="meaning", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the time that the input means."""
        if event.input.id == "run_at":
            self.query_one("#meaning", Label).update(Content(self._meaning(event.value)))

    def _meaning(self, text: str) -> str:
        if not text.strip():
            return ""
        try:
            time = self._time(text)
        except ValueError as error:
            return str(error)
        here = time.astimezone()
        return f"{time:%Y-%m-%d %H:%M:%S} UTC · {here:%H:%M:%S %Z} here · {_away(time - self.console.now)}"

    def answer(self) -> Reschedule:
        """Return the change."""
        text = self.query_one("#run_at", Input).value
        change = Reschedule(
            jobs=(),
            run_at=self._time(text) if text.strip() else None,
            priority=self._number("priority", -32768, 32767),
            attempts=self._number("attempts", 0, 32767),
            max_attempts=self._number("max_attempts", 1, 32767),
        )
        if change == Reschedule(jobs=()):
            raise ValueError("Fill in at least one field")
        return change

    def pending_action(self) -> Reschedule:
        """Return the change, for the jobs themselves."""
        return replace(self.answer(), jobs=[JobVersion.from_job(each.job) for each in self._jobs])

    def _time(self, text: str) -> datetime:
        try:
            return parse_time(text.strip(), now=self.console.now)
        except InvalidInputError as error:
            raise ValueError(str(error)) from error

    def _number(self, name: str, least: int, most: int) -> int | None:
        text = self.query_one(f"#{name}", Input).value.strip()
        if not text:
            return None
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{name.replace('_', ' ')} must be a whole number, not {text!r}.") from None
        if not least <= number <= most:
            raise ValueError(f"{name.replace('_', ' ')} must be from {least} to {most}.")
        return number


def _away(duration: timedelta) -> str:
    return f"in {formatting.duration(duration)}" if duration > timedelta() else f"{formatting.duration(-duration)} ago"
