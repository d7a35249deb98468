"""The jobs in the database: each method runs the statement of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.cancellation import CancelRequest
from gw_core.domain.job.claim import QueueLock
from gw_core.domain.job.expiry import ERROR_TYPE as EXPIRED_TYPE, expired_before_start
from gw_core.domain.job.history import Keep
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import (
    Completed,
    Failed,
    Outcome,
    Returned,
    ascii_json,
    ascii_text,
    error_type_of,
    traceback_of,
)
from gw_core.domain.reports.left_jobs import MAX_LEFT, LeftJob
from gw_core.domain.rules.roles import RoleKind
from gw_core.domain.rules.settings import LOCK_EXPIRY
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.row_security import JOB_USES, Uses, raise_if_hidden, values_of_uses
from gw_core.postgres.connection.statement_runner import Store, array_text
from gw_core.postgres.connection.statement_steps import run_steps
from gw_core.postgres.road.add_calls import registering_tasks
from gw_core.postgres.road.claims import Claims

_Outcome = TypeVar("_Outcome", bound=Outcome)
_JOB_ID: Final = attrgetter("job.id")


NOTHING_KEPT: Final[Mapping[str, Keep]] = {}
MAX_DELAY: Final = timedelta(days=100 * 365)

SETTLE_PLAN: Final = {
    "jit": "off",
    # The plan is the same whatever the values are, and for few jobs it takes longer to make than to run.
    "plan_cache_mode": "force_generic_plan",
    # Rows are locked in the order of their ids, which an index scan over a sorted array keeps and a bitmap does not.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    # One session that locks a job's row, for example to add under its key, must not delay all results.
    "lock_timeout": "300ms",
    "statement_timeout": "15s",
}
"""Settings of the session that settles."""


class Settled(msgspec.Struct, frozen=True):
    """What a statement settled."""

    ids: Set[int]
    """The jobs that were still claimed."""
    waited_for: Set[int] = frozenset()
    """Those of them for which others wait, also if these were added after the claim."""


class JobStore(Store):
    """Settles jobs over one connection; `claims` claims them. One thread at a time uses it.

    Every method raises our errors (`DatabaseUnavailableError`, `SchemaMissingError`, …) and not the driver's.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        super().__init__(connection, schema)
        self.claims = Claims(connection, schema)

    # -- claim and settle ------------------------------------------------------------------------------------------

    def register_tasks(self, identifiers: Iterable[str]) -> dict[int, str]:
        """Make the task identifiers known and return them by their ids."""
        return run_steps(registering_tasks(identifiers), lambda call: self._rows(call.statement, **call.values))

    def complete(
        self,
        outcomes: Sequence[Completed],
        *,
        worker_id: str,
        releases: Sequence[QueueLock] = (),
        keeps: Mapping[str, Keep] = NOTHING_KEPT,
        in_ascii: bool = False,
    ) -> Settled:
        """Delete the jobs of these claims, release the queues, and return what was deleted.

        With `keeps`, which has every job's task, the jobs are moved to history. `in_ascii` writes texts with escapes.
        """
        ordered = _by_id(outcomes)
        kept = _kept_results(ordered, keeps) if keeps else None
        return self._settle("complete_jobs", ordered, worker_id, releases, kept=kept, in_ascii=in_ascii)

    def fail(
        self,
        outcomes: Sequence[Failed],
        *,
        worker_id: str,
        releases: Sequence[QueueLock] = (),
        keeps: Mapping[str, Keep] = NOTHING_KEPT,
        in_ascii: bool = False,
    ) -> Settled:
        """Record the failures of these claims, release the queues, and return what was recorded.

        With `keeps`, which has every job's task, the attempts are added to history. `in_ascii` writes texts with
        escapes.
        """
        ordered = _by_id(outcomes)
        return self._settle(
            "fail_jobs",
            ordered,
            worker_id,
            releases,
            kept=_kept_failures(ordered, keeps) if keeps else None,
            in_ascii=in_ascii,
            messages=[each.message for each in ordered],
            delays=[None if each.delay is None else _delay_seconds(each.delay) for each in ordered],
            finals=[each.permanent for each in ordered],
            payloads=[each.payload for each in ordered],
        )

    def return_jobs(
        self, outcomes: Sequence[Returned], *, worker_id: str, releases: Sequence[QueueLock] = ()
    ) -> Settled:
        """Return the jobs of these claims with the attempt not counted, release the queues, and return which.

        Those that have started no longer expire. The others return what their claims took from the rate of a limit;
        one that has expired took nothing.
        """
        ordered = _by_id(outcomes)
        unstarted = [each.job.id for each in ordered if not each.started and expired_before_start(each.job) is None]
        return self._settle(
            "return_jobs",
            ordered,
            worker_id,
            releases,
            is_unstarted=bool(unstarted),
            unstarted=unstarted,
            attempts=[each.job.attempts for each in ordered],
            keys=[each.job.job_key for each in ordered],
            delays=[_delay_seconds(each.delay) for each in ordered],
            expiries=[each.job._expiry if each.started else None for each in ordered],
        )

    def _settle(
        self,
        name: str,
        ordered: Sequence[Outcome],
        worker_id: str,
        releases: Sequence[QueueLock],
        kept: Mapping[str, Any] | None = None,
        in_ascii: bool = False,
        is_unstarted: bool = False,
        **values: Any,
    ) -> Settled:
        """Run a statement in its form for what is to be released and kept, and return what it settled."""
        ids = [outcome.job.id for outcome in ordered]
        form = {"RELEASES": "true" if releases else "false", "KEEPS": "false" if kept is None else "true"}
        if is_unstarted:
            form["UNSTARTED"] = "true"
        values |= {
            "ids": array_text(ids),
            # A few times and not one for each job: the ledger writes the outcomes of a job with two claims apart.
            "claims": array_text(_times({outcome.job._locked_at for outcome in ordered})),
            "queue_ids": array_text([queue_id for queue_id, _ in releases]),
            "worker_id": worker_id,
            **(kept or {}),
        }
        if in_ascii:
            values |= _in_ascii(values)
        rows = self._rows(name, form, **values)
        if releases and rows and rows[0][1]:
            # A session that ended a pause may have locked the jobs, and given us the lock of their queue. The statement
            # waited for the jobs, and its snapshot is older than that. Sent again, it only releases queues.
            self._rows(name, form, **values)
        if not rows:
            return Settled(set(ids))
        waited_for = () if name == "return_jobs" else rows[0][-1] or ()
        return Settled(set(rows[0][0] or ()), set(waited_for))

    def end_members(self, ids: Sequence[int] | None, keeps: Mapping[str, Keep] = NOTHING_KEPT) -> int:
        """Take note that jobs have ended for which others wait; return how many wait no longer. None: check all."""
        return int(self._one("end_members", ids=None if ids is None else list(ids), **_periods(keeps))[0])

    def end_members_of_others(self, keeps: Mapping[str, Keep] = NOTHING_KEPT) -> int:
        """Take note of all jobs that others have ended while jobs wait for them; return how many wait no longer."""
        return int(self._one("end_members_of_others", **_periods(keeps))[0])

    def end_steps(self, ids: Sequence[int] | None) -> None:
        """Delete the steps of those of these jobs that are gone, or keep them with history. None: check all jobs."""
        self._rows("end_steps", ids=None if ids is None else list(ids))

    def blocked(self, ids: Iterable[int]) -> set[int]:
        """Return which of these jobs have a row that another session has locked."""
        return self._ids("row_locked_jobs", ids=sorted(ids))

    def require_visible_rows(self, uses: Uses = JOB_USES) -> None:
        """Raise `PermissionDeniedError` if row security hides jobs, or what else a worker uses, from our role."""
        found = self._rows("hidden_rows", **values_of_uses(uses, self.schema))
        raise_if_hidden(found, self.schema, RoleKind.WORKER)

    def next_expiry(self) -> float | None:
        """Return the seconds until a job may expire that has not started; None while there is none."""
        seconds: float | None = self._one("next_expiry")[0]
        return seconds

    def forget_expiries(self) -> int:
        """Delete the entries of jobs that have started in time, some thousands at most, and return how many."""
        return len(self._rows("forget_expiries"))

    def expire_jobs(self, keeps: Mapping[str, Keep] = NOTHING_KEPT) -> list[Job]:
        """Fail jobs permanently that did not start in time, some hundreds at most, and return them as they were."""
        rows = self._rows("expire_jobs", **_periods(keeps), error_type=EXPIRED_TYPE)
        return [Job(*row) for row in rows]

    def expire_unique(self) -> None:
        """Forget unique jobs whose time is over."""
        self._rows("expire_unique")

    @property
    def session(self) -> int:
        """The server process of this connection, as the protocol reports it."""
        return self.connection.info.backend_pid

    def end_session(self, pid: int) -> bool | None:
        """End the session of a lost claim; return whether it has ended, None where that cannot be known."""
        ended: bool | None = self._one("end_session", own_pid=self.session, pid=pid)[0]
        return ended

    def return_unknown_jobs(
        self, *, worker_id: str, jobs: Sequence[Job], queues: Sequence[QueueLock]
    ) -> tuple[set[int], int, int]:
        """Return all jobs, and release all queues, that the worker has locked but these.

        The answer is the ids of the jobs, how many queues, and how many locks are left, because their rows are locked.
        """
        ids, released, left = self._one(
            "return_unknown_jobs", worker_id=worker_id, **_claims(jobs), **_queue_claims(queues)
        )
        return set(ids), released, left

    def is_anything_runnable(
        self,
        *,
        tasks: Mapping[int, str],
        forbidden_flags: Sequence[str] | None = None,
        now: datetime | None = None,
        queues: Sequence[str] = (),
    ) -> bool:
        """Return whether there is a job to claim now, including one whose row another session locks briefly.

        With `queues`, only jobs of these count.
        """
        row = self._one(
            "is_any_of_queues_runnable" if queues else "is_anything_runnable",
            **({"queue_names": list(queues)} if queues else {}),
            task_ids=list(tasks),
            forbidden_flags=list(forbidden_flags) if forbidden_flags else None,
            now=now,
        )
        return bool(row[0])

    def list_left_jobs(
        self, *, tasks: Mapping[int, str], now: datetime | None = None, queues: Sequence[str] = ()
    ) -> list[LeftJob]:
        """Return the first jobs of these tasks, with `queues` of these alone, that are due and unclaimed."""
        names = list(queues) or None
        found = self._rows("left_jobs", task_ids=list(tasks), now=now, most=MAX_LEFT, queue_names=names)
        return [LeftJob(tasks[task_id], *rest) for task_id, *rest in found]

    def renew_locks(
        self, jobs: Sequence[Job], *, worker_id: str, queues: Sequence[QueueLock] = ()
    ) -> tuple[set[int], GraphileWorkerError | None]:
        """Renew the locks of these claims where they are ten minutes old, and return the ids that are still ours.

        The error is why the starts of these attempts could not be noted.
        """
        values = {"worker_id": worker_id, **_claims(jobs), **_queue_claims(queues)}
        renewed, unnoted = self._rows_or_fewer("NOTES", "renew_locks", **values)
        return {job_id for (job_id,) in renewed}, unnoted

    def read_cancellations(self, *, worker_id: str) -> list[CancelRequest]:
        """Return the cancel requests for jobs of this worker."""
        return [CancelRequest(*row) for row in self._rows("cancel_read", worker_id=worker_id)]

    def confirm_cancellations(self, requests: Sequence[CancelRequest], *, worker_id: str) -> None:
        """Delete cancel requests that this worker has received."""
        ids, asked_at = [each.job_id for each in requests], [each.asked_at_epoch for each in requests]
        self._rows("cancel_confirm", worker_id=worker_id, ids=ids, asked_at=asked_at)

    def reset_stale_locks(self) -> tuple[int, int]:
        """Release all expired locks, of any worker; return how many jobs and queues."""
        row = self._one("release_expired_locks", older_than_seconds=LOCK_EXPIRY.total_seconds())
        return row[0], row[1]

    def _one(self, name: str, **values: Any) -> tuple[Any, ...]:
        return self._rows(name, **values)[0]

    def _ids(self, name: str, **values: Any) -> set[int]:
        return {row[0] for row in self._rows(name, **values)}


def _by_id(outcomes: Sequence[_Outcome]) -> list[_Outcome]:
    """Return outcomes in the order in which all statements lock jobs."""
    return sorted(outcomes, key=_JOB_ID)


def _kept_values(outcomes: Sequence[_Outcome], keeps: Mapping[str, Keep]) -> dict[str, Any]:
    """Return what `parts/kept.sql` is given, as columns."""
    jobs = [each.job for each in outcomes]
    kept = [keeps[job.task] for job in jobs]
    started = _times(job._started for job in jobs)
    ran = [not isinstance(each, Failed) or each.started for each in outcomes]
    return {
        "tasks": [job.task for job in jobs],
        "queue_names": [job.queue_name for job in jobs],
        "attempt_numbers": [
            job.attempts if is_run else job.attempts - 1 for job, is_run in zip(jobs, ran, strict=True)
        ],
        "started_ats": [each if is_run else None for each, is_run in zip(started, ran, strict=True)],
        "keep_seconds": [each.period.total_seconds() for each in kept],
        "keeps_payload": [each.payload for each in kept],
        "is_awaited": [each.result for each in kept],
    }


def _periods(keeps: Mapping[str, Keep]) -> dict[str, Any]:
    """Return for how long history keeps each task's jobs, as columns."""
    return {"tasks": list(keeps), "keep_seconds": [each.period.total_seconds() for each in keeps.values()]}


def _kept_results(outcomes: Sequence[Completed], keeps: Mapping[str, Keep]) -> dict[str, Any]:
    """Return what history keeps of completed jobs, as columns."""
    return {
        **_kept_values(outcomes, keeps),
        "results": [each.result for each in outcomes],
        "result_errors": [each.result_error for each in outcomes],
    }


def _kept_failures(outcomes: Sequence[Failed], keeps: Mapping[str, Keep]) -> dict[str, Any]:
    """Return what history keeps of failures, as columns."""
    return {
        **_kept_values(outcomes, keeps),
        "error_types": [error_type_of(each.error) for each in outcomes],
        "tracebacks": [traceback_of(each.error) for each in outcomes],
    }


def _in_ascii(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns with texts of tasks, in which escapes replace all characters but those of ASCII."""
    escapes: Mapping[str, Callable[[str], str]] = {
        **dict.fromkeys(("messages", "result_errors", "error_types", "tracebacks"), ascii_text),
        **dict.fromkeys(("results", "payloads"), ascii_json),
    }
    return {
        name: [None if text is None else escape(text) for text in values[name]]
        for name, escape in escapes.items()
        if name in values
    }


def _claims(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return jobs and the times of their claims as columns."""
    return {"ids": [job.id for job in jobs], "claims": _times(job._locked_at for job in jobs)}


def _queue_claims(queues: Sequence[QueueLock]) -> dict[str, Any]:
    return {
        "queue_ids": [queue_id for queue_id, _ in queues],
        "queue_claims": _times(locked_at for _, locked_at in queues),
    }


def _times(epochs: Iterable[float | None]) -> list[datetime]:
    """Return times given in seconds since 1970, to the microsecond."""
    return [datetime.fromtimestamp(epoch or 0.0, UTC) for epoch in epochs]


def _delay_seconds(delay: timedelta) -> float:
    """Return a delay a task asked for; PostgreSQL's calendar ends, and one bad outcome would hold up all others."""
    return min(delay, MAX_DELAY).total_seconds()
