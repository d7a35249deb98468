"""What is paused, and which jobs a worker must not start because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Self

import msgspec

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job

PAUSE_LOCK: Final = "gw-pause:"
"""What the `locked_by` of a paused queue starts with; no worker has such an id."""

TARGETS: Final = "task:NAME, queue:NAME, flag:NAME, cron:IDENTIFIER or all"
"""How the targets of a pause are written."""

MAX_TEXT: Final = 1_000
"""The longest reason and author."""


class PauseKind(StrEnum):
    """What a pause stops."""

    TASK = "task"
    QUEUE = "queue"
    FLAG = "flag"
    CRON = "cron"
    """The runs of a recurring task; jobs of it that were added earlier are not paused."""
    ALL = "all"


class PauseTarget(msgspec.Struct, frozen=True):
    """What to pause or resume: `task:NAME`, `queue:NAME`, `flag:NAME`, `cron:IDENTIFIER` or `all`."""

    kind: PauseKind
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the target written like this. Raises `InvalidInputError`."""
        kind, colon, name = text.partition(":")
        is_complete = not colon if kind == PauseKind.ALL else bool(name)
        if kind not in tuple(PauseKind) or not is_complete or "\x00" in name:
            raise InvalidInputError(f"{text!r} cannot be paused; give {TARGETS}")
        return cls(PauseKind(kind), name)

    def __str__(self) -> str:
        return str(self.kind) if self.kind is PauseKind.ALL else f"{self.kind}:{self.name}"


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause: what is paused, since when, until when (None: until it is resumed), by whom and why.

    Example: docs/api/parts.md
    """

    target: PauseTarget
    since: datetime
    until: datetime | None
    by: str
    reason: str | None

    def applies_to(self, job: Job) -> bool:
        """Return whether it keeps this job from starting."""
        return PauseRules.of([self.target]).forbids(job)

    @property
    def description(self) -> str:
        """Who paused it, since when, until when and why, as a phrase."""
        until = "" if self.until is None else f" until {_time(self.until)}"
        reason = "" if self.reason is None else f": {self.reason}"
        return f"paused by {self.by} since {_time(self.since)}{until}{reason}"


class PauseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `pause` or `resume` did: `changed` counts targets, and these live workers have not confirmed it in time.

    Example: docs/api/parts.md
    """

    changed: int
    unconfirmed: tuple[str, ...] = ()
    targets: tuple[PauseTarget, ...] = ()
    """Those that were paused or resumed; one that was not paused is not resumed."""


class PauseRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker must not start."""

    tasks: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    everything: bool = False

    @classmethod
    def of(cls, targets: Sequence[PauseTarget]) -> Self:
        """Return the rules that these paused targets make."""

        def names(kind: PauseKind) -> frozenset[str]:
            return frozenset(each.name for each in targets if each.kind is kind)

        return cls(
            tasks=names(PauseKind.TASK),
            queues=names(PauseKind.QUEUE),
            flags=names(PauseKind.FLAG),
            everything=any(each.kind is PauseKind.ALL for each in targets),
        )

    def __bool__(self) -> bool:
        return bool(self.everything or self.tasks or self.queues or self.flags)

    def allowed(self, tasks: Mapping[int, str]) -> Mapping[int, str]:
        """Return the tasks, by their ids, whose jobs may be claimed."""
        if self.everything:
            return {}
        return {number: name for number, name in tasks.items() if name not in self.tasks} if self.tasks else tasks

    def forbids(self, job: Job) -> bool:
        """Return whether this job must not start."""
        return (
            self.everything
            or job.task in self.tasks
            or job.queue_name in self.queues
            or bool(self.flags and not self.flags.isdisjoint(job.flags))
        )


NO_PAUSES: Final = PauseRules()


def check_pause_text(name: str, text: str | None) -> None:
    """Raise `InvalidInputError` for a reason or an author that is too long or holds a NUL."""
    if text is not None and (len(text) > MAX_TEXT or "\x00" in text):
        raise InvalidInputError(f"{name} has more than {MAX_TEXT} characters or holds a NUL; shorten it")


def _time(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
