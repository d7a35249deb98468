"""What became of an action, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gw_core.front_ends import END_OF_TIME, counted
from gw_tui.actions.action import Action, Result
from gw_tui.actions.jobs import Restore

if TYPE_CHECKING:
    from gw_core import Job

MAX_NEW_IDS = 5
"""The headline of restored jobs names at most this many new ids."""


class ActionOutcome(msgspec.Struct, frozen=True):
    """An action, and its result: so far, or when it has ended, failed or been stopped."""

    action: Action
    result: Result = msgspec.field(default_factory=Result)
    failure: str = ""
    is_lost: bool = False
    """True if the answer to the last transaction may be lost."""

    @property
    def is_plain(self) -> bool:
        """True when one line describes the whole result."""
        return not self.failure and not self.result.skipped and not self.untouched

    @property
    def can_be_undone(self) -> bool:
        """True when it removed jobs, which can be added again."""
        return bool(self.result.removed) and self.action.removes

    @property
    def untouched(self) -> int:
        """How many of its jobs it did not reach."""
        return max(0, len(self.action.ids) - len(self.result.done) - len(self.result.skipped))

    @property
    def to_restore(self) -> Sequence[Job]:
        """The deleted jobs that another restore can add: of a restore, those that it did not reach."""
        if isinstance(self.action, Restore):
            return self.action.jobs[len(self.result.ids) :]
        return self.result.removed if self.can_be_undone else ()

    @property
    def so_far(self) -> str:
        """What was done and skipped, in a line."""
        if self.result.message:
            return self.result.message
        done = self.result.done
        number = len(done) if self.result.count is None else self.result.count
        words = f"{counted(number, self.action.thing)} {self.action.done_words}"
        if isinstance(self.action, Restore) and done:
            words += f", with new ids: {', '.join(done[:MAX_NEW_IDS])}{', …' * (len(done) > MAX_NEW_IDS)}"
            skipped = {item.what for item in self.result.skipped}
            jobs = self.action.jobs[: len(self.result.ids)]
            if waited := sum(job.run_at == END_OF_TIME and str(job.id) not in skipped for job in jobs):
                words += f"; {waited} of them, which waited for others, will start only when rescheduled"
        return f"{words}, {len(self.result.skipped)} skipped" if self.result.skipped else words

    @property
    def headline(self) -> str:
        """What became of it, in a line; empty for a reading that failed, which changed nothing."""
        if self.failure and self.action.reads_only:
            return ""
        if isinstance(self.action, Restore) and self.untouched:
            return f"{self.so_far}; {self.untouched:,} not restored yet, U continues"
        if self.is_lost and self.untouched:
            return f"{self.so_far}; {self.untouched:,} unknown, gw actions shows what was done"
        if self.is_lost and not self.action.ids:  # of which nothing is known
            last = "the last change may be done, check before you repeat it"
            return f"{self.so_far}; {last}" if self.result.done else last
        is_stopped = self.untouched and not self.failure
        return f"{self.so_far}; stopped, {self.untouched:,} not processed" if is_stopped else self.so_far
