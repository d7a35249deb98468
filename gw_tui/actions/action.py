"""What every action is: a value that names what it changes, runs itself, and has its command and log entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from gw_core import Client, Job, RecoverySettings, operations
    from gw_core.front_ends import Count, FoundJob, SkippedJob
    from gw_core.operations import ActionResult, Finding, QueueCounts, SweepReport
    from gw_tui.actions.command_preview import Words

GONE: Final = "gone"
"""Why an action skipped a job that has left the table."""


class SkippedItem(msgspec.Struct, frozen=True):
    """A job or a worker that an action did not change, and why."""

    what: str
    why: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What an action changed, and what it skipped."""

    ids: Sequence[int] = ()
    """The jobs it is about, where an action on jobs has several results."""
    done: Sequence[str] = ()
    skipped: Sequence[SkippedItem] = ()
    removed: Sequence[Job] = ()
    """The deleted jobs as they were, for `Restore`."""
    sweep: SweepReport | None = None
    statistics: QueueCounts | None = None
    count: int | None = None
    """How many rows a cleanup deleted, or would delete."""
    message: str = ""
    """What happened, where it can differ; empty where the numbers suffice."""
    found: FoundJob | None = None
    findings: Sequence[Finding] = ()
    pause: operations.Pause | None = None
    queue: tuple[Count, Count] | None = None
    """How many jobs of the counted queue are waiting, and how many of them are due."""

    def followed_by(self, more: Result) -> Result:
        """Return the result of two actions that ran one after the other."""
        return replace(
            more,
            ids=(*self.ids, *more.ids),
            done=(*self.done, *more.done),
            skipped=(*self.skipped, *more.skipped),
            removed=(*self.removed, *more.removed),
        )


class Action(msgspec.Struct, frozen=True):
    """Something an operator can do."""

    done_words: ClassVar[str] = ""
    """Such as "retried"; the number of things comes before it."""
    removes: ClassVar[bool] = False
    """True for a removal of jobs that `Restore` takes back."""
    BATCH_SIZE: ClassVar[int] = 500
    """Jobs changed in one short transaction; an action can be stopped after each."""

    @property
    def thing(self) -> str:
        """What it changes, in the singular."""
        return "job"

    @property
    def ids(self) -> Sequence[int]:
        """The ids of the jobs that it changes, if it names any."""
        return ()

    @property
    def is_long(self) -> bool:
        """True when it takes more than one batch."""
        return len(self.ids) > self.BATCH_SIZE

    @property
    def reads_only(self) -> bool:
        """True for an action that changes nothing."""
        return False

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        """Do it, and return what became of each job or worker."""
        raise NotImplementedError

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        """Do it, and yield the result of each transaction; nothing more is done after the iterator is dropped."""
        yield self.run(client, recovery)

    def preview(self) -> Words | None:
        """Return the words of the equivalent command for `gw_command`; None where there is none."""
        return None

    def entry(self) -> Mapping[str, Any]:
        """Return its entry in the action log: what it was given, apart from jobs."""
        return given(self, [name for name in self.__struct_fields__ if name not in ("job", "jobs")])


def changed(result: ActionResult) -> Result:
    """Return what a batch of jobs became."""
    return Result(
        ids=[*result.ids, *(each.id for each in result.skipped)],
        done=tuple(str(each.id) for each in result.changed),
        skipped=tuple(SkippedItem(str(each.id), why_skipped(each)) for each in result.skipped),
        removed=tuple(each.job for each in result.changed if each.job is not None and each.job.payload_json),
    )


def why_skipped(skipped: SkippedJob) -> str:
    """Return in words why a job was left alone."""
    match skipped.reason.value:
        case "locked":
            return f"locked by {skipped.locked_by}"
        case "changed":
            return f"changed ({skipped.changes})" if skipped.changes else "changed"
        case "not_found":
            return GONE
        case "busy":
            return "being changed by another session"
        case _:
            return "not failed; t reschedules it"


def given(action: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return those of the fields that have a value."""
    values = {name: getattr(action, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}
