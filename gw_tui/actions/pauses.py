"""Actions on pauses and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from gw_core.front_ends import operator_name
from gw_tui.actions.action import Action, Result, SkippedItem
from gw_tui.actions.command_preview import options, unmistaken

if TYPE_CHECKING:
    from gw_core import Client, RecoverySettings
    from gw_core.operations import PauseResult
    from gw_tui.actions.command_preview import Words


class PauseAction(Action, frozen=True, kw_only=True):
    """An action on a task, a named queue or a recurring task."""

    target: str
    """`task:NAME`, `queue:NAME` or `cron:IDENTIFIER`."""
    reason: str | None = None

    @property
    def thing(self) -> str:
        return self.target.partition(":")[0]

    @property
    def name(self) -> str:
        """What is paused, without its kind."""
        return self.target.partition(":")[2] or self.target

    def entry(self) -> Mapping[str, Any]:
        return {self.done_words: self.target, "reason": self.reason}


class FindPause(Action, frozen=True, kw_only=True):
    """Find the pause of a task, a named queue or a recurring task."""

    reads_only: ClassVar[bool] = True

    target: str

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(pause=next((each for each in client.pauses.list() if str(each.target) == self.target), None))


class Pause(PauseAction, frozen=True, kw_only=True):
    """Pause it, and report the workers that have not confirmed it."""

    done_words: ClassVar[str] = "paused"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        result = client.pauses.pause(self.target, reason=self.reason, by=operator_name())
        return Result(done=(self.name,), message=_unconfirmed(result, f"{self.thing} {self.name} paused"))

    def preview(self) -> Words | None:
        return ["pause", *options(reason=self.reason), self.target]


class Resume(PauseAction, frozen=True, kw_only=True):
    """Resume it."""

    done_words: ClassVar[str] = "resumed"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        result = client.pauses.resume(self.target, by=operator_name())
        if not result.changed:
            return Result(skipped=(SkippedItem(self.name, "not paused"),))
        return Result(done=(self.name,), message=_unconfirmed(result, f"{self.thing} {self.name} resumed"))

    def preview(self) -> Words | None:
        return ["resume", self.target]


class SetLimit(Action, frozen=True, kw_only=True):
    """Limit how many jobs of a task run at a time, and keep its other limits; None removes that limit."""

    done_words: ClassVar[str] = "limited"
    thing: ClassVar[str] = "task"

    task: str
    running: int | None

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        known = next((each for each in client.limits.list() if each.task == self.task), None)
        if self.running is None and (known is None or known.per_period is None):
            removed = client.limits.remove(self.task, by=operator_name())
            return Result(done=(self.task,), message=_unconfirmed(removed, f"limit of {self.task} removed"))
        more = (
            {} if known is None else {name: getattr(known, name) for name in ("per_period", "period", "burst", "field")}
        )
        result = client.limits.set(self.task, running=self.running, by=operator_name(), **more)
        return Result(done=(self.task,), message=_unconfirmed(result, f"task {self.task} limited"))

    def preview(self) -> Words | None:
        change = ["--off"] if self.running is None else options(running=self.running)
        return ["limit", *unmistaken((self.task,), *change)]


def _unconfirmed(result: PauseResult, done: str = "done") -> str:
    return f"{done}, not confirmed by {', '.join(result.unconfirmed)}" if result.unconfirmed else ""
