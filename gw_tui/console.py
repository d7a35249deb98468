"""What screens, dialogs and actions use of the running console; `gw_tui.app` adds the screens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from textual import work
from textual.app import App
from textual.notifications import SeverityLevel

from gw_core.front_ends import ThroughputMeter
from gw_tui.actions.log import ActionLog, Payloads
from gw_tui.data.poller import BLURRED, Poller
from gw_tui.rules.chart_series import History, seconds_between
from gw_tui.rules.commands import CommandContext
from gw_tui.rules.connection_state import ConnectionPhase, ConnectionState
from gw_tui.rules.journal import EntryKind, Journal
from gw_tui.rules.options import Options
from gw_tui.widgets.themes import NAMES

if TYPE_CHECKING:
    from textual.screen import Screen

    from gw_core.front_ends import QueueSnapshot
    from gw_tui.actions.actions import Action
    from gw_tui.data.messages import ActionFinished
    from gw_tui.data.source import DataSource
    from gw_tui.rules.preferences import TableChoice

TICK: Final = 0.5
"""How often ages and countdowns go on, in seconds."""


class Console(App[Options]):
    """The state of the console and its threads. Only the thread of the screen may call it."""

    def __init__(self, source: DataSource, options: Options, clock: Callable[[], float]) -> None:
        self.options = options
        super().__init__(ansi_color=None if options.colour else True)
        self.source = source
        self.clock = clock
        self.period = options.period
        self.connection = ConnectionState()
        self.journal = Journal()
        self.history = History()
        self.snapshot: QueueSnapshot | None = None
        self.cost: float | None = None
        self.flow_meter = ThroughputMeter()
        self.poller = Poller(source, self.post_message, period=self.period, log=self._action_log())
        self.is_listening = True
        self._rest = 0.0
        self._is_blurred = False
        self._measured_at: float | None = None
        self._typed = list(options.typed)
        self._submitted: dict[int, asyncio.Future[ActionFinished]] = {}

    def _action_log(self) -> ActionLog | None:
        path = self.options.action_log
        if path is None:
            return None
        log = ActionLog(path, Payloads(self.options.log_payloads))
        with suppress(OSError):  # reported at the next write
            log.delete_old()
        return log

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

    @property
    def _pace(self) -> float:
        return self.period * (BLURRED if self._is_blurred else 1.0)

    @property
    def _expected(self) -> float:
        """How often an answer can be expected: seldomer than asked for when an answer costs much."""
        return max(self._pace, TICK, self._rest)

    def measure(self, snapshot: QueueSnapshot) -> None:
        """Add what a snapshot shows to the history."""
        flow = self.flow_meter.read(snapshot)
        second = snapshot.at.timestamp()
        age = snapshot.backlog_age or timedelta()
        is_known = snapshot.knows_waiting
        # What was measured holds since the answer before: seldom answers, as without focus, leave no gaps.
        for each in seconds_between(self._measured_at, second):
            if flow is not None:
                self.history.done.add(each, flow.done)
                self.history.added.add(each, flow.added)
            if is_known:
                self.history.age.add(each, max(0.0, age.total_seconds() - (second - each)))
        self._measured_at = second

    # -- queries and actions ---------------------------------------------------------------------------------------

    def refresh_now(self) -> None:
        self.poller.reader.refresh_now()

    def submit(self, action: Action) -> asyncio.Future[ActionFinished]:
        """Run an action after those submitted before, and return its outcome to come."""
        self._submitted[id(action)] = outcome = asyncio.get_running_loop().create_future()
        self.poller.actor.do(action)
        return outcome

    def take_outcome(self, message: ActionFinished) -> None:
        """Resolve what `submit` returned for an action."""
        outcome = self._submitted.pop(id(message.action), None)
        if outcome is not None and not outcome.done():  # the screen that waited for it may be gone
            outcome.set_result(message)

    def note(self, kind: EntryKind, words: str, *, is_bad: bool = False) -> None:
        """Keep an entry in the journal."""
        self.journal.note(self.now, kind, words, is_bad=is_bad)

    @work
    async def remember(self, screen: str, choice: TableChoice) -> None:
        """Keep the columns and the order of a list for the next start."""
        self.options.preferences.choose(screen, choice)
        try:
            await asyncio.to_thread(self.options.preferences.write, screen)
        except OSError as error:
            self.note(EntryKind.ERROR, f"The columns cannot be remembered: {error.strerror}", is_bad=True)

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

    # -- the screen ------------------------------------------------------------------------------------------------

    @property
    def theme_names(self) -> list[str]:
        """The themes there are, ours first."""
        return [*NAMES, *sorted(set(self.available_themes) - set(NAMES))]

    def use_theme(self, name: str) -> None:
        self.theme = name

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

    # -- of the app ------------------------------------------------------------------------------------------------

    def ask(self, screen: Screen[Any]) -> None:
        """Run a screen's query from now on, while it is in front."""
        raise NotImplementedError

    def visit(self, place: str, filter: str = "") -> None:
        """Go to a screen and apply a filter to it."""
        raise NotImplementedError

    def draw_frame(self) -> None:
        """Draw the lines around the screen."""
        raise NotImplementedError

    def copy(self, text: str, words: str = "") -> None:
        """Copy a text, and confirm it; reject one that is too long for a terminal to copy."""
        raise NotImplementedError

    def copy_preview(self, action: Action) -> None:
        """Copy the gw command that does the same as an action."""
        raise NotImplementedError
