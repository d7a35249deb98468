"""The console application: modes, themes and keys; it passes the threads' messages to the screen in front."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
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

from gw_core.front_ends import CleanupTarget, counted
from gw_tui import clipboard
from gw_tui.action_runner import ActionRunner
from gw_tui.actions import Action, gw_command
from gw_tui.actions.log import action_log
from gw_tui.contexts import Contexts
from gw_tui.data.messages import (
    ActionFinished,
    ActionLogFailed,
    ActionProgressed,
    Connecting,
    ConnectionLost,
    JobsAnnounced,
    ListenStateChanged,
    QueryAnswered,
    QueryFailed,
    SnapshotReceived,
)
from gw_tui.data.poller import Poller
from gw_tui.data.source import DataSource
from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.dialogs.command_line import CommandLine
from gw_tui.maintenance import Maintenance
from gw_tui.rules.command_line import Destination, parse_link
from gw_tui.rules.commands import BY_ID, EVERYWHERE, SCREEN_BY_ID, SCREENS, ConsoleCommand, ScreenInfo, known_on
from gw_tui.rules.connection_state import ConnectionPhase
from gw_tui.rules.journal import EntryKind
from gw_tui.rules.options import PERIODS, Options
from gw_tui.rules.preferences import SavedView
from gw_tui.screens.base import ConsoleScreen, bindings_of
from gw_tui.state import TICK, ConsoleState
from gw_tui.text import formatting, sanitize
from gw_tui.text.ansi_filters import OnlyAscii, StripControls
from gw_tui.widgets.frame_text import banner, facts
from gw_tui.widgets.screen_diff import ShownCells
from gw_tui.widgets.themes import FALLBACK, NAMES, THEMES

SEEK: Final = 30.0
"""How far one key moves a recording, in seconds."""


def screen_of(place: ScreenInfo) -> ConsoleScreen:
    module = importlib.import_module(f"gw_tui.screens.{place.id}")
    screen: ConsoleScreen = getattr(module, f"{place.title}Screen")()
    return screen


class ConsoleApp(App[Options]):
    """The operators' console over a source; `run()` shows it until the operator leaves.

    It returns options when the operator chooses another database: a new console starts there, so that nothing mixes.
    """

    CSS_PATH = "app.tcss"
    TITLE = "gw"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        place.id: partial(screen_of, place) for place in SCREENS
    }
    ENABLE_COMMAND_PALETTE = False
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
        options = options or Options()
        self._own_filters: list[LineFilter] = [StripControls()]
        if options.ascii:
            self._own_filters.append(OnlyAscii())
        if not options.colour:
            self._own_filters.append(NoColor())
        self.state = ConsoleState(source, options, clock)
        super().__init__(ansi_color=None if options.colour else True)
        self.poller = Poller(source, self.post_message, period=options.period, log=action_log(options))
        self.action_runner = ActionRunner(self, self.poller.actor)
        self.maintenance = Maintenance(self, self.action_runner)
        self.contexts = Contexts(self, self.state, self.action_runner)
        self.no_color = not options.colour
        if "TEXTUAL_ANIMATIONS" not in os.environ:
            self.animation_level = "none"
        self._shown_cells = ShownCells()
        self._generation = 0  # of the query of the screen in front
        self._drawn = 0  # the generation whose answer was drawn last
        self.answer: QueryAnswered | None = None
        self.drawn_phase = ConnectionPhase.CONNECTING

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
        for theme in THEMES:
            self.register_theme(theme)
        options = self.state.options
        self.theme = options.theme if options.theme in self.available_themes else NAMES[0]
        keymap = {name: ",".join(keys) for name, keys in options.preferences.keys.items()}
        self.set_keymap(keymap)
        for name, keys in keymap.items():
            if not BY_ID[name].keys:  # there is no key to be exchanged
                self.bind(keys, BY_ID[name].action, show=False)
        self.state.note(EntryKind.CONSOLE, f"console started on {self.state.source.info.where}")
        self.visit(options.screen if options.screen in SCREEN_BY_ID else SCREENS[0].id)
        if options.open:
            self.call_after_refresh(self._follow, parse_link(options.open, options))
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

    # -- messages of the threads -----------------------------------------------------------------------------------

    @on(SnapshotReceived)
    def _on_snapshot(self, message: SnapshotReceived) -> None:
        self.state.answered(message)
        if self.state.source.playback is None:  # the answers of a recording include what was announced
            self.poller.listener.reached()
        self._follow_phase()
        if not self.state.is_frozen and (screen := self.front) is not None:
            screen.show_snapshot(message.snapshot)
        self.draw_frame()

    @on(QueryAnswered)
    def _answered(self, message: QueryAnswered) -> None:
        if message.generation != self._generation:
            return
        self.answer = message
        # Also a frozen display shows the first answer to a new query.
        if (not self.state.is_frozen or self._drawn < message.generation) and (screen := self.front) is not None:
            self._drawn = message.generation
            screen.show_answer(message.query, message.answer)

    @on(QueryFailed)
    def _hindered(self, message: QueryFailed) -> None:
        if message.query is None:
            self.state.late_because = message.reason
        self.state.note(EntryKind.ERROR, f"{message.failure}: {message.reason}", is_bad=True)
        if message.query is not None and message.generation == self._generation and self.front is not None:
            self.front.show_failure(message.failure, message.reason)

    @on(ConnectionLost)
    def _lost(self, message: ConnectionLost) -> None:
        self.state.lost(message)
        self._follow_phase()
        self.draw_frame()

    @on(Connecting)
    def _trying(self) -> None:
        self.state.connection = self.state.connection.trying()
        self.draw_frame()

    @on(JobsAnnounced)
    def _announced(self, message: JobsAnnounced) -> None:
        self.state.note(EntryKind.JOBS, f"{counted(message.jobs, 'job')} announced")

    @on(ListenStateChanged)
    def _on_listen_state(self, message: ListenStateChanged) -> None:
        if self.state.is_listening and not message.is_listening:
            self.state.note(EntryKind.CONNECTION, f"LISTEN failed, polling only: {message.reason}", is_bad=True)
        if message.is_listening and not self.state.is_listening:
            self.state.note(EntryKind.CONNECTION, "LISTEN restored")
        self.state.is_listening = message.is_listening

    @on(ActionProgressed)
    def _progressed(self, message: ActionProgressed) -> None:
        self.action_runner.follow(message)

    @on(ActionFinished)
    def _acted(self, message: ActionFinished) -> None:
        self.action_runner.take_outcome(message)
        self.refresh_now()

    @on(ActionLogFailed)
    def _unwritten(self, message: ActionLogFailed) -> None:
        self.state.note(EntryKind.ERROR, message.reason, is_bad=True)
        self.notify(sanitize.line(message.reason, 200), severity="warning")

    # -- what the screens ask and do -------------------------------------------------------------------------------

    def refresh_now(self) -> None:
        self.poller.reader.refresh_now()

    @property
    def front(self) -> ConsoleScreen | None:
        """The screen in front, dialogs left aside; None at the very end, when screens are being taken apart."""
        if not self.is_running:
            return None
        return next((each for each in reversed(self.screen_stack) if isinstance(each, ConsoleScreen)), None)

    def ask(self, screen: Screen[Any]) -> None:
        if (front := self.front) is screen and front is not None:
            self._generation += 1
            self.answer = None
            self.poller.reader.ask(front.current_query(), self._generation)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message, which is never markup, in the line of the keys, which covers no row."""
        words = f"{title}: {message}" if title else message
        super().notify(words, severity=severity, timeout=timeout, markup=False)

    def on_notify(self) -> None:
        """Let a message take the place of the one before."""
        self.clear_notifications()

    def copy(self, text: str, words: str = "") -> None:
        shown = clipboard.on_one_line(text)
        if clipboard.is_too_long(shown):
            size = formatting.size(len(shown.encode(errors="surrogatepass")))
            self.notify(f"Too large to copy: {size}", severity="warning")
            return
        self.copy_to_clipboard(shown)
        escaped = "" if shown == text else "; line breaks and control characters replaced"
        self.notify(words or f"Copied {sanitize.line(shown, 100)}{escaped}")

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text as one line without control characters, safe to paste anywhere."""
        super().copy_to_clipboard(clipboard.on_one_line(text))

    def copy_preview(self, action: Action) -> None:
        if (words := action.preview()) is None:
            self.notify("No equivalent command")
            return
        try:
            self.copy(clipboard.command_line(gw_command(words, self.state.source.info.schema)))
        except ValueError as error:
            self.notify(str(error), severity="warning")

    # -- the frame -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._follow_phase()
        self.draw_frame()
        if (screen := self.front) is not None and screen.is_mounted and not self.state.is_frozen:
            screen.show_time()

    def _follow_phase(self) -> None:
        phase = self.state.phase
        if phase is not self.drawn_phase:
            self.drawn_phase = phase
            if phase.is_answered:
                self.state.note(EntryKind.CONNECTION, f"connection {phase}", is_bad=phase is ConnectionPhase.STALE)
            if self.front is not None:
                self.refresh_bindings()

    def draw_frame(self) -> None:
        if (screen := self.front) is not None:
            phase = self.state.phase
            shown = facts(self.state, phase, screen.waiting_changes)
            screen.frame(shown, banner(self.state, phase), dimmed=not phase.is_answered)

    # -- commands --------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        command = BY_ID.get(action)
        if command is None or not command.is_everywhere:
            return True
        if command.is_typed and isinstance(self.focused, Input | TextArea):
            return False  # within a text its key is a character
        return command.possible(self.state.command_context(has_row=False, has_changes=False))

    def action_go(self, place: str) -> None:
        self.visit(place)

    def visit(self, place: str, filter: str = "") -> None:
        self._pop_pages()
        self.switch_mode(place)
        self._pop_pages()  # a job's page that was left open there is not what was asked for
        screen = self.front
        if filter and screen is not None:
            screen.call_after_refresh(screen.take_filter, filter)

    def _pop_pages(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_reconnect(self) -> None:
        self.refresh_now()

    def action_freeze(self) -> None:
        """Stop drawing, or go on; a recording is paused itself."""
        if (playback := self.state.source.playback) is not None:
            playback.toggle()
            self.refresh_now()
        elif not self.state.is_frozen:
            self.state.frozen_at = self.state.clock()
        else:
            self.state.frozen_at = None
            self._show_again()
        self.draw_frame()

    def action_seek_back(self) -> None:
        self._seek(-SEEK)

    def action_seek_forward(self) -> None:
        self._seek(SEEK)

    def _seek(self, seconds: float) -> None:
        if (playback := self.state.source.playback) is not None:
            playback.seek(seconds)
            self.refresh_now()
            self.draw_frame()

    def action_suspend(self) -> None:
        """Return to the shell; `fg` continues."""
        with suppress(SuspendNotSupported):
            self.action_suspend_process()

    def action_faster(self) -> None:
        self._set_period(max((each for each in PERIODS if each < self.state.period), default=PERIODS[0]))

    def action_slower(self) -> None:
        self._set_period(min((each for each in PERIODS if each > self.state.period), default=PERIODS[-1]))

    def action_zoom(self) -> None:
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.screen.focused is not None:
            self.screen.maximize(self.screen.focused)

    def action_help(self) -> None:
        from gw_tui.screens.help import HelpScreen

        screen = self.front
        if screen is not None and self.screen is screen:
            title, about = screen.describe()
            self.push_screen(HelpScreen(title, about, screen.active_bindings))

    def action_command_line(self) -> None:
        screen = self.front
        if screen is not None and self.screen is screen:
            # Pushed without a worker: the keys that follow immediately belong to the line.
            options = replace(self.state.options, themes=self.theme_names)
            offered = [each for each in known_on(screen.SCREEN_ID) if self._receiver(each).check_action(each.id, ())]
            self.push_screen(CommandLine(self.state.typed, options, offered), self._typed_destination)

    def _receiver(self, command: ConsoleCommand) -> ConsoleScreen | ConsoleApp:
        """Return what runs a command: the screen in front, or the console."""
        screen = self.front
        return self if command.is_everywhere or screen is None else screen

    async def _typed_destination(self, found: Destination | None) -> None:
        if found is not None:
            await self._follow(found)

    async def _follow(self, found: Destination) -> None:
        """Go to a destination."""
        if found.command:
            command = BY_ID[found.command]
            where = self._receiver(command)
            if where.check_action(command.id, ()):
                await self.run_action(command.action, where)
            else:
                self.notify(f"{command.label} is not possible here", severity="warning")
        elif found.context:
            self.contexts.switch_to(found.context)
        elif found.theme:
            self.theme = found.theme
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
        views = self.state.options.preferences.views
        choices = [Choice(name, sanitize.line(name, 40), sanitize.line(each.words, 60)) for name, each in views.items()]
        if not choices:
            self.notify("gw.toml has no views, as tables [[tui.views]]")
        elif (name := await self.push_screen_wait(Choose("Open a view", choices))) is not None:
            self._open_view(views[name])

    @work
    async def action_contexts(self) -> None:
        await self.contexts.choose()

    def action_sweep_now(self) -> None:
        self.maintenance.sweep()

    def action_run_doctor(self) -> None:
        self.maintenance.run_doctor()

    def action_cleanup_failed_jobs(self) -> None:
        self.maintenance.clean_up(CleanupTarget.FAILED_JOBS)

    def action_cleanup_unused_tasks(self) -> None:
        self.maintenance.clean_up(CleanupTarget.UNUSED_TASKS)

    def action_cleanup_unused_queues(self) -> None:
        self.maintenance.clean_up(CleanupTarget.UNUSED_QUEUES)

    @property
    def theme_names(self) -> list[str]:
        """The themes there are, ours first."""
        return [*NAMES, *sorted(set(self.available_themes) - set(NAMES))]

    def action_next_theme(self) -> None:
        names = self.theme_names
        place = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(place + 1) % len(names)]

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        saved = self.save_screenshot(filename, path)
        self.notify(f"Saved {saved}")

    def _set_period(self, period: float) -> None:
        self.state.period = period
        self.poller.reader.set_interval(self.state.pace)
        self.draw_frame()

    def _show_again(self) -> None:
        """Show the messages that arrived while nothing was drawn."""
        screen = self.front
        if screen is None:
            return
        if self.state.snapshot is not None:
            screen.show_snapshot(self.state.snapshot)
        if self.answer is not None:
            screen.show_answer(self.answer.query, self.answer.answer)

    def on_app_blur(self, _: events.AppBlur) -> None:
        """Query less often while the terminal has no focus."""
        if self.state.options.pause_unfocused:
            self.state.is_blurred = True
            self.poller.reader.set_interval(self.state.pace)

    def on_app_focus(self, _: events.AppFocus) -> None:
        """Query immediately when the terminal has the focus again."""
        if self.state.is_blurred:
            self.state.is_blurred = False
            self.poller.reader.set_interval(self.state.pace)
