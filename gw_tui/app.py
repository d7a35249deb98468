"""The console application: modes, themes and keys; it passes the threads' messages to the screen in front."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from textual import events, on, work
from textual.app import App, SuspendNotSupported
from textual.binding import BindingType
from textual.filter import LineFilter, NoColor
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input, TextArea

from gw_core.operations import CleanupTarget, QueueSnapshot, ThroughputMeter
from gw_tui import clipboard
from gw_tui.action_runner import ActionRunner
from gw_tui.actions.actions import Action
from gw_tui.actions.batch import ActionBatch
from gw_tui.actions.log import ActionLog, Payloads
from gw_tui.actions.preview import preview
from gw_tui.data.messages import (
    ActionFinished,
    ActionLogFailed,
    Connecting,
    ConnectionLost,
    JobsAnnounced,
    ListenStateChanged,
    QueryAnswered,
    QueryFailed,
    SnapshotReceived,
)
from gw_tui.data.poller import BLURRED, Poller
from gw_tui.data.source import DataSource, Query
from gw_tui.data.table_choices import TableChoices
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.command_line import CommandLine
from gw_tui.maintenance import Maintenance
from gw_tui.rules.command_line import Destination, parse_link
from gw_tui.rules.commands import BY_ID, EVERYWHERE, SCREEN_BY_ID, SCREENS, CommandContext, ScreenInfo
from gw_tui.rules.connection_state import ConnectionPhase, ConnectionState
from gw_tui.rules.history import History, seconds_between
from gw_tui.rules.journal import EntryKind, Journal
from gw_tui.rules.options import PERIODS, Options
from gw_tui.rules.table_choice import TableChoice
from gw_tui.rules.views import SavedView
from gw_tui.screens.base import ConsoleScreen, bindings_of
from gw_tui.screens.palette import ConsoleCommands
from gw_tui.text import formatting, sanitize
from gw_tui.text.ansi_filters import OnlyAscii, StripControls
from gw_tui.widgets.connection_line import ConnectionStatus, replay_words
from gw_tui.widgets.screen_diff import ShownCells
from gw_tui.widgets.stylesheet import CachedStylesheet
from gw_tui.widgets.themes import FALLBACK, NAMES, THEMES

TICK: Final = 0.5
"""How often ages and countdowns go on, in seconds."""

SEEK: Final = 30.0
"""How far one key moves a recording, in seconds."""


def screen_of(place: ScreenInfo) -> ConsoleScreen:
    module = importlib.import_module(f"gw_tui.screens.{place.id}")
    screen: ConsoleScreen = getattr(module, f"{place.title}Screen")()
    return screen


@dataclass(frozen=True, slots=True)
class _Asked:
    generation: int = 0
    query: Query | None = None


class ConsoleApp(App[Options]):
    """The operators' console over a source; `run()` shows it until the operator leaves.

    It returns options when the operator chooses another database: a new console starts there, so that nothing mixes.
    """

    CSS_PATH = "app.tcss"
    TITLE = "gw"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        place.id: partial(screen_of, place) for place in SCREENS
    }
    COMMANDS = {ConsoleCommands}  # noqa: RUF012 - see below
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as the base class has it
        (0, "-narrow"),
        (100, "-normal"),
        (140, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - see above
        (0, "-short"),
        (30, "-tall"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(EVERYWHERE)

    def __init__(
        self, source: DataSource, options: Options | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.options = options or Options()
        self._own_filters: list[LineFilter] = [StripControls()]
        if self.options.ascii:
            self._own_filters.append(OnlyAscii())
        if not self.options.colour:
            self._own_filters.append(NoColor())
        super().__init__(ansi_color=None if self.options.colour else True)
        self.no_color = not self.options.colour
        if "TEXTUAL_ANIMATIONS" not in os.environ:
            self.animation_level = "none"
        self.stylesheet = CachedStylesheet(variables=self.get_css_variables())
        self.source = source
        self.choices = TableChoices(self.options.choices)
        self.clock = clock
        self.period = self.options.period
        self.connection = ConnectionState()
        self.journal = Journal()
        self.history = History()
        self.snapshot: QueueSnapshot | None = None
        self.cost: float | None = None
        self._rest = 0.0
        self.last_action: ActionFinished | None = None
        self._runner = ActionRunner(self)
        self._maintenance = Maintenance(self)
        self.flow_meter = ThroughputMeter()
        self.poller = Poller(source, self.post_message, period=self.period, log=self._action_log())
        self._shown_cells = ShownCells()
        self._asked = _Asked()
        self.answer: QueryAnswered | None = None
        self.drawn_phase = ConnectionPhase.CONNECTING
        self._paused_at: float | None = None
        self.is_listening = True
        self.late_because = ""
        self._is_blurred = False
        self._measured_at: float | None = None
        self._typed = list(self.options.typed)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what every line goes through before it is written; ours come last."""
        return [*super().get_line_filters(), *self._own_filters]

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self._shown_cells.reduced(screen, renderable))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our colours for themes that lack them."""
        return dict(FALLBACK)

    # -- begin and end ---------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Begin."""
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.options.theme if self.options.theme in self.available_themes else NAMES[0]
        if self.options.keys:
            self.set_keymap({name: ",".join(keys.split()) for name, keys in self.options.keys.items()})
            for name, keys in self.options.keys.items():
                if not BY_ID[name].keys:  # there is no key to be exchanged
                    self.bind(",".join(keys.split()), BY_ID[name].action, show=False)
        self.note(EntryKind.CONSOLE, f"console started on {self.source.info.where}")
        self.visit(self.options.screen if self.options.screen in SCREEN_BY_ID else SCREENS[0].id)
        if self.options.open:
            self.call_after_refresh(self._follow, parse_link(self.options.open, self.options))
        self.poller.start()
        self.set_interval(TICK, self._tick)

    async def on_unmount(self) -> None:
        """Let go of the database; whatever it does, this ends."""
        await asyncio.to_thread(self.poller.stop)

    def _fatal_error(self) -> None:
        # The framework would print every local variable, including passwords and payloads. `gw` prints the error in
        # one line, and a traceback on request.
        self._close_messages_no_wait()

    @property
    def failure(self) -> Exception | None:
        """The internal error that ended the console, if any."""
        return self._exception

    def _action_log(self) -> ActionLog | None:
        path = self.options.action_log
        if path is None:
            return None
        log = ActionLog(path, Payloads(self.options.log_payloads))
        with suppress(OSError):  # reported at the next write
            log.delete_old()
        return log

    # -- messages of the threads -----------------------------------------------------------------------------------

    @on(SnapshotReceived)
    def _on_snapshot(self, message: SnapshotReceived) -> None:
        self.snapshot, self.cost, self._rest = message.snapshot, message.took, message.rest
        self.connection = self.connection.answered(self.clock())
        self.late_because = ""
        self.poller.listener.reached()
        self._measure(message.snapshot)
        self._follow_phase()
        if self._paused_at is None and (screen := self.front) is not None:
            screen.show_snapshot(message.snapshot)
        self.draw_frame()

    @on(QueryAnswered)
    def _answered(self, message: QueryAnswered) -> None:
        if message.generation != self._asked.generation:
            return
        self.answer = message
        if self._paused_at is None and (screen := self.front) is not None:
            screen.show_answer(message.query, message.answer)

    @on(QueryFailed)
    def _hindered(self, message: QueryFailed) -> None:
        if message.query is None:
            self.late_because = message.reason
        self.note(EntryKind.ERROR, f"{message.failure}: {message.reason}", is_bad=True)
        if message.query is not None and message.generation == self._asked.generation and self.front is not None:
            self.front.show_failure(message.failure, message.reason)

    @on(ConnectionLost)
    def _lost(self, message: ConnectionLost) -> None:
        before = self.connection.reason
        self.connection = self.connection.lost(self.clock(), message.failure, message.reason, retry_in=message.retry_in)
        if message.reason != before:
            self.note(EntryKind.CONNECTION, message.reason, is_bad=True)
        self._follow_phase()
        self.draw_frame()

    @on(Connecting)
    def _trying(self) -> None:
        self.connection = self.connection.trying()
        self.draw_frame()

    @on(JobsAnnounced)
    def _announced(self, message: JobsAnnounced) -> None:
        self.note(EntryKind.JOBS, f"{formatting.counted(message.jobs, 'job')} announced")

    @on(ListenStateChanged)
    def _on_listen_state(self, message: ListenStateChanged) -> None:
        if self.is_listening and not message.is_listening:
            self.note(EntryKind.CONNECTION, f"LISTEN failed, polling only: {message.reason}", is_bad=True)
        self.is_listening = message.is_listening

    @on(ActionFinished)
    def _acted(self, message: ActionFinished) -> None:
        self.last_action = message
        self._runner.finished(message)
        self.poller.reader.refresh_now()
        if self.front is not None:
            self.front.show_action(message)

    @on(ActionLogFailed)
    def _unwritten(self, message: ActionLogFailed) -> None:
        self.note(EntryKind.ERROR, message.reason, is_bad=True)
        self.notify(sanitize.line(message.reason, 200), severity="warning", markup=False)

    # -- what the screens ask and do -------------------------------------------------------------------------------

    @property
    def front(self) -> ConsoleScreen | None:
        """The screen in front, dialogs left aside; None at the very end, when screens are being taken apart."""
        if not self.is_running:
            return None
        return next((each for each in reversed(self.screen_stack) if isinstance(each, ConsoleScreen)), None)

    @property
    def now(self) -> datetime:
        """The time of the database's clock, as far as it is known; it continues while the database is unavailable."""
        if self.snapshot is None or self.connection.answered_at is None:
            return datetime.now(UTC)
        return self.snapshot.at + timedelta(seconds=max(0.0, self.clock() - self.connection.answered_at))

    @property
    def phase(self) -> ConnectionPhase:
        """How the console stands with its database."""
        return self.connection.phase(self.clock(), self._expected)

    def ask(self, screen: Screen[Any]) -> None:
        """Ask a screen's query from now on, when it is in front."""
        if (front := self.front) is screen and front is not None:
            self._asked = _Asked(self._asked.generation + 1, front.current_query())
            self.answer = None
            self.poller.reader.ask(self._asked.query, self._asked.generation)

    def came_to_front(self, screen: Screen[Any]) -> None:
        """Show a screen what is known, and run its query."""
        self.ask(screen)
        if self.snapshot is not None and (front := self.front) is not None:
            front.show_snapshot(self.snapshot)
        self.draw_frame()

    def refresh_now(self) -> None:
        """Query immediately."""
        self.poller.reader.refresh_now()

    def submit(self, action: Action) -> None:
        """Have something done; the answer comes as `ActionFinished`."""
        self.poller.actor.do(action)

    @property
    def is_busy(self) -> bool:
        """True while a batch runs."""
        return self._runner.is_busy

    def begin(self, batch: ActionBatch, on_done: Callable[[ActionBatch], None] | None = None) -> None:
        """Run a batch of actions; `on_done` is called when it has finished without an error."""
        self._runner.begin(batch, on_done)

    def stop_batch(self) -> None:
        """Stop the running batch after its current part."""
        self._runner.stop()

    def undo(self) -> None:
        """Restore the jobs that were completed last."""
        self._runner.undo()

    def sweep(self) -> None:
        """Preview a sweep, then ask whether to run it."""
        self._maintenance.sweep()

    def clean_up(self, target: CleanupTarget | None = None) -> None:
        """Count what a cleanup would delete, then ask whether to delete it."""
        self._maintenance.clean_up(target)

    def copy(self, text: str, words: str = "") -> None:
        """Copy a text, and confirm it; reject one that is too long for a terminal to copy."""
        shown = clipboard.on_one_line(text)
        if clipboard.is_too_long(shown):
            size = formatting.size(len(shown.encode(errors="surrogatepass")))
            self.notify(f"Too large to copy: {size}", severity="warning")
            return
        self.copy_to_clipboard(shown)
        escaped = "" if shown == text else "; line breaks and control characters replaced"
        self.notify(words or f"Copied {sanitize.line(shown, 100)}{escaped}", markup=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message in the line of the keys, which covers no row."""
        words = f"{title}: {message}" if title else message
        super().notify(words, severity=severity, timeout=timeout, markup=markup)

    def on_notify(self) -> None:
        """Let a message take the place of the one before."""
        self.clear_notifications()

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text as one line without control characters, safe to paste anywhere."""
        super().copy_to_clipboard(clipboard.on_one_line(text))

    @work
    async def copy_preview(self, action: Action) -> None:
        """Copy what does the same as an action: the gw command or the SQL, whichever is chosen."""
        typed = preview(action, self.source.info, self.snapshot)
        if typed is None:
            self.notify("No equivalent command")
        elif not (ways := clipboard.ways(typed)):
            size = formatting.size(len(typed.sql.encode()))
            self.notify(f"Too large to copy: {size}", severity="warning")
        else:
            chosen = await self.push_screen_wait(Choose("Copy", [choice for choice, _ in ways.values()]))
            if chosen is not None:
                self.copy(ways[chosen][1])

    def note(self, kind: EntryKind, words: str, *, is_bad: bool = False) -> None:
        """Keep an entry in the journal."""
        self.journal.note(self.now, kind, words, is_bad=is_bad)

    def remember(self, screen: str, choice: TableChoice) -> None:
        """Keep the columns and the order of a list for the next start."""
        self.choices.choose(screen, choice)
        self.run_worker(partial(self._store_choice, screen), thread=True)

    def _store_choice(self, screen: str) -> None:
        try:
            self.choices.write(screen)
        except OSError as error:
            words = f"The columns cannot be remembered: {error.strerror}"
            self.call_from_thread(self.note, EntryKind.ERROR, words, is_bad=True)

    def keep_line(self, line: str) -> None:
        """Add a line to the history of `:`, unless it is the last one already."""
        if self._typed[-1:] != [line]:
            self._typed.append(line)

    def command_context(self, *, has_row: bool, has_changes: bool) -> CommandContext:
        """Return what decides which commands are possible."""
        phase = self.phase
        return CommandContext(
            is_live=phase is ConnectionPhase.LIVE,
            is_down=not phase.is_answered,
            is_read_only=self.is_read_only,
            is_replay=self.source.playback is not None,
            is_served=self.options.is_served,
            has_row=has_row,
            has_changes=has_changes,
        )

    @property
    def is_read_only(self) -> bool:
        """True when nothing can be changed: asked for, or because the server takes no writes."""
        return self.options.read_only or self.source.info.is_read_only or self._takes_no_writes

    @property
    def _takes_no_writes(self) -> bool:
        if self.snapshot is None:
            return False
        return self.snapshot.server.in_recovery or not self.snapshot.server.may_change_jobs

    # -- the frame -------------------------------------------------------------------------------------------------

    @property
    def _pace(self) -> float:
        return self.period * (BLURRED if self._is_blurred else 1.0)

    @property
    def _expected(self) -> float:
        """How often an answer can be expected: seldomer than asked for when an answer costs much."""
        return max(self._pace, TICK, self._rest)

    def _tick(self) -> None:
        self._follow_phase()
        self.draw_frame()
        if (screen := self.front) is not None and screen.is_mounted and self._paused_at is None:
            screen.show_time()

    def _follow_phase(self) -> None:
        phase = self.phase
        if phase is not self.drawn_phase:
            self.drawn_phase = phase
            if phase.is_answered:
                self.note(EntryKind.CONNECTION, f"connection {phase}", is_bad=phase is ConnectionPhase.STALE)
            self.refresh_bindings()

    def _measure(self, snapshot: QueueSnapshot) -> None:
        flow = self.flow_meter.read(snapshot)
        second = snapshot.at.timestamp()
        age = timedelta() if snapshot.backlog_age is None else snapshot.backlog_age
        # What was measured holds since the answer before: seldom answers, as without focus, leave no gaps.
        for each in seconds_between(self._measured_at, second):
            if flow is not None:
                self.history.done.add(each, flow.done)
                self.history.added.add(each, flow.added)
            self.history.age.add(each, max(0.0, age.total_seconds() - (second - each)))
        self._measured_at = second

    def draw_frame(self) -> None:
        """Draw the lines around the screen."""
        screen = self.front
        if screen is None:
            return
        phase = self.phase
        tables = [table for table in screen.query("KeyedTable") if hasattr(table, "waiting")]
        target = self.source.info
        status = ConnectionStatus(
            phase=phase,
            target=self._where(target.where),
            schema=target.schema,
            mode="READ-ONLY" if self.is_read_only else "READ-WRITE",
            environment=self.options.badge,
            period=self._pace,
            cost=self.cost,
            clock=formatting.clock(self.now) if self.snapshot is not None else "",
            paused_for=None if self._paused_at is None else self.clock() - self._paused_at,
            is_listening=self.is_listening,
            is_unfocused=self._is_blurred,
            waiting=sum(table.waiting for table in tables),
            replay="" if self.source.playback is None else replay_words(self.source.playback),
        )
        screen.frame(status, self._banner(phase), dimmed=not phase.is_answered)

    def _where(self, described: str) -> str:
        if self.snapshot is None:
            return described
        server = self.snapshot.server
        return f"{server.user}@{server.host or 'local'}/{server.database}"

    def _banner(self, phase: ConnectionPhase) -> str:
        words = sanitize.line(self.connection.reason, 300)
        now = self.clock()
        attempt = f"attempt {self.connection.attempt + 1}"
        match phase:
            case ConnectionPhase.DOWN:
                left = self.connection.next_try_in(now) or 0.0
                return f"▲ DOWN: {words}. Retrying in {left:.0f} s ({attempt}); r retries now."
            case ConnectionPhase.RETRYING:
                return f"▲ RETRYING ({attempt}): {words}"
            case ConnectionPhase.DENIED:
                again = self.connection.next_try_in(now)
                what = "Fix this, then press r" if again is None else f"Retrying in {again:.0f} s"
                return f"▲ DENIED: {words}. {what}."
            case ConnectionPhase.NO_SCHEMA:
                return f"▲ NO SCHEMA: {words}"
            case ConnectionPhase.STALE:
                why = f": {sanitize.line(self.late_because, 200)}" if self.late_because else ""
                return f"! STALE: no answer for {self.connection.unanswered_for(now) or 0.0:.0f} s{why}."
            case _:
                return self._warning()

    def _warning(self) -> str:
        if self.snapshot is not None and self.snapshot.schema.rows_hidden:
            user = sanitize.line(self.snapshot.server.user, 60)
            return f"! Row-level security hides jobs from {user}: counts are incomplete. Run gw doctor."
        return ""

    # -- commands --------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is possible now; Textual asks before it shows or runs one."""
        command = BY_ID.get(action)
        if command is None or not command.is_everywhere:
            return True
        if command.is_typed and isinstance(self.focused, Input | TextArea):
            return False  # within a text its key is a character
        return command.possible(self.command_context(has_row=False, has_changes=False))

    def action_go(self, place: str) -> None:
        """Go to a screen."""
        self.visit(place)

    def visit(self, place: str, filter: str = "") -> None:
        """Go to a screen and, with a filter, let it show that."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, ConsoleScreen):
            self.pop_screen()
        self.switch_mode(place)
        screen = self.front
        if filter and screen is not None:
            screen.call_after_refresh(screen.take_filter, filter)

    def action_reconnect(self) -> None:
        """Try to reach the database now."""
        self.refresh_now()

    def action_pause(self) -> None:
        """Stop drawing, or go on; a recording is paused itself."""
        if self.source.playback is not None:
            self.source.playback.toggle()
            self.refresh_now()
        elif self._paused_at is None:
            self._paused_at = self.clock()
        else:
            self._paused_at = None
            self._show_again()
        self.draw_frame()

    def action_seek_back(self) -> None:
        """Move a recording back."""
        self._seek(-SEEK)

    def action_seek_forward(self) -> None:
        """Move a recording forward."""
        self._seek(SEEK)

    def _seek(self, seconds: float) -> None:
        if self.source.playback is not None:
            self.source.playback.seek(seconds)
            self.refresh_now()
            self.draw_frame()

    def action_suspend(self) -> None:
        """Return to the shell; `fg` continues."""
        with suppress(SuspendNotSupported):
            self.action_suspend_process()

    def action_faster(self) -> None:
        """Refresh more often."""
        self._set_period(max((each for each in PERIODS if each < self.period), default=PERIODS[0]))

    def action_slower(self) -> None:
        """Refresh less often."""
        self._set_period(min((each for each in PERIODS if each > self.period), default=PERIODS[-1]))

    def action_zoom(self) -> None:
        """Maximize or restore the focused panel."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.screen.focused is not None:
            self.screen.maximize(self.screen.focused)

    def action_help(self) -> None:
        """Show the keys of the screen in front."""
        from gw_tui.screens.help import HelpScreen

        screen = self.front
        if screen is not None and self.screen is screen:
            title, about = screen.describe()
            self.push_screen(HelpScreen(title, about, screen.active_bindings))

    def action_command_line(self) -> None:
        """Ask for a command and go where it leads."""
        screen = self.front
        if screen is not None and self.screen is screen:
            # Pushed without a worker: the keys that follow immediately belong to the line.
            self.push_screen(CommandLine(self._typed, self.options), self._typed_destination)

    async def _typed_destination(self, found: Destination | None) -> None:
        if found is not None:
            await self._follow(found)

    async def _follow(self, found: Destination) -> None:
        """Go to a destination."""
        if found.command:
            command = BY_ID[found.command]
            where = self if command.is_everywhere else self.front
            if where is not None and where.check_action(command.id, ()):
                await self.run_action(command.action, where)
            else:
                self.notify(f"{command.label} is not possible here", severity="warning")
        elif found.context:
            self._switch_to(found.context)
        elif found.view is not None:
            self._open_view(found.view)
        elif found.job is not None:
            from gw_tui.screens.job import JobScreen

            self.visit("jobs")
            self.push_screen(JobScreen(found.job))
        else:
            self.visit(found.screen, found.filter)

    def _open_view(self, view: SavedView) -> None:
        """Show a saved view; its columns and order are not remembered."""
        self.visit(view.screen)
        if (screen := self.front) is not None:
            screen.call_after_refresh(screen.show_view, view)

    @work
    async def action_views(self) -> None:
        """Choose a saved view."""
        views = self.options.views
        choices = [Choice(name, sanitize.line(name, 40), sanitize.line(each.words, 60)) for name, each in views.items()]
        if not choices:
            self.notify("gw.toml has no views, as tables [[tui.views]]")
        elif (name := await self.push_screen_wait(Choose("Open a view", choices))) is not None:
            self._open_view(views[name])

    @work
    async def action_contexts(self) -> None:
        """Choose another database."""
        choices = [Choice(name, name, "shown" * (name == self.options.context)) for name in self.options.contexts]
        if not choices:
            self.notify("The console shows a single database; others are named by --shard or tui.contexts")
        elif (name := await self.push_screen_wait(Choose("Show another database", choices))) is not None:
            self._switch_to(name)

    def _switch_to(self, context: str) -> None:
        """End this console; another one begins with the same screen, theme and interval."""
        if context == self.options.context:
            return
        if self.is_busy:
            self.notify("Wait for the running action, or stop it with esc", severity="warning")
        elif self.options.is_served:
            self.notify("A browser shows one database: gw tui --serve --context NAME", severity="warning")
        else:
            screen = self.current_mode if self.current_mode in SCREEN_BY_ID else SCREENS[0].id
            here = replace(self.options, screen=screen, filter="", open="", theme=self.theme, period=self.period)
            self.exit(replace(here, context=context, typed=tuple(self._typed)))

    def action_palette(self) -> None:
        """Find a command by its name."""
        self.action_command_palette()

    def action_jump(self) -> None:
        """Show a letter on everything that can be focused."""
        from gw_tui.screens.jump import JumpScreen, places

        screen = self.front
        if screen is not None and self.screen is screen:
            self.push_screen(JumpScreen(places(screen)), lambda chosen: None if chosen is None else chosen.focus())

    def action_sweep_now(self) -> None:
        """Ask what a sweep would do, and then whether to do it."""
        self.sweep()

    def action_cleanup_failed_jobs(self) -> None:
        """Delete permanently failed jobs, after a confirmation."""
        self.clean_up(CleanupTarget.FAILED_JOBS)

    def action_cleanup_unused_tasks(self) -> None:
        """Delete task identifiers without jobs, after a question."""
        self.clean_up(CleanupTarget.UNUSED_TASKS)

    def action_cleanup_unused_queues(self) -> None:
        """Delete named queues without jobs, after a question."""
        self.clean_up(CleanupTarget.UNUSED_QUEUES)

    def action_run_doctor(self) -> None:
        """Run the doctor now."""
        self._maintenance.run_doctor()

    def action_next_theme(self) -> None:
        """Switch to the next theme."""
        names = self.theme_names
        place = names.index(self.theme) if self.theme in names else -1
        self.use_theme(names[(place + 1) % len(names)])

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """Save the screen as an SVG file."""
        saved = self.save_screenshot(filename, path)
        self.notify(f"Saved {saved}", markup=False)

    @property
    def theme_names(self) -> list[str]:
        """The themes there are, ours first."""
        return [*NAMES, *sorted(set(self.available_themes) - set(NAMES))]

    def use_theme(self, name: str) -> None:
        """Show everything in other colours."""
        self.theme = name

    def _set_period(self, period: float) -> None:
        self.period = period
        self.poller.reader.set_interval(self._pace)
        self.draw_frame()

    def _show_again(self) -> None:
        """Show the messages that arrived while nothing was drawn."""
        screen = self.front
        if screen is None:
            return
        if self.snapshot is not None:
            screen.show_snapshot(self.snapshot)
        if self.answer is not None:
            screen.show_answer(self.answer.query, self.answer.answer)

    def on_app_blur(self, _: events.AppBlur) -> None:
        """Query less often while the terminal has no focus."""
        if self.options.pause_unfocused:
            self._is_blurred = True
            self.poller.reader.set_interval(self._pace)

    def on_app_focus(self, _: events.AppFocus) -> None:
        """Query immediately when the terminal has the focus again."""
        if self._is_blurred:
            self._is_blurred = False
            self.poller.reader.set_interval(self._pace)
