"""What the operator has under way: an act in parts, so that it can be watched and stopped between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gw_core.operations import JobVersion
from gw_tui.actions.actions import Act, Fail, Remove, RemoveByKey, Reschedule, Restore, Result, Retry
from gw_tui.text import formatting

if TYPE_CHECKING:
    from gw_core import Job
    from gw_core.operations import FoundJob

PART: Final = 500
"""Jobs changed in one go; each is one short transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionBatch:
    """An act as the operator gave it: how it is called when done, its parts, and what became of those so far."""

    done_words: str
    """Such as "retried"; a number of jobs comes before it."""
    parts: tuple[Act, ...]
    thing: str = "job"
    size: int = 1
    """How many jobs, or other things, were meant."""
    result: Result = field(default_factory=Result)
    next_part: int = 0
    failure: str = ""
    is_stopped: bool = False
    is_quiet: bool = False
    """Nobody is told of it when it went well: it only looked."""

    @property
    def next_act(self) -> Act | None:
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
        """True when one line says all that is to be said of it."""
        return self.is_whole and not self.failure and not self.result.omitted

    @property
    def can_be_undone(self) -> bool:
        """True when it removed jobs, which can be added again."""
        return bool(self.result.removed) and isinstance(self.parts[0], Remove | RemoveByKey)

    def absorbed(self, result: Result | None, failure: str = "") -> ActionBatch:
        """Return the deed after its next part was done, or failed."""
        if result is None:
            return replace(self, failure=failure)
        so_far = self.result
        both = replace(
            result,
            done=(*so_far.done, *result.done),
            omitted=(*so_far.omitted, *result.omitted),
            removed=(*so_far.removed, *result.removed),
        )
        return replace(self, result=both, next_part=self.next_part + 1)

    def stopped(self) -> ActionBatch:
        """Return the deed as it is when nothing more of it shall be done; the part under way still counts."""
        return replace(self, is_stopped=True)

    @property
    def headline(self) -> str:
        """What became of it, in a line."""
        if self.result.told:
            return self.result.told
        number = len(self.result.done) if self.result.count is None else self.result.count
        words = f"{formatting.counted(number, self.thing)} {self.done_words}"
        if self.result.omitted:
            words += f", {len(self.result.omitted)} left alone"
        if self.is_stopped and not self.is_whole:
            words += f"; stopped, {self.untouched:,} not looked at"
        return words

    @property
    def untouched(self) -> int:
        """How many were meant and not reached."""
        return max(0, self.size - len(self.result.done) - len(self.result.omitted))


def retry(jobs: Sequence[FoundJob]) -> ActionBatch:
    """Let jobs run again now."""
    return _of_jobs("retried", jobs, lambda seen: Retry(jobs=seen))


def fail(jobs: Sequence[FoundJob], reason: str | None) -> ActionBatch:
    """Fail jobs for good."""
    return _of_jobs("failed for good", jobs, lambda seen: Fail(jobs=seen, reason=reason))


def remove(jobs: Sequence[FoundJob]) -> ActionBatch:
    """Remove jobs as if they had been completed."""
    return _of_jobs("removed", jobs, lambda seen: Remove(jobs=seen))


def reschedule(jobs: Sequence[FoundJob], change: Reschedule) -> ActionBatch:
    """Change jobs as `change` says, whose own jobs do not count."""
    return _of_jobs("rescheduled", jobs, lambda seen: replace(change, jobs=seen))


def restore(jobs: Sequence[Job]) -> ActionBatch:
    """Add removed jobs again."""
    parts = tuple(Restore(jobs=jobs[start : start + PART]) for start in range(0, len(jobs), PART))
    return ActionBatch(done_words="added again", parts=parts, size=len(jobs))


def _of_jobs(done_words: str, jobs: Sequence[FoundJob], act: Callable[[Sequence[JobVersion]], Act]) -> ActionBatch:
    seen = [JobVersion.of(each.job) for each in jobs]
    parts = tuple(act(seen[start : start + PART]) for start in range(0, len(seen), PART))
    return ActionBatch(done_words=done_words, parts=parts, size=len(seen))
