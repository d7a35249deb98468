"""Where the console has its facts from: what the screens may ask, and the answers of a real queue."""

from __future__ import annotations

import getpass
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from gw_core import Client, JobFilter, RecoverySettings, SessionLimits, __version__
from gw_core.errors import (
    AuthenticationError,
    DatabaseUnavailableError,
    EmbeddedError,
    GraphileWorkerError,
    InvalidSettingError,
    LockTimeoutError,
    NoConnectionError,
    PermissionDeniedError,
    ReadOnlyError,
    SchemaMissingError,
    SchemaTooNewError,
    SchemaTooOldError,
    StatementTimeoutError,
    TransientDatabaseError,
)
from gw_core.operations import PageCursor, SkippedJob, described
from gw_tui.actions import actions
from gw_tui.actions.actions import Act as Act, Result as Result, SkippedItem
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.count_limit import DEPTHS, affordable

if TYPE_CHECKING:
    from gw_core import ActionResult, CronItem, Job
    from gw_core.crontab import KnownCronItem
    from gw_core.operations import (
        CleanupTarget,
        Finding,
        JobPage,
        JobReport,
        LockWaits,
        NameKind,
        QueueReport,
        QueueSnapshot,
        QueueStatistics,
        RemovedJob,
        SweepReport,
        WorkerInfo,
    )

PAGE: Final = 100
"""Rows on a page."""

QUICK: Final = SessionLimits(
    statement_timeout=timedelta(milliseconds=500),
    lock_timeout=timedelta(milliseconds=100),
    idle_in_transaction_session_timeout=timedelta(seconds=5),
    connect_timeout=timedelta(seconds=3),
    read_only=True,
)
"""Of the connection that looks at each tick: it can harm nobody, not even by waiting."""

PATIENT: Final = SessionLimits(
    statement_timeout=timedelta(seconds=10),
    lock_timeout=timedelta(seconds=2),
    idle_in_transaction_session_timeout=timedelta(seconds=5),
    connect_timeout=timedelta(seconds=3),
)
"""Of the connection that acts, and counts when asked to."""


LOCKS_AGAIN: Final = timedelta(seconds=2)
"""What workers hold is counted, and listed, no more often."""

FRESH: Final = LOCKS_AGAIN + timedelta(seconds=1)
"""A count of what workers hold that is older than this says so."""

QUEUES_AGAIN: Final = timedelta(seconds=2)
"""A page of queues is asked for no more often: each of its jobs may lie on a page of the table of its own."""

FINDINGS_AGAIN: Final = 15.0
"""The doctor is asked no more often, in seconds."""


# -- what may be asked -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontabs:
    """Recurring tasks: what the database knows of them, and those of the crontab file, if one was given."""

    known: Sequence[KnownCronItem] = ()
    items: Sequence[CronItem] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which queue is looked at, in words for the screen: never with a password."""

    where: str
    schema: str
    is_read_only: bool = False
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    """When a worker counts as dead here."""


class JobSubscription(Protocol):
    """Hears of new jobs."""

    def wait(self, timeout: timedelta) -> int:
        """Wait until jobs are announced, and return how many; 0 when the time passes."""

    def close(self) -> None:
        """Hear no more; ends a wait that is under way."""


class Source(Protocol):
    """What the screens may ask, and have done. Every method may take its time, and raise our errors."""

    @property
    def target(self) -> Target:
        """Which queue this is."""

    def glance(self) -> QueueSnapshot:
        """Return what every tick shows."""

    def count_locks(self) -> timedelta | None:
        """Count anew what workers hold, for the glances that follow; return how long the server worked, if it said."""

    def page(
        self,
        wanted: JobFilter,
        *,
        after: PageCursor | None = None,
        limit: int = PAGE,
        timeout: timedelta | None = None,
        with_payload: bool = False,
    ) -> JobPage:
        """Return a page of jobs."""

    def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
        """Return everything about one job, its payload only when wanted; None when it is gone."""

    def statistics(self) -> QueueStatistics:
        """Return how many jobs are in each state, from a sample when there are many."""

    def queues(self, *, after: str = "", limit: int = PAGE, only_held: bool = False) -> Sequence[QueueReport]:
        """Return named queues in order of their names."""

    def workers(self) -> Sequence[WorkerInfo]:
        """Return every worker known, by heartbeat or locks."""

    def crontabs(self) -> Crontabs:
        """Return the recurring tasks."""

    def findings(self) -> Sequence[Finding]:
        """Return what the doctor says."""

    def blockages(self) -> LockWaits:
        """Return who waits for whom."""

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest: tasks, queues or workers."""

    def act(self, act: Act) -> Result:
        """Have something done, and say what became of each job."""

    def listen(self) -> JobSubscription:
        """Begin to hear of new jobs."""

    def cancel(self) -> None:
        """End the look that is under way; it raises. For another thread."""

    def close(self) -> None:
        """Let go of everything."""


class Question:
    """What one screen wants to know beside the glance: a frozen value, asked again and again while it is shown.

    Subclasses are frozen dataclasses. `every` is how often it is worth asking; None is at every tick.
    """

    every: ClassVar[timedelta | None] = None

    def ask(self, source: Source) -> object:
        """Return the answer; runs in the reading thread."""
        raise NotImplementedError


# -- a real queue ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which queue to open, and how."""

    conninfo: str
    schema: str
    prepared_statements: bool = True
    pg_bin: Path | None = None
    read_only: bool = False
    crontab: Callable[[], Sequence[CronItem]] | None = None
    recovery: RecoverySettings | None = field(default=None)


class ClientSource:
    """A queue in a database: three connections at most, one that looks, one that acts and one that listens."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._looking = self._client(QUICK)
        self._lock = threading.Lock()  # guards _acting: it is opened by whoever first acts
        self._acting: Client | None = None
        self._findings: tuple[float, Sequence[Finding]] | None = None
        self._depth = DEPTHS[-1]

    def _client(self, manners: SessionLimits) -> Client:
        place = self._place
        return Client(
            place.conninfo,
            schema=place.schema,
            prepared_statements=place.prepared_statements,
            max_pool_size=1,
            pg_bin=place.pg_bin,
            application_name=f"gw-tui/{__version__} {_who()}",
            manners=manners,
        )

    @property
    def target(self) -> Target:
        """Which queue this is."""
        place = self._place
        recovery = place.recovery or RecoverySettings()
        return Target(
            where=described(place.conninfo), schema=place.schema, is_read_only=place.read_only, recovery=recovery
        )

    def glance(self) -> QueueSnapshot:
        """Return what every tick shows."""
        return self._looking.reports.glance(recovery=self._place.recovery, locks_every=None)

    def count_locks(self) -> timedelta | None:
        """Count anew what workers hold, for the glances that follow; return how long the server worked, if it said."""
        return self._looking.reports.count_locks(self._place.recovery)

    def page(
        self,
        wanted: JobFilter,
        *,
        after: PageCursor | None = None,
        limit: int = PAGE,
        timeout: timedelta | None = None,
        with_payload: bool = False,
    ) -> JobPage:
        """Return a page of jobs."""
        more = {} if timeout is None else {"timeout": timeout}
        return self._looking.list_jobs(wanted, after=after, limit=limit, with_payload=with_payload, **more)

    def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
        """Return everything about one job, its payload only when wanted; None when it is gone."""
        return self._looking.reports.job(job_id, with_payload=with_payload)

    def statistics(self) -> QueueStatistics:
        """Return how many jobs are in each state, from a sample when there are many."""
        return self._looking.reports.statistics()

    def queues(self, *, after: str = "", limit: int = PAGE, only_held: bool = False) -> Sequence[QueueReport]:
        """Return named queues in order of their names; the more of them are long, the less far each is counted."""
        found = self._looking.reports.queues(after=after, limit=limit, only_held=only_held, most=self._depth)
        self._depth = affordable(each.waiting for each in found)
        return found

    def workers(self) -> Sequence[WorkerInfo]:
        """Return every worker known, by heartbeat or locks."""
        return self._looking.workers(self._place.recovery)

    def crontabs(self) -> Crontabs:
        """Return the recurring tasks; the file is read anew, so that a change of it shows."""
        read = self._place.crontab
        return Crontabs(known=self._looking.known_crontabs(), items=None if read is None else read())

    def findings(self) -> Sequence[Finding]:
        """Return what the doctor says; a look at everything is not taken more often than its facts change."""
        now = time.monotonic()
        if self._findings is None or now - self._findings[0] > FINDINGS_AGAIN:
            self._findings = now, self._looking.doctor.findings()
        return self._findings[1]

    def blockages(self) -> LockWaits:
        """Return who waits for whom."""
        return self._looking.doctor.blockages()

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest: tasks, queues or workers."""
        return self._looking.care.names(kind, prefix)

    def act(self, act: Act) -> Result:
        """Have something done, and say what became of each job."""
        client = self._for_acts()
        match act:
            case actions.Retry():
                return _result(client.jobs.retry(seen=act.jobs))
            case actions.Reschedule():
                values = {name: getattr(act, name) for name in ("run_at", "priority", "attempts", "max_attempts")}
                return _result(client.jobs.reschedule(seen=act.jobs, **values))
            case actions.Fail():
                return _result(client.jobs.fail(reason=act.reason, seen=act.jobs))
            case actions.Remove():
                return _result(client.jobs.complete(seen=act.jobs))
            case actions.FindByKey():
                return Result(found=next(iter(client.list_jobs(JobFilter(key=act.key)).jobs), None))
            case actions.RemoveByKey():
                return _removed(client.jobs.remove(act.key, seen=act.job))
            case actions.Restore():
                return _restored(client, act.jobs)
            case actions.Add():
                job = client.add(act.spec) if act.payload is None else client.add_json(act.spec, act.payload)
                return Result(done=() if job is None else (str(job.id),))
            case actions.Unlock():
                return Result(done=tuple(each.worker_id for each in client.care.unlock(act.workers)))
            case actions.Sweep():
                return _swept(client.sweep(self._place.recovery, dry_run=act.dry_run))
            case actions.Clean():
                return _counted(client, act.litter) if act.dry_run else _cleared(client, act.litter)
            case actions.Forget():
                forgotten = client.forget_crontab(act.identifier)
                gone = SkippedItem(act.identifier, "the database does not know it")
                return Result(done=(act.identifier,)) if forgotten else Result(omitted=(gone,))
            case actions.RunDoctor():
                self._findings = time.monotonic(), client.doctor.findings()
                return Result(findings=self._findings[1])
            case actions.CountExactly():
                if act.queue is not None:
                    return Result(queue=client.reports.count_queue(act.queue))
                return Result(statistics=client.reports.statistics(exact=True))

    def listen(self) -> JobSubscription:
        """Begin to hear of new jobs."""
        return self._looking.listen()

    def cancel(self) -> None:
        """End the look that is under way; it raises. For another thread."""
        with suppress(GraphileWorkerError):
            self._looking.cancel()

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            acting, self._acting = self._acting, None
        for client in (self._looking, acting):
            if client is not None:
                client.close()

    def _for_acts(self) -> Client:
        with self._lock:
            if self._acting is None:
                manners = {name: getattr(PATIENT, name) for name in PATIENT.__dataclass_fields__}
                self._acting = self._client(SessionLimits(**{**manners, "read_only": self._place.read_only}))
            return self._acting


def _result(result: ActionResult) -> Result:
    """Return what an action did as the console shows it."""
    return Result(
        done=tuple(str(each.id) for each in result.changed),
        omitted=tuple(SkippedItem(str(each.id), _why(each)) for each in result.skipped),
        removed=tuple(each.job for each in result.changed if each.job is not None and each.job.payload),
    )


def _removed(answer: RemovedJob | SkippedJob) -> Result:
    """Say which of the two things happened to a job that was to be removed by its key, or why nothing did."""
    if isinstance(answer, SkippedJob):
        return Result(omitted=(SkippedItem(str(answer.id), _why(answer)),))
    job = answer.job
    if answer.was_running:
        told = f"job {job.id} is running: it lost its key, and will not be tried again"
        return Result(done=(str(job.id),), told=told)
    return Result(done=(str(job.id),), removed=(job,), told=f"job {job.id} removed")


def _swept(report: SweepReport) -> Result:
    told = "somebody else is sweeping; nothing was done" if report.was_busy else ""
    return Result(done=tuple(worker.id for worker in report.workers), sweep=report, told=told)


def _counted(client: Client, litter: CleanupTarget) -> Result:
    """Count what would be cleared away, unless that takes too long: then nobody knows."""
    try:
        return Result(count=client.cleaner.count(litter))
    except StatementTimeoutError:
        return Result()


def _cleared(client: Client, litter: CleanupTarget) -> Result:
    return Result(count=sum(client.cleaner.clear(litter)))


def _why(skipped: SkippedJob) -> str:
    match skipped.reason.value:
        case "locked":
            return f"locked by {skipped.locked_by}"
        case "changed":
            return f"changed ({skipped.changes})" if skipped.changes else "changed"
        case "missing":
            return "gone"
        case "busy":
            return "somebody else is changing it"
        case _:
            return "it has not failed; t changes when it runs"


def _restored(client: Client, jobs: Iterable[Job]) -> Result:
    done: list[str] = []
    omitted: list[SkippedItem] = []
    for job in jobs:
        new = client.jobs.restore(job)
        if new is None:
            omitted.append(SkippedItem(str(job.id), "another job has its key by now"))
        else:
            done.append(str(new))
    return Result(done=tuple(done), omitted=tuple(omitted))


def _who() -> str:
    """Return who sits here, for the server's list of sessions."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # a container may run as a number without a name
        return socket.gethostname()


# -- what went wrong -------------------------------------------------------------------------------------------------

_TROUBLES: Final[Sequence[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureKind]]] = (
    ((SchemaMissingError, SchemaTooOldError, SchemaTooNewError), FailureKind.NO_SCHEMA),
    ((AuthenticationError, NoConnectionError, InvalidSettingError), FailureKind.REFUSED),
    ((DatabaseUnavailableError, EmbeddedError), FailureKind.LOST),
    (PermissionDeniedError, FailureKind.FORBIDDEN),
    (ReadOnlyError, FailureKind.READ_ONLY),
    (LockTimeoutError, FailureKind.LOCKED),
    (StatementTimeoutError, FailureKind.SLOW),
    (TransientDatabaseError, FailureKind.SLOW),
)


def judged(error: BaseException) -> tuple[FailureKind, str]:
    """Return what kind of trouble an error means, and a sentence that says what to do; it may hold data."""
    if isinstance(error, AuthenticationError) and 'database "' in str(error) and "does not exist" in str(error):
        # Somebody may be about to create it; unlike a password, it can come without a hand of ours.
        return FailureKind.LOST, str(error)
    for kinds, trouble in _TROUBLES:
        if isinstance(error, kinds):
            return trouble, str(error)
    if isinstance(error, GraphileWorkerError):
        return FailureKind.FAULT, str(error)
    return FailureKind.FAULT, f"{type(error).__name__}: {error}"
