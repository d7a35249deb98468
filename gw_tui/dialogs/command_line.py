"""A line for commands at the bottom of the screen, with completion and history."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, Static

from gw_tui.rules.command_line import Destination, completions, parse_line
from gw_tui.rules.options import Options
from gw_tui.text import sanitize

MAX_LENGTH = 1_000


class _Completion(Suggester):
    """Suggests the shortest line that continues what was typed."""

    def __init__(self, options: Options) -> None:
        super().__init__(use_cache=False)
        self._options = options

    async def get_suggestion(self, value: str) -> str | None:
        """Return the line; None if there is none."""
        return next(
            (each for each in completions(value, self._options) if each.startswith(value) and each != value), None
        )


class CommandLine(ModalScreen[Destination | None]):
    """Asks for a command; `history` has earlier lines, the oldest first, and gets the new one."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("up", "recall(-1)", show=False, priority=True),
        Binding("down", "recall(1)", show=False, priority=True),
        Binding("tab", "complete", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    CommandLine { background: transparent; align: left bottom; }
    CommandLine Horizontal { height: 1; background: $panel; }
    CommandLine #prompt { width: 2; padding: 0; text-style: bold; }
    CommandLine Input, CommandLine Input:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: $panel;
    }
    CommandLine #wrong { height: auto; background: $panel; color: $error; display: none; }
    CommandLine #wrong.-shown { display: block; }
    """

    def __init__(self, history: list[str], options: Options) -> None:
        super().__init__()
        self._options = options
        self._history = history
        self._place = len(history)

    def compose(self) -> ComposeResult:
        yield Static("", id="wrong", markup=False)
        with Horizontal():
            yield Static(" :", id="prompt", markup=False)
            entry = Input(max_length=MAX_LENGTH, suggester=_Completion(self._options), select_on_focus=False)
            entry.cursor_blink = False
            yield entry

    def on_key(self, event: events.Key) -> None:
        """Keep what was typed before the line had the focus; later the line takes it itself."""
        if event.is_printable and event.character is not None:
            event.stop()
            self.query_one(Input).insert_text_at_cursor(event.character)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer, or show what is wrong."""
        if not event.value.strip():
            self.dismiss(None)
            return
        try:
            found = parse_line(event.value, self._options)
        except ValueError as error:
            wrong = self.query_one("#wrong", Static)
            wrong.update(f" {sanitize.line(error, 300)}")
            wrong.add_class("-shown")
            return
        self._history.append(event.value.strip())
        self.dismiss(found)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_recall(self, step: int) -> None:
        """Show an earlier or a later line of the history."""
        self._place = min(max(0, self._place + step), len(self._history))
        self._show([*self._history, ""][self._place])

    def action_complete(self) -> None:
        """Take the first completion."""
        value = self.query_one(Input).value
        if (found := next((each for each in completions(value, self._options) if each != value), None)) is not None:
            self._show(found)

    def _show(self, text: str) -> None:
        entry = self.query_one(Input)
        entry.value = text
        entry.cursor_position = len(text)
