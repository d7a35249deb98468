"""What a console knows: its queue as last answered, its connection, its journal, and how it shows them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from gw_core.front_ends import ThroughputMeter
from gw_tui.data.poller import BLURRED
from gw_tui.rules.chart_series import History, seconds_between
from gw_tui.rules.commands import CommandContext
from gw_tui.rules.connection_state import ConnectionPhase, ConnectionState
from gw_tui.rules.journal import EntryKind, Journal

if TYPE_CHECKING:
    from gw_core.front_ends import QueueSnapshot
    from gw_tui.data.messages import ConnectionLost, SnapshotReceived
    from gw_tui.data.source import DataSource
    from gw_tui.rules.options import Options

TICK: Final = 0.5
"""How often ages and countdowns go on, in seconds."""


class ConsoleState:
    """The facts that the screens of a console draw. Only the thread of the screen may use it."""

    def __init__(self, source: DataSource, options: Options, clock: Callable[[], float]) -> None:
        self.source = source
        self.options = options
        self.clock = clock
        self.period = options.period
        self.is_blurred = False
        self.frozen_at: float | None = None
        """Since when nothing new is drawn, by the clock."""
        self.connection = ConnectionState()
        self.is_listening = True
        self.late_because = ""
        """Why the last snapshot failed, until the next one arrives."""
        self.snapshot: QueueSnapshot | None = None
        self.cost: float | None = None
        self.history = History()
        self.journal = Journal()
        self.typed = list(options.typed)
        """The lines typed after `:`, the oldest first."""
        self._rest = 0.0
        self._flow_meter = ThroughputMeter()
        self._measured_at: float | None = None

    # -- the queue and the connection ------------------------------------------------------------------------------

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
    def pace(self) -> float:
        """How often the console queries, in seconds: less often while its terminal has no focus."""
        return self.period * (BLURRED if self.is_blurred else 1.0)

    @property
    def _expected(self) -> float:
        """How often an answer can be expected: seldomer than asked for when an answer costs much."""
        return max(self.pace, TICK, self._rest)

    @property
    def is_frozen(self) -> bool:
        return self.frozen_at is not None

    def answered(self, message: SnapshotReceived) -> None:
        """Keep a snapshot, and add what it shows to the history."""
        if self.snapshot is None:  # until now, this machine's clock had to do
            self.journal.move(message.snapshot.at - self.now)
        self.snapshot, self.cost, self._rest = message.snapshot, message.took, message.rest
        self.connection = self.connection.answered(self.clock())
        self.late_because = ""
        self._measure(message.snapshot)

    def lost(self, message: ConnectionLost) -> None:
        """Keep the reason why the connection was lost; a new reason is an entry of the journal."""
        before = self.connection.reason
        self.connection = self.connection.lost(self.clock(), message.failure, message.reason, retry_in=message.retry_in)
        if message.reason != before:
            self.note(EntryKind.CONNECTION, message.reason, is_bad=True)

    def _measure(self, snapshot: QueueSnapshot) -> None:
        flow = self._flow_meter.read(snapshot)
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

    # -- what was done ---------------------------------------------------------------------------------------------

    def note(self, kind: EntryKind, words: str, *, is_bad: bool = False) -> None:
        """Keep an entry in the journal."""
        self.journal.note(self.now, kind, words, is_bad=is_bad)

    def keep_line(self, line: str) -> None:
        """Add a line to the history of `:`, unless it is the last one already."""
        if self.typed[-1:] != [line]:
            self.typed.append(line)

    # -- what is possible ------------------------------------------------------------------------------------------

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
