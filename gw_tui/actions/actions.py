"""What an operator can do, as values: each names what it changes, runs itself, and has its command and log entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from gw_core import Selection
from gw_core.errors import GraphileWorkerError, JobSkipped
from gw_core.front_ends import FrontEnd, NotRecordedError, SkippedJob, StatementTimeoutError, operator_name
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core import Client, Job, JobSpec, RecoverySettings, operations
    from gw_core.front_ends import BackendSession, CleanupTarget, Count, FoundJob, PageCursor
    from gw_core.operations import ActionResult, Finding, PauseResult, QueueCounts, RemovedJob, SweepReport
    from gw_tui.actions.command_preview import CommandPreview, Words

CANCEL_TIMEOUT: Final = timedelta(seconds=5)
"""How long a cancellation waits for the task to stop; the request stays."""


GONE: Final = "gone"
"""Why an action skipped a job that has left the table."""


BATCH_SIZE: Final = 500
"""Jobs changed in one short transaction; an action can be stopped after each."""


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
        return len(self.ids) > BATCH_SIZE

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

    def preview(self, write: CommandPreview) -> Words | None:
        """Return the equivalent command; None where there is none."""
        return None

    def entry(self) -> Mapping[str, Any]:
        """Return its entry in the action log: what it was given, apart from jobs."""
        return _given(self, [name for name in self.__struct_fields__ if name not in ("job", "jobs")])


# -- jobs ------------------------------------------------------------------------------------------------------------


class JobAction(Action, frozen=True, kw_only=True):
    """An action on jobs."""

    jobs: Sequence[Job]

    @property
    def ids(self) -> list[int]:
        return [each.id for each in self.jobs]


class ExpectedAction(JobAction, frozen=True, kw_only=True):
    """An action on jobs in batches, on each job only in the version that was displayed."""

    def batches(self, client: Client) -> Iterator[ActionResult]:
        """Act on one batch of the jobs after the other."""
        raise NotImplementedError

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        return map(_changed, self.batches(client))


class Retry(ExpectedAction, frozen=True, kw_only=True):
    """Retry failed jobs now."""

    done_words: ClassVar[str] = "retried"

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(BATCH_SIZE).retry(expected=self.jobs, by=operator_name())

    def preview(self, write: CommandPreview) -> Words | None:
        return write.retry(self.ids)


class Reschedule(ExpectedAction, frozen=True, kw_only=True):
    """Change when and how jobs run; None keeps a value."""

    done_words: ClassVar[str] = "rescheduled"

    run_at: datetime | timedelta | None = None
    priority: int | None = None
    attempts: int | None = None
    max_attempts: int | None = None

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(BATCH_SIZE).reschedule(
            expected=self.jobs, run_at=self.run_at, by=operator_name(), **self._numbers
        )

    def preview(self, write: CommandPreview) -> Words | None:
        """Return `gw reschedule`; a duration is left out, as it would count from when the command runs."""
        run_at = self.run_at if isinstance(self.run_at, datetime) else None
        return write.reschedule(self.ids, run_at=run_at, **self._numbers)

    @property
    def _numbers(self) -> dict[str, int | None]:
        return {"priority": self.priority, "attempts": self.attempts, "max_attempts": self.max_attempts}


class Fail(ExpectedAction, frozen=True, kw_only=True):
    """Fail jobs permanently."""

    done_words: ClassVar[str] = "failed permanently"

    reason: str | None = None

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(BATCH_SIZE).fail(reason=self.reason, expected=self.jobs, by=operator_name())

    def preview(self, write: CommandPreview) -> Words | None:
        return write.fail(self.ids, self.reason)


class Complete(ExpectedAction, frozen=True, kw_only=True):
    """Delete jobs as if they had completed; the result holds them, for `Restore`."""

    done_words: ClassVar[str] = "completed"

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(BATCH_SIZE).complete(expected=self.jobs, by=operator_name())

    def preview(self, write: CommandPreview) -> Words | None:
        return write.complete(self.ids)


class Cancel(JobAction, frozen=True, kw_only=True):
    """Cancel running jobs, whose tasks are asked to stop, and jobs that wait for others."""

    done_words: ClassVar[str] = "cancelled"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        """Request it, and wait a little for the results."""
        results = client.jobs.cancel(self.ids, by=operator_name(), timeout=CANCEL_TIMEOUT)
        return Result(
            done=tuple(str(each.id) for each in results if each.result.is_over),
            skipped=tuple(
                SkippedItem(str(each.id), each.result.value.replace("_", " "))
                for each in results
                if not each.result.is_over
            ),
        )

    def preview(self, write: CommandPreview) -> Words | None:
        return write.cancel(self.ids)


class FindByKey(Action, frozen=True, kw_only=True):
    """Find the job that has a key."""

    reads_only: ClassVar[bool] = True

    key: str

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(found=next(iter(client.jobs.list(Selection.of(job_key=self.key)).jobs), None))


class RemoveByKey(Action, frozen=True, kw_only=True):
    """Remove the job with a key in the displayed version; a running one finishes but is not retried."""

    done_words: ClassVar[str] = "removed"

    key: str
    job: Job

    @property
    def ids(self) -> list[int]:
        return [self.job.id]

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return _removed(FrontEnd(client).remove_expected(self.key, self.job, operator_name()))

    def preview(self, write: CommandPreview) -> Words | None:
        return write.remove_by_key(self.key)


class Restore(JobAction, frozen=True, kw_only=True):
    """Add deleted jobs again, each with a new id, in a transaction of its own."""

    done_words: ClassVar[str] = "restored"

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        for start in range(0, len(self.jobs), BATCH_SIZE):
            yield from _restored(client, self.jobs[start : start + BATCH_SIZE])


class Add(Action, frozen=True, kw_only=True):
    """Add a job; `payload` is its payload as JSON text, or None for the one of `spec`."""

    done_words: ClassVar[str] = "added"

    spec: JobSpec
    payload: str | None = None

    def __repr__(self) -> str:
        return f"Add({self.spec!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("spec", self.spec)]

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        try:
            job = client.add(self.spec) if self.payload is None else FrontEnd(client).add_json(self.spec, self.payload)
        except JobSkipped:
            return Result()
        return Result(done=(str(job.id),))

    def preview(self, write: CommandPreview) -> Words | None:
        return write.add(self.spec, self.payload)

    def entry(self) -> Mapping[str, Any]:
        """Return the job without its payload."""
        names = ("task", "queue_name", "run_at", "priority", "max_attempts", "job_key")
        return _given(self.spec, names)


# -- workers, cron items and maintenance -----------------------------------------------------------------------------


class Unlock(Action, frozen=True, kw_only=True):
    """Release all locks of dead workers."""

    done_words: ClassVar[str] = "unlocked"
    thing: ClassVar[str] = "worker"

    workers: Sequence[str]

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(done=tuple(each.id for each in client.workers.unlock(self.workers, by=operator_name())))

    def preview(self, write: CommandPreview) -> Words | None:
        return write.unlock(self.workers)


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

    def preview(self, write: CommandPreview) -> Words | None:
        return write.limit(self.task, self.running)


class Pause(PauseAction, frozen=True, kw_only=True):
    """Pause it, and report the workers that have not confirmed it."""

    done_words: ClassVar[str] = "paused"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        result = client.pauses.pause(self.target, reason=self.reason, by=operator_name())
        return Result(done=(self.name,), message=_unconfirmed(result, f"{self.thing} {self.name} paused"))

    def preview(self, write: CommandPreview) -> Words | None:
        return write.pause(self.target, self.reason)


class Resume(PauseAction, frozen=True, kw_only=True):
    """Resume it."""

    done_words: ClassVar[str] = "resumed"

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        result = client.pauses.resume(self.target, by=operator_name())
        if not result.changed:
            return Result(skipped=(SkippedItem(self.name, "not paused"),))
        return Result(done=(self.name,), message=_unconfirmed(result, f"{self.thing} {self.name} resumed"))

    def preview(self, write: CommandPreview) -> Words | None:
        return write.resume(self.target)


def _unconfirmed(result: PauseResult, done: str = "done") -> str:
    return f"{done}, not confirmed by {', '.join(result.unconfirmed)}" if result.unconfirmed else ""


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

    def preview(self, write: CommandPreview) -> Words | None:
        return None if self.dry_run else write.sweep()


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

    def preview(self, write: CommandPreview) -> Words | None:
        return None if self.dry_run else write.clean(self.target.value)

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
            page = client.jobs.list(self.selection, after=after, limit=BATCH_SIZE)
            result = _changed(client.jobs.complete(expected=[each.job for each in page.jobs], by=operator_name()))
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

    def preview(self, write: CommandPreview) -> Words | None:
        return write.forget(self.identifier)

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


# -- results ---------------------------------------------------------------------------------------------------------


def _changed(result: ActionResult) -> Result:
    return Result(
        ids=[*result.ids, *(each.id for each in result.skipped)],
        done=tuple(str(each.id) for each in result.changed),
        skipped=tuple(SkippedItem(str(each.id), _why(each)) for each in result.skipped),
        removed=tuple(each.job for each in result.changed if each.job is not None and each.job.payload_json),
    )


def _removed(answer: RemovedJob | SkippedJob) -> Result:
    if isinstance(answer, SkippedJob):
        return Result(skipped=(SkippedItem(str(answer.id), _why(answer)),))
    job = answer.job
    if answer.was_running:
        message = f"job {job.id} is running: it lost its key and is not retried"
        return Result(done=(str(job.id),), message=message)
    return Result(done=(str(job.id),), removed=(job,), message=f"job {job.id} removed")


def _restored(client: Client, jobs: Sequence[Job]) -> Iterator[Result]:
    """Restore jobs, and yield their result; if one fails, first the result of those before it."""
    result = Result()
    try:
        for job in jobs:
            new = client.jobs.restore(job, by=operator_name())
            taken = () if new else (SkippedItem(str(job.id), "another job has its key"),)
            result = result.followed_by(Result(ids=(job.id,), done=(str(new),) if new else (), skipped=taken))
    except GraphileWorkerError:
        yield result
        raise
    yield result


def _why(skipped: SkippedJob) -> str:
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


def _given(action: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return those of the fields that have a value."""
    values = {name: getattr(action, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}
