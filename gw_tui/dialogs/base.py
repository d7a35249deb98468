"""What all dialogs share: they name the jobs they change, and OK needs the database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from gw_core.front_ends import parse_time
from gw_tui.dialogs.framed import Framed, T
from gw_tui.rules.connection_state import ConnectionPhase
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_tui.actions import Action
    from gw_tui.console import Console
    from gw_tui.state import ConsoleState


MAX_NUMBER: Final = 32_767
"""The largest priority and number of attempts; these columns are smallint."""


def entry(name: str, value: str = "", example: str = "", *, is_offer: bool = False) -> Input:
    """Return a field on one line. What is typed replaces a value that is only an offer."""
    return Input(value, placeholder=example, id=name, select_on_focus=is_offer, compact=True)


class Dialog(Framed[T]):
    """A question over a screen; dismissed with what was answered, or None.

    Subclasses lay out `fields` and return from `answer` what OK means, or raise `ValueError` with a message about the
    error. While the database is unavailable, OK waits and shows the reason.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        # Before a field has its say: an editor of text means something else by it.
        Binding("ctrl+y", "copy_command", "Copy command", show=False, priority=True),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#cancel"

    DEFAULT_CSS = """
    Dialog .framed { max-height: 100%; }
    Dialog.-destroys .framed { border: round $error; }
    Dialog #words { height: auto; max-height: 12; }
    Dialog #failure { height: auto; color: $error; display: none; }
    Dialog #failure.-said { display: block; }
    Dialog #buttons { height: 1; align-horizontal: right; margin-top: 1; }
    Dialog Button { height: 1; min-width: 10; border: none; margin-left: 2; }
    Dialog Button:focus { text-style: bold reverse; }
    Dialog Input { height: 1; border: none; background: $background; }
    Dialog .field { height: 1; }
    Dialog .field Input { width: 1fr; }
    """

    def __init__(
        self, title: str, words: str = "", *, ok: str = "OK", leave: str = "Cancel", destroys: bool = False
    ) -> None:
        super().__init__(classes="-destroys" if destroys else "")
        self._title = title
        self._words = words
        self._ok = ok
        self._leave = leave

    def compose(self) -> ComposeResult:
        with Vertical(classes="framed") as panel:
            panel.border_title = Content(sanitize.line(self._title, 60))
            copies = ", ^y copies the command" if self.has_preview else ""
            panel.border_subtitle = f"tab moves, enter selects, esc cancels{copies}"
            with VerticalScroll(id="words", can_focus=False):
                yield Static(Content(sanitize.block(self._words)), markup=False)
            yield from self.fields()
            yield Static("", id="failure", markup=False)
            with Horizontal(id="buttons"):
                # Tab leads from the fields, and from Cancel, to what was asked for.
                yield Button(Content(self._ok), id="ok", compact=True)
                yield Button(Content(self._leave), id="cancel", compact=True)

    def on_mount(self) -> None:
        self.set_interval(0.25, self._follow)
        self._follow()

    # -- for subclasses --------------------------------------------------------------------------------------------

    def fields(self) -> ComposeResult:
        """Lay out the fields."""
        yield from ()

    def row(self, name: str, label: str, example: str = "", value: str = "") -> ComposeResult:
        """Lay out a field beside its label."""
        with Horizontal(classes="field"):
            yield Label(Content(label))
            yield entry(name, value, example)

    def text_of(self, name: str) -> str:
        """Return what a field has."""
        return self.query_one(f"#{name}", Input).value.strip()

    def number_of(self, name: str, *, least: int) -> int | None:
        """Return the number of a field, None for an empty one; raises `ValueError`."""
        text = self.text_of(name)
        if not text:
            return None
        words = name.replace("_", " ")
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{words} must be a whole number, not {sanitize.line(text, 20)!r}.") from None
        if not least <= number <= MAX_NUMBER:
            raise ValueError(f"{words} must be from {least} to {MAX_NUMBER}.")
        return number

    def time_of(self, name: str) -> datetime | None:
        """Return the time of a field, None for an empty one; raises `ValueError`."""
        text = self.text_of(name)
        return parse_time(text, now=self.state.now) if text else None

    def answer(self) -> T:
        """Return what OK means; raise `ValueError` with a message about an error."""
        raise NotImplementedError

    has_preview: ClassVar[bool] = False
    """Whether OK has an equivalent command; `pending_action` returns its action."""

    def pending_action(self) -> Action | None:
        """Return the action that OK would begin, for the command preview; `ValueError` as in `answer`."""
        return None

    def action_copy_command(self) -> None:
        try:
            action = self.pending_action()
        except ValueError as error:
            self.say(str(error))
            return
        if action is not None:
            self.console.copy_preview(action)

    # -- its end -----------------------------------------------------------------------------------------------------

    @property
    def console(self) -> Console:
        return cast("Console", self.app)

    @property
    def state(self) -> ConsoleState:
        return self.console.state

    def say(self, words: str) -> None:
        """Say what is wrong, or nothing."""
        failure = self.query_one("#failure", Static)
        failure.update(Content(sanitize.line(words, 300)))
        failure.set_class(bool(words), "-said")

    def _follow(self) -> None:
        """Let OK wait while nothing can be done."""
        is_live = self.state.phase is ConnectionPhase.LIVE
        ok = self.query_one("#ok", Button)
        if ok.disabled is is_live:
            ok.disabled = not is_live
            self.say("" if is_live else "Waiting for the database")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "ok":
            self.action_accept()
        else:
            self.action_leave()

    def on_input_submitted(self) -> None:
        """Do what enter in a field means."""
        self.submit_field()

    def submit_field(self) -> None:
        """Accept the answer."""
        self.action_accept()

    def action_accept(self) -> None:
        """Answer, if that is possible and all is well."""
        if self.query_one("#ok", Button).disabled:
            return
        try:
            answer = self.answer()
        except ValueError as error:
            self.say(str(error))
            return
        self.dismiss(answer)
