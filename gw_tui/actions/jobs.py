"""Actions on jobs: retry, reschedule, fail, complete, cancel, remove, restore and add."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from msgspec.structs import replace

from gw_core import Selection
from gw_core.errors import DatabaseUnavailableError, GraphileWorkerError, JobSkipped
from gw_core.front_ends import FrontEnd, SkippedJob, encode_payload, operator_name
from gw_core.operations import RemovedJob
from gw_tui.actions.action import GONE, Action, Result, SkippedItem, changed, given, why_skipped
from gw_tui.actions.command_preview import on_one_line, options, unmistaken

if TYPE_CHECKING:
    from gw_core import Client, Job, JobSpec, RecoverySettings
    from gw_core.operations import ActionResult
    from gw_tui.actions.command_preview import Words

T = TypeVar("T")

CANCEL_TIMEOUT: Final = timedelta(seconds=5)
"""How long a cancellation waits for the task to stop; the request stays."""

LOST_ANSWER_TIMEOUT: Final = timedelta(seconds=10)
"""How long an action waits for the database to find out what became of it: a server takes seconds to start again."""

LOST_ANSWER_PAUSE: Final = timedelta(milliseconds=500)


class JobAction(Action, frozen=True, kw_only=True):
    """An action on jobs."""

    command: ClassVar[str] = ""
    """The command of `gw` that does the same with their ids."""

    jobs: Sequence[Job]

    @property
    def ids(self) -> list[int]:
        return [each.id for each in self.jobs]

    def preview(self) -> Words | None:
        return [self.command, *map(str, self.ids)] if self.command else None


class ExpectedAction(JobAction, frozen=True, kw_only=True):
    """An action on jobs in batches, on each job only in the version that was displayed."""

    def batches(self, client: Client) -> Iterator[ActionResult]:
        """Act on one batch of the jobs after the other."""
        raise NotImplementedError

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        return map(changed, self.batches(client))


class Retry(ExpectedAction, frozen=True, kw_only=True):
    """Retry failed jobs now."""

    command: ClassVar[str] = "retry"
    done_words: ClassVar[str] = "retried"

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(self.BATCH_SIZE).retry(expected=self.jobs, by=operator_name())


class Reschedule(ExpectedAction, frozen=True, kw_only=True):
    """Change when and how jobs run; None keeps a value."""

    done_words: ClassVar[str] = "rescheduled"

    run_at: datetime | timedelta | None = None
    priority: int | None = None
    attempts: int | None = None
    max_attempts: int | None = None

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(self.BATCH_SIZE).reschedule(
            expected=self.jobs, run_at=self.run_at, by=operator_name(), **self._numbers
        )

    def preview(self) -> Words | None:
        """Return the words; without a change, they run the jobs in an hour.

        A duration is left out, as it would count from when the command runs.
        """
        run_at = self.run_at if isinstance(self.run_at, datetime) else None
        changes = options(run_at=run_at, **self._numbers) or options(run_at="+1h")
        return ["reschedule", *map(str, self.ids), *changes]

    @property
    def _numbers(self) -> dict[str, int | None]:
        return {"priority": self.priority, "attempts": self.attempts, "max_attempts": self.max_attempts}


class Fail(ExpectedAction, frozen=True, kw_only=True):
    """Fail jobs permanently."""

    done_words: ClassVar[str] = "failed permanently"

    reason: str | None = None

    def batches(self, client: Client) -> Iterator[ActionResult]:
        return client.jobs.in_batches(self.BATCH_SIZE).fail(reason=self.reason, expected=self.jobs, by=operator_name())

    def preview(self) -> Words | None:
        return ["fail", *map(str, self.ids), *options(reason=self.reason)]


class Complete(JobAction, frozen=True, kw_only=True):
    """Delete jobs as if they had completed; the result holds them, for `Restore`."""

    command: ClassVar[str] = "complete"
    done_words: ClassVar[str] = "completed"
    removes: ClassVar[bool] = True

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        jobs = sorted(self.jobs, key=lambda each: each.id)
        for start in range(0, len(jobs), self.BATCH_SIZE):
            yield _completed(client, jobs[start : start + self.BATCH_SIZE])


class Cancel(JobAction, frozen=True, kw_only=True):
    """Cancel running jobs, whose tasks are asked to stop, and jobs that wait for others."""

    command: ClassVar[str] = "cancel"
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


class FindByKey(Action, frozen=True, kw_only=True):
    """Find the job that has a key."""

    reads_only: ClassVar[bool] = True

    key: str

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return Result(found=next(iter(client.jobs.list(Selection.of(job_key=self.key)).jobs), None))


class RemoveByKey(Action, frozen=True, kw_only=True):
    """Remove the job with a key in the displayed version; a running one finishes but is not retried."""

    done_words: ClassVar[str] = "removed"
    removes: ClassVar[bool] = True

    key: str
    job: Job

    @property
    def ids(self) -> list[int]:
        return [self.job.id]

    def run(self, client: Client, recovery: RecoverySettings) -> Result:
        return _removed(client, self.key, self.job)

    def preview(self) -> Words | None:
        return ["remove", *unmistaken((self.key,))]


class Restore(JobAction, frozen=True, kw_only=True):
    """Add deleted jobs again, each with a new id, in a transaction of its own."""

    done_words: ClassVar[str] = "restored"

    def results(self, client: Client, recovery: RecoverySettings) -> Iterator[Result]:
        for start in range(0, len(self.jobs), self.BATCH_SIZE):
            yield from _restored(client, self.jobs[start : start + self.BATCH_SIZE])


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

    def preview(self) -> Words | None:
        spec = self.spec
        values = options(
            payload=on_one_line(encode_payload(spec.payload) if self.payload is None else self.payload),
            queue=spec.queue_name,
            run_at=spec.run_at if isinstance(spec.run_at, datetime) else None,
            max_attempts=spec.max_attempts,
            job_key=spec.job_key,
            job_key_mode=None if spec.job_key is None else spec.job_key_mode.value,
            priority=spec.priority,
        )
        flags = [word for flag in spec.flags for word in options(flag=flag)]
        return ["add", *unmistaken((spec.task,), *values, *flags)]

    def entry(self) -> Mapping[str, Any]:
        """Return the job without its payload."""
        names = ("task", "queue_name", "run_at", "priority", "max_attempts", "job_key")
        return given(self.spec, names)


def _completed(client: Client, jobs: Sequence[Job]) -> Result:
    """Complete jobs in one transaction, and return them as they were, also if the answer to its commit is lost.

    Then it is done again: what is gone by then was deleted before, if the record of that transaction names it.
    """
    ids = [each.id for each in jobs]
    complete = partial(client.jobs.complete, expected=jobs, by=operator_name())
    before = [each.job for each in client.jobs.list(ids, limit=len(ids), with_payload=True).jobs]
    try:
        return changed(complete())
    except DatabaseUnavailableError:
        result = changed(_when_available(complete))
    gone = {each.what for each in result.skipped if each.why == GONE}
    recorded = _recorded(client, "complete", (each.id for each in before if str(each.id) in gone))
    deleted = [each for each in before if str(each.id) in gone and each.id in recorded]
    names = [str(each.id) for each in deleted]
    return replace(
        result,
        done=(*result.done, *names),
        skipped=tuple(each for each in result.skipped if each.what not in names),
        removed=(*result.removed, *deleted),
    )


def _when_available(act: Callable[[], T]) -> T:
    """Act again, for some seconds as often as the database cannot be reached."""
    until = time.monotonic() + LOST_ANSWER_TIMEOUT.total_seconds()
    while True:
        try:
            return act()
        except DatabaseUnavailableError:
            if time.monotonic() > until:
                raise
            time.sleep(LOST_ANSWER_PAUSE.total_seconds())


def _recorded(client: Client, done: str, ids: Iterable[int]) -> set[int]:
    """Return those of the jobs to which the operator has done this, as far as that can be read."""
    left, found = set(ids), set[int]()
    with suppress(GraphileWorkerError):
        while left:
            actions = client.history.actions(left.pop())
            own = [each for each in actions if each.action == done and each.by == operator_name()]
            found.update(*(each.job_ids for each in own))
            left -= found
    return found


def _removed(client: Client, key: str, expected: Job) -> Result:
    """Remove a job by its key, and return it as it was, also if the answer to the commit is lost."""
    before = client.jobs.get(expected.id)
    remove = partial(FrontEnd(client).remove_expected, key, expected, operator_name())
    try:
        answer = remove()
    except DatabaseUnavailableError:
        answer = _when_available(remove)
        if isinstance(answer, SkippedJob) and before and _recorded(client, "remove", [expected.id]):
            answer = RemovedJob(before)
    if isinstance(answer, SkippedJob):
        return Result(skipped=(SkippedItem(str(answer.id), why_skipped(answer)),))
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
