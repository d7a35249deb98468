"""What all screens share: the frame around them, their query, and how they receive answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.rules.commands import (
    BY_ID,
    SCREEN_BY_ID,
    CommandContext,
    ConsoleCommand,
    Requirement,
    Risk,
    known_on,
    written,
)
from gw_tui.rules.connection_state import FailureKind
from gw_tui.widgets.connection_line import Banner, ConnectionLine, Fact, TabBar
from gw_tui.widgets.key_bar import KeyBar, key_label
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.text_panel import TextPanel

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

    from gw_core.front_ends import QueueSnapshot
    from gw_tui.action_runner import ActionRunner
    from gw_tui.actions import Action
    from gw_tui.console import Console
    from gw_tui.data.source import Query
    from gw_tui.maintenance import Maintenance
    from gw_tui.rules.preferences import SavedView
    from gw_tui.state import ConsoleState

MIN_WIDTH, MIN_HEIGHT = 60, 20


class HasParts(Protocol):
    """The console application, which screens do not import: the parts that screens use beside the console itself."""

    action_runner: ActionRunner
    maintenance: Maintenance


def bindings_of(commands: Iterable[ConsoleCommand]) -> list[BindingType]:
    """Return the bindings of these commands; their ids let the user choose other keys."""
    return [
        Binding(
            ",".join(command.keys),
            command.action,
            command.label,
            show=command.rank is not None,
            id=command.id,
            priority=command.is_typed,
        )
        for command in commands
        if command.keys
    ]


class ConsoleScreen(Screen[None]):
    """A screen of the console. Subclasses set `SCREEN_ID`, lay out `body`, and show the answers to their query.

    A command is available on a screen that has its `action_…` method; `rules/commands.py` describes them.
    """

    SCREEN_ID: ClassVar[str] = ""
    TAB: ClassVar[str] = ""
    """The tab shown as active, where that is not the screen's own."""
    LABELS: ClassVar[Mapping[str, str]] = {}
    """Labels in the key bar, by command, where this screen needs others."""

    AUTO_FOCUS = "KeyedTable"
    ALLOW_IN_MAXIMIZED_VIEW = "#frame-head, KeyBar"

    _read_context: CommandContext | None = None
    """What decides which commands are possible, while all of them are checked."""

    def __init_subclass__(cls) -> None:
        known = (each for each in known_on(cls.SCREEN_ID) if not each.is_everywhere)
        own = [replace(each, label=cls.LABELS.get(each.id, each.label)) for each in known]
        cls.BINDINGS = [*bindings_of(own), *cls.__dict__.get("BINDINGS", ())]
        super().__init_subclass__()

    def compose(self) -> ComposeResult:
        with Vertical(id="frame-head"):
            yield TabBar(self.TAB or self.SCREEN_ID)
            yield ConnectionLine()
            yield Banner()
        with Vertical(id="body"):
            yield from self.body()
        yield Static("", id="too-small", markup=False)
        yield KeyBar()

    # -- for subclasses --------------------------------------------------------------------------------------------

    def body(self) -> ComposeResult:
        """Lay out what is between the frame's lines."""
        yield from ()

    def current_query(self) -> Query | None:
        """Return what to ask beside the snapshot, now and at each tick; None asks nothing."""
        return None

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        """Draw what the hot look brought."""

    def show_answer(self, query: Query, answer: object) -> None:
        """Draw the answer to this screen's query."""

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        """Say that this screen's query could not be answered; the connection lives."""

    def show_time(self) -> None:
        """Let ages go on, twice a second; also while the database is away."""

    def take_filter(self, text: str) -> None:
        """Apply this filter, which another screen or the command line requests."""

    def show_view(self, view: SavedView) -> None:
        """Show what a saved view describes."""
        self.take_filter(view.selection)

    @property
    def useless_keys(self) -> frozenset[str]:
        """Commands that would be rejected now, and have no place in the key bar."""
        return frozenset()

    @property
    def stands(self) -> bool:
        """True while there is something to draw on: an answer may come before the first layout, or after the end."""
        return any(each.children for each in self.children if each.id == "body")

    @property
    def has_row(self) -> bool:
        """True when the cursor is on a visible row, or rows are marked: no key acts on an invisible row."""
        focused = self.focused
        return isinstance(focused, KeyedTable) and (focused.shows_highlighted or bool(focused.marks))

    # -- the frame -------------------------------------------------------------------------------------------------

    def describe(self) -> tuple[str, str]:
        """Return the title of this screen and what it is for."""
        place = SCREEN_BY_ID[self.SCREEN_ID]
        return place.title, place.help

    @property
    def console(self) -> Console:
        return cast("Console", self.app)

    @property
    def state(self) -> ConsoleState:
        return self.console.state

    @property
    def action_runner(self) -> ActionRunner:
        return cast("HasParts", self.app).action_runner

    @property
    def maintenance(self) -> Maintenance:
        return cast("HasParts", self.app).maintenance

    def ask(self) -> None:
        """Ask the screen's query now, and from now on; call this when it has changed."""
        self.console.ask(self)

    def frame(self, facts: Iterable[Fact], banner: str, *, dimmed: bool) -> None:
        """Show the state of the connection."""
        if self.stands:
            self.query_one(ConnectionLine).show(facts)
            self.query_one(Banner).show(banner)
            self.query_one("#body").set_class(dimmed, "-dimmed")

    @property
    def waiting_changes(self) -> int:
        """How many changes of its tables wait to be shown."""
        return sum(table.waiting for table in self.query(KeyedTable)) if self.stands else 0

    def command_context(self) -> CommandContext:
        """Return what decides which commands are possible here."""
        return self.state.command_context(has_row=self.has_row, has_changes=bool(self.waiting_changes))

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The live bindings. Reading the context for each of them took a fifth of the console's processor time."""
        self._read_context = self.command_context()
        try:
            return super().active_bindings
        finally:
            self._read_context = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is possible now; Textual asks before it shows or runs one."""
        command = BY_ID.get(action)
        if command is None or command.is_everywhere:
            return True
        if command.is_typed and isinstance(self.focused, Input):
            return False  # within a text its key is a character
        if not hasattr(self, f"action_{action}"):
            return False
        return command.possible(self._read_context or self.command_context())

    def on_key(self, event: events.Key) -> None:
        """Give the reason when the key's command cannot act now."""
        chosen, context = self.state.options.preferences.keys, self.command_context()
        key = key_label(event.key)
        found = [each for each in known_on(self.SCREEN_ID) if key in map(written, chosen.get(each.id, each.keys))]
        reasons = [command.why_not(context) for command in found]
        is_act = any(command.risk is not Risk.NONE or command.needs is Requirement.ROW for command in found)
        if is_act and all(reasons):
            self.notify(reasons[0], severity="warning")

    def on_screen_resume(self) -> None:
        """Ask this screen's query from now on, and immediately show what is known."""
        self.ask()
        if self.app.is_running and self.state.snapshot is not None:
            self.show_snapshot(self.state.snapshot)
        self.console.draw_frame()

    def on_resize(self, event: events.Resize) -> None:
        """Reject a terminal that is too small, with a message."""
        too_small = event.size.width < MIN_WIDTH or event.size.height < MIN_HEIGHT
        self.set_class(too_small, "-too-small")
        has = f"{event.size.width}x{event.size.height}"
        self.query_one("#too-small", Static).update(f"needs {MIN_WIDTH}x{MIN_HEIGHT}, has {has}")

    def on_keyed_table_highlighted(self) -> None:
        """A first row makes commands possible."""
        self.refresh_bindings()

    def on_keyed_table_waiting(self) -> None:
        """Changes that wait can be shown."""
        self.console.draw_frame()
        self.refresh_bindings()

    async def on_keyed_table_opened(self) -> None:
        """Two clicks mean what the key means."""
        await self.run_action("open")

    def on_descendant_focus(self) -> None:
        """Another list may have a row."""
        self.refresh_bindings()

    def on_text_panel_copied(self, event: TextPanel.Copied) -> None:
        """Copy the text of the panel that has the focus."""
        self.console.copy(event.panel.text, f"Copied {str(event.panel.border_title).lower()}")

    def action_show_changes(self) -> None:
        for table in self.query(KeyedTable):
            table.release()

    # -- equivalent commands -----------------------------------------------------------------------------------------

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        """Return the actions of this screen that have an equivalent command now, each with its name."""
        return ()

    @work
    async def action_copy_command(self) -> None:
        """Copy the gw command of an action; ask first which action, when there are several."""
        offered = {choice.id: (choice, action) for choice, action in self.available_actions()}
        if not offered:
            self.notify("No equivalent command")
            return
        chosen: str | None = next(iter(offered))
        if len(offered) > 1:
            choices = [choice for choice, _ in offered.values()]
            chosen = await self.app.push_screen_wait(Choose("Copy the command for …", choices))
        if chosen is not None:
            self.console.copy_preview(offered[chosen][1])
