"""Actions on workers, sessions and cron items, and those that keep a queue in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace

from gw_core import Selection
from gw_core.front_ends import FrontEnd, NotRecordedError, StatementTimeoutError, operator_name
from gw_tui.actions.action import GONE, Action, Result, SkippedItem, changed
from gw_tui.actions.command_preview import unmistaken
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core import Client, RecoverySettings
    from gw_core.front_ends import BackendSession, CleanupTarget, PageCursor
    from gw_tui.actions.command_preview import Words


class Unlock(Action, frozen=True, kw_only=True):
    """Release all locks of dead workers."""

    done_words: ClassVar[str] = "unlocked"
    thing: ClassVar[str] = "worker"

    workers: Sequence[str]

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(done=tuple(each.id for each in client.workers.unlock(self.workers, by=operator_name())))

    def preview(self) -> Words | None:
        return ["unlock", *unmistaken(self.workers)]


class EndSession(Action, frozen=True, kw_only=True):
    """End a session that blocks others; its transaction is rolled back."""

    done_words: ClassVar[str] = "ended"
    thing: ClassVar[str] = "session"

    session: BackendSession

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        pid = str(self.session.pid)
        statement = self.session.statement
        # A reader of the record sees no more of the statement than the operator did.
        seen = replace(self.session, statement=None if statement is None else masked(statement))
        try:
            if FrontEnd(client).end_session(seen, by=operator_name()):
                return Result(done=(pid,))
        except NotRecordedError as error:
            return Result(done=(pid,), message=str(error))
        return Result(skipped=(SkippedItem(pid, GONE),))

    def entry(self) -> Mapping[str, Any]:
        return {"session": str(self.session)}


class PreviewedAction(Action, frozen=True, kw_only=True):
    """An action that can be run dry first: then it only reports what it would do."""

    dry_run: bool = False

    @property
    def reads_only(self) -> bool:
        """True for a dry run."""
        return self.dry_run

    def counted(self, count: Callable[[], int]) -> Result:
        """Return how many rows there are; no count where counting takes too long."""
        try:
            return Result(count=count())
        except StatementTimeoutError:
            return Result()

    def entry(self) -> Mapping[str, Any]:
        return {}


class Sweep(PreviewedAction, frozen=True, kw_only=True):
    """Recover the jobs of stale workers; with `dry_run`, only list them."""

    done_words: ClassVar[str] = "swept"
    thing: ClassVar[str] = "worker"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        report = client.workers.sweep(recovery, dry_run=self.dry_run, by=operator_name())
        return Result(done=tuple(worker.id for worker in report.workers), sweep=report)

    def preview(self) -> Words | None:
        return None if self.dry_run else ["sweep"]


class Cleanup(PreviewedAction, frozen=True, kw_only=True):
    """Delete what is no longer needed; with `dry_run`, only count it."""

    done_words: ClassVar[str] = "deleted"

    target: CleanupTarget

    @property
    def thing(self) -> str:
        return self.target.value.replace("-", " ").removesuffix("s")

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        if self.dry_run:
            return self.counted(lambda: client.cleanup.count(self.target))
        return Result(count=client.cleanup.delete(self.target, by=operator_name()))

    def preview(self) -> Words | None:
        return None if self.dry_run else ["cleanup", self.target.value]

    def entry(self) -> Mapping[str, Any]:
        return {"cleanup": self.target.value}


MAX_CLEANED: Final = 10_000
"""Jobs that one cleanup of a selection deletes; each of them is recorded."""


class CleanupSelected(PreviewedAction, frozen=True, kw_only=True):
    """Delete the permanently failed jobs of a selection and return them; with `dry_run`, only count them."""

    done_words: ClassVar[str] = "deleted"
    thing: ClassVar[str] = "failed job"

    selection: Selection

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        if self.dry_run:
            yield self.counted(lambda: client.jobs.count(self.selection).jobs)
            return
        after: PageCursor | None = None
        deleted = 0
        while deleted < MAX_CLEANED:
            page = client.jobs.list(self.selection, after=after, limit=self.BATCH_SIZE)
            result = changed(client.jobs.complete(expected=[each.job for each in page.jobs], by=operator_name()))
            deleted += len(result.done)
            yield result
            if (after := page.after) is None:
                return

    def entry(self) -> Mapping[str, Any]:
        return {"cleanup": "failed-jobs", "selection": str(self.selection)}


class Forget(Action, frozen=True, kw_only=True):
    """Forget a cron item that the database knows."""

    done_words: ClassVar[str] = "forgotten"
    thing: ClassVar[str] = "recurring task"

    identifier: str

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        if client.cron.forget(self.identifier, by=operator_name()):
            return Result(done=(self.identifier,))
        return Result(skipped=(SkippedItem(self.identifier, "not registered"),))

    def preview(self) -> Words | None:
        return ["cron", "forget", *unmistaken((self.identifier,))]

    def entry(self) -> Mapping[str, Any]:
        return {"item": self.identifier}


class RunDoctor(Action, frozen=True, kw_only=True):
    """Run the doctor's checks."""

    reads_only: ClassVar[bool] = True

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(findings=client.doctor.findings())


class CountExactly(Action, frozen=True, kw_only=True):
    """Count all jobs, which reads the whole table, or those of one queue."""

    reads_only: ClassVar[bool] = True

    queue: str | None = None

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        if self.queue is not None:
            return Result(queue=FrontEnd(client).count_queue(self.queue))
        return Result(statistics=client.counts(exact=True))
