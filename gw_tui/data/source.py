"""The data of the console: what the screens can ask, and the answers of a real queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gw_core import Client, CronItem, Selection, SessionLimits, __version__
from gw_core.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    InvalidInputError,
    InvalidSettingError,
    PermissionDeniedError,
    SchemaMissingError,
    TransientDatabaseError,
)
from gw_core.front_ends import (
    AuthenticationError,
    Count,
    EmbeddedError,
    FrontEnd,
    LockTimeoutError,
    NameKind,
    NoConnectionError,
    ReadOnlyError,
    SchemaTooNewError,
    SchemaTooOldError,
    StatementTimeoutError,
    operator_name,
)
from gw_core.operations import JobStep, RecordedAction, WaitingGroup
from gw_tui.actions import Action, Result
from gw_tui.data.playback import Playback
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.options import QueueInfo
from gw_tui.rules.recurring import Crontabs

if TYPE_CHECKING:
    from gw_core.front_ends import JobListener, LockWaits, PageCursor, QueueSize, QueueSnapshot
    from gw_core.operations import (
        EndedAttempt,
        Finding,
        HistoryPage,
        JobPage,
        JobReport,
        QueueCounts,
        QueueReport,
        RunSeries,
    )

T = TypeVar("T")

PAGE: Final = 100
"""Rows on a page."""

READ_LIMITS: Final = SessionLimits(
    statement_timeout=timedelta(milliseconds=500),
    lock_timeout=timedelta(milliseconds=100),
    idle_in_transaction_session_timeout=timedelta(seconds=5),
    connect_timeout=timedelta(seconds=3),
    read_only=True,
)
"""Limits of the connection that queries at each tick: it cannot block other sessions."""

ACTION_LIMITS: Final = replace(
    READ_LIMITS, statement_timeout=timedelta(seconds=10), lock_timeout=timedelta(seconds=2), read_only=False
)
"""Of the connection that runs actions and exact counts."""


BACKGROUND_INTERVAL: Final = timedelta(seconds=2)
"""The background of snapshots is read, and what workers hold is listed, no more often."""

FRESH: Final = BACKGROUND_INTERVAL + timedelta(seconds=1)
"""A count of workers' locks that is older than this is shown with its age."""

QUEUES_INTERVAL: Final = timedelta(seconds=2)
"""A page of queues is asked for no more often: each of its jobs may lie on a page of the table of its own."""

MAX_COUNTED: Final = 10
"""Jobs of a queue that are counted where counting those of all queues takes too long."""

FINDINGS_INTERVAL: Final = 15.0
"""The doctor is asked no more often, in seconds."""

MAX_SCHEMAS: Final = 5
"""This many schemas with a queue are named where the one asked for has none."""

SIZES_REST: Final = 100.0
"""Queues are counted a hundredth of the time at most."""

RUNS_INTERVAL: Final = 10.0
"""Statistics of minutes are asked for no more often, in seconds."""


class JobRelations(Struct, frozen=True):
    """What belongs to a job beside its row; None is unknown."""

    steps: Sequence[JobStep] | None = ()
    groups: Sequence[WaitingGroup] | None = ()
    """The jobs that wait for it."""
    actions: Sequence[RecordedAction] | None = ()
    """What operators did to it."""


# -- what may be asked -----------------------------------------------------------------------------------------------


class DataSource:
    """What the screens can ask and run. Every method can take long, and raises errors of gw.

    Each query names its key, and how a live queue answers it; a source decides in `answer` where the answer comes from.
    """

    info: QueueInfo
    """Which queue this is."""
    playback: Playback | None = None
    """Where the recording is that is shown; None for a live queue."""

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        """Return the answer to a query; its key identifies it in a recording."""
        raise NotImplementedError

    def snapshot(self) -> QueueSnapshot:
        """Return what every tick shows."""
        return self.answer("snapshot", lambda live: live.read_snapshot())

    def page(
        self,
        wanted: Selection,
        *,
        after: PageCursor | None = None,
        limit: int = PAGE,
        timeout: timedelta | None = None,
        with_payload: bool = False,
    ) -> JobPage:
        """Return a page of jobs."""
        more: dict[str, Any] = {"after": after, "limit": limit, "with_payload": with_payload}
        if timeout is not None:
            more["timeout"] = timeout
        return self.answer(
            f"page {wanted} {after or ''} {limit}", lambda live: live.read_client.jobs.list(wanted, **more)
        )

    def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
        """Return everything about one job, its payload only when wanted; None when it is gone."""
        return self.answer(f"job {job_id}", lambda live: live.read_client.jobs.show(job_id, with_payload=with_payload))

    def attempts(self, job_id: int) -> Sequence[EndedAttempt]:
        """Return the recorded attempts of one job, the first one first."""
        return self.answer(f"attempts {job_id}", lambda live: live.read_client.history.attempts(job_id))

    def relations(self, job_id: int) -> JobRelations:
        """Return the steps of a job, the jobs that wait for it, and what operators did to it."""
        return self.answer(f"relations {job_id}", lambda live: live.read_relations(job_id))

    def statistics(self) -> QueueCounts:
        """Return how many jobs are in each state, from a sample when there are many."""
        return self.answer("statistics", lambda live: live.front_end.counts())

    def history(self, which: str = "", *, after: str | None = None) -> HistoryPage:
        """Return a page of ended attempts, the latest first."""
        key = f"history {after or ''} {which}"
        return self.answer(key, lambda live: live.read_client.history.list(which, after=after, limit=PAGE))

    def runs(self, back: timedelta, step: timedelta, task: str | None = None) -> RunSeries:
        """Return what ended in each step of the last time, as workers recorded it."""
        key = f"runs {step.total_seconds():g} {task or ''}"
        return self.answer(key, lambda live: live.read_runs(back, step, task))

    def queues(self, *, after: str = "", limit: int = PAGE, only_locked: bool = False) -> Sequence[QueueReport]:
        """Return named queues in order of their names."""
        key = f"queues {'locked' if only_locked else 'all'} {after}"
        return self.answer(key, lambda live: live.read_queues(after, limit, only_locked=only_locked))

    def ranked_queues(self, text: str = "", *, after: int = 0, limit: int = PAGE) -> Sequence[QueueReport]:
        """Return named queues with waiting jobs whose names hold a text, the most due jobs first, counted exactly."""
        return self.answer(f"ranked_queues {after} {text}", lambda live: live.read_ranked_queues(text, after, limit))

    def queue_sizes(self) -> Sequence[QueueSize]:
        """Return how many jobs wait in each named queue that has any, the most due jobs first."""
        return self.answer("queue_sizes", lambda live: live.read_queue_sizes())

    def crontabs(self) -> Crontabs:
        """Return the recurring tasks."""
        return self.answer("crontabs", lambda live: live.read_crontabs())

    def findings(self) -> Sequence[Finding]:
        """Return the doctor's findings."""
        return self.answer("findings", lambda live: live.read_findings())

    def blockages(self) -> LockWaits:
        """Return who waits for whom."""
        return self.answer("blockages", lambda live: live.read_client.doctor.lock_waits())

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest: tasks, queues or workers."""
        return self.answer(f"names {kind.value} {prefix}", lambda live: live.front_end.names(kind, prefix))

    def read_background(self) -> timedelta | None:
        """Read the background of the next snapshots; return how long the server worked, if known."""
        return timedelta()

    def run(self, action: Action) -> Iterator[Result]:
        """Do something in batches, and yield the result of each; no batch begins after the iterator is dropped."""
        raise NotImplementedError

    def listen(self) -> JobListener:
        """Subscribe to notifications of new jobs."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Cancel the query in progress, which then raises; from another thread."""

    def close(self) -> None:
        """Let go of everything."""


class Query:
    """What one screen wants to know beside the snapshot: a frozen value, asked again and again while it is shown.

    Subclasses are frozen dataclasses. `every` is how often it is worth asking; None is at every tick.
    """

    every: ClassVar[timedelta | None] = None

    def ask(self, source: DataSource) -> object:
        """Return the answer; runs in the reading thread."""
        raise NotImplementedError


def in_time(ask: Callable[[], T]) -> T | None:
    """Return an answer, or None if it takes too long: unknown is not none, and hides nothing else."""
    try:
        return ask()
    except (LockTimeoutError, StatementTimeoutError):
        return None


def known(ask: Callable[[], T]) -> T | None:
    """Return an answer, or None if the role may not read it, a recording lacks it, or it takes too long."""
    try:
        return in_time(ask)
    except (InvalidInputError, PermissionDeniedError):
        return None


# -- a real queue ----------------------------------------------------------------------------------------------------


class ClientSource(DataSource):
    """A queue in a database: three connections at most, one reads, one runs actions and one listens."""

    def __init__(
        self,
        connect: Callable[..., Client],
        info: QueueInfo,
        crontab: Callable[[], Sequence[CronItem]] | None = None,
    ) -> None:
        self._connect = connect  # takes the options of a client that differ between the two
        self.info = info
        self._crontab = crontab
        self.read_client = self._client(READ_LIMITS)
        self.front_end = FrontEnd(self.read_client)
        self._lock = threading.Lock()  # guards _acting: it is opened for the first action
        self._acting: Client | None = None
        self._sizes: tuple[float, float, Sequence[QueueSize] | None] | None = None
        self._findings: tuple[float, Sequence[Finding]] | None = None
        self._runs: tuple[tuple[timedelta, timedelta, str | None], float, RunSeries] | None = None

    def _client(self, limits: SessionLimits) -> Client:
        return self._connect(
            max_pool_size=1, application_name=f"gw-tui/{__version__} {operator_name()}", session_limits=limits
        )

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        return query(self)

    def read_snapshot(self) -> QueueSnapshot:
        """Return a snapshot with the background that was read last."""
        with self._schemas_named():
            return self.front_end.snapshot(recovery=self.info.recovery, with_background=False)

    @contextmanager
    def _schemas_named(self) -> Iterator[None]:
        """Name the schemas that have a queue where there is none in ours."""
        try:
            yield
        except SchemaMissingError as error:
            schemas = self.front_end.names(NameKind.SCHEMAS)
            if not schemas or self.info.schema in schemas:
                raise
            named = ", ".join(schemas[:MAX_SCHEMAS]) + ", …" * (len(schemas) > MAX_SCHEMAS)
            raise SchemaMissingError(f"{error}; --schema opens another: {named}") from error.__cause__

    def read_background(self) -> timedelta | None:
        with self._schemas_named():
            return self.front_end.read_background(self.info.recovery)

    def read_relations(self, job_id: int) -> JobRelations:
        """Return what belongs to a job beside its row."""
        client = self.read_client
        steps = known(lambda: client.jobs.steps(job_id, with_value=False))
        groups = known(lambda: client.groups.list(job_id))
        actions = known(lambda: client.history.actions(job_id))
        others = None if groups is None else [each for each in groups if each.id != job_id]
        return JobRelations(steps, others, actions)

    def read_runs(self, back: timedelta, step: timedelta, task: str | None) -> RunSeries:
        """Return what ended in each step; workers record it once a minute, so the last answer serves for a while."""
        now = time.monotonic()
        key = (back, step, task)
        known = self._runs
        if known is None or known[0] != key or now - known[1] > RUNS_INTERVAL:
            known = self._runs = key, now, self.read_client.tasks.statistics_over_time(back, step=step, task=task)
        return known[2]

    def read_queues(self, after: str, limit: int, *, only_locked: bool) -> Sequence[QueueReport]:
        """Return named queues in order of their names, with exact counts where those of all queues are known."""
        found = self.read_client.queues.list(after=after, limit=limit, only_locked=only_locked, most=MAX_COUNTED)
        sizes = {each.name: each for each in known(self.read_queue_sizes) or ()}
        return [
            replace(each, unclaimed=Count(size.unclaimed), due=Count(size.due))
            if (size := sizes.get(each.name))
            else each
            for each in found
        ]

    def read_queue_sizes(self) -> Sequence[QueueSize]:
        """Return the sizes of queues; they are counted again seldom, because it reads an index whole.

        Raises `StatementTimeoutError` if that takes too long, and for a while without another try.
        """
        now = time.monotonic()
        if self._sizes is None or now - self._sizes[0] > SIZES_REST * self._sizes[1]:
            try:
                found = self.front_end.queue_sizes()
            except StatementTimeoutError:
                found = None
            took = time.monotonic() - now
            self._sizes = time.monotonic(), took, found
        if (sizes := self._sizes[2]) is None:
            raise StatementTimeoutError("the jobs of each queue could not be counted in time")
        return sizes

    def read_ranked_queues(self, text: str, after: int, limit: int) -> Sequence[QueueReport]:
        """Return a page of the queues with waiting jobs, the most due jobs first."""
        sizes = [each for each in self.read_queue_sizes() if text.lower() in each.name.lower()]
        return self.front_end.ranked_queues(sizes[after : after + limit])

    def read_crontabs(self) -> Crontabs:
        """Return the recurring tasks; the file is read again, so that changes show."""
        read = self._crontab
        return Crontabs(known=self.read_client.cron.list(), items=None if read is None else read())

    def read_findings(self) -> Sequence[Finding]:
        """Return the doctor's findings; the full examination is not repeated more often than its facts change."""
        now = time.monotonic()
        if self._findings is None or now - self._findings[0] > FINDINGS_INTERVAL:
            self._findings = now, self.read_client.doctor.findings()
        return self._findings[1]

    def run(self, action: Action) -> Iterator[Result]:
        for result in action.results(self._for_actions(), self.info.recovery):
            if result.findings:
                self._findings = time.monotonic(), result.findings
            yield result

    def listen(self) -> JobListener:
        return self.front_end.listen()

    def cancel(self) -> None:
        with suppress(GraphileWorkerError):
            self.front_end.cancel_statements()

    def close(self) -> None:
        with self._lock:
            acting, self._acting = self._acting, None
        for client in (self.read_client, acting):
            if client is not None:
                client.close()

    def _for_actions(self) -> Client:
        with self._lock:
            if self._acting is None:
                self._acting = self._client(replace(ACTION_LIMITS, read_only=self.info.is_read_only))
            acting = self._acting
        # The connection may date from before a restart of the server. The pool drops it here, where nothing is lost.
        with suppress(DatabaseUnavailableError):
            FrontEnd(acting).ping()
        return acting


# -- what went wrong -------------------------------------------------------------------------------------------------

_FAILURES: Final[Sequence[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureKind]]] = (
    ((SchemaMissingError, SchemaTooOldError, SchemaTooNewError), FailureKind.NO_SCHEMA),
    ((AuthenticationError, NoConnectionError, InvalidSettingError), FailureKind.DENIED),
    ((DatabaseUnavailableError, EmbeddedError), FailureKind.LOST),
    (PermissionDeniedError, FailureKind.FORBIDDEN),
    (ReadOnlyError, FailureKind.READ_ONLY),
    (LockTimeoutError, FailureKind.LOCKED),
    (StatementTimeoutError, FailureKind.SLOW),
    (TransientDatabaseError, FailureKind.SLOW),
)


def classify_error(error: BaseException) -> tuple[FailureKind, str]:
    """Return the kind of failure, and a message with the fix; the message may contain data."""
    if isinstance(error, AuthenticationError) and 'database "' in str(error) and "does not exist" in str(error):
        # It may be created soon; unlike a wrong password, this can resolve without the operator.
        return FailureKind.LOST, str(error)
    for kinds, failure in _FAILURES:
        if isinstance(error, kinds):
            return failure, str(error)
    if isinstance(error, GraphileWorkerError):
        return FailureKind.ERROR, str(error)
    return FailureKind.ERROR, f"{type(error).__name__}: {error}"
