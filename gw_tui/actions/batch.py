"""An action in parts, with its progress; it can be stopped between two parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gw_core.front_ends import counted
from gw_tui.actions.actions import Action, Complete, JobAction, RemoveByKey, Restore, Result

PART: Final = 500
"""Jobs changed in one go; each is one short transaction."""


class ActionBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An action in parts, and the results so far."""

    parts: tuple[Action, ...]
    size: int = 1
    """How many jobs, or other things, were meant."""
    result: Result = msgspec.field(default_factory=Result)
    next_part: int = 0
    failure: str = ""
    is_stopped: bool = False

    @property
    def action(self) -> Action:
        """The first part, which is of the kind of all."""
        return self.parts[0]

    @property
    def next_action(self) -> Action | None:
        """The part to do next; None when it is over."""
        if self.failure or self.is_stopped or self.next_part >= len(self.parts):
            return None
        return self.parts[self.next_part]

    @property
    def is_whole(self) -> bool:
        """True when every part was done."""
        return self.next_part >= len(self.parts)

    @property
    def is_plain(self) -> bool:
        """True when one line describes the whole result."""
        return self.is_whole and not self.failure and not self.result.skipped

    @property
    def can_be_undone(self) -> bool:
        """True when it removed jobs, which can be added again."""
        return bool(self.result.removed) and isinstance(self.action, Complete | RemoveByKey)

    def absorbed(self, result: Result | None, failure: str = "") -> ActionBatch:
        """Return the batch after its next part was done, or failed."""
        if result is None:
            return replace(self, failure=failure)
        return replace(self, result=self.result.followed_by(result), next_part=self.next_part + 1)

    def stopped(self) -> ActionBatch:
        """Return the batch as it is when nothing more of it shall be done; the part under way still counts."""
        return replace(self, is_stopped=True)

    @property
    def headline(self) -> str:
        """What became of it, in a line."""
        if self.result.message:
            return self.result.message
        number = len(self.result.done) if self.result.count is None else self.result.count
        words = f"{counted(number, self.action.thing)} {self.action.done_words}"
        if self.result.skipped:
            words += f", {len(self.result.skipped)} skipped"
        if self.is_stopped and not self.is_whole:
            words += f"; stopped, {self.untouched:,} not processed"
        return words

    @property
    def untouched(self) -> int:
        """How many were meant and not reached."""
        return max(0, self.size - len(self.result.done) - len(self.result.skipped))


def split(action: Action) -> ActionBatch:
    """Return an action as a batch: on jobs in parts, each of which is one short transaction."""
    if not isinstance(action, JobAction | Restore):
        return ActionBatch(parts=(action,))
    whole: Any = action  # each has jobs of its kind
    jobs: Sequence[Any] = action.jobs
    parts = tuple(replace(whole, jobs=jobs[start : start + PART]) for start in range(0, len(jobs), PART))
    return ActionBatch(parts=parts, size=len(jobs))
