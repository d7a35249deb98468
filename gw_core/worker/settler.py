"""Write the outcomes of jobs: everything reported since the last step, in one statement for each kind."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    InvalidJobError,
    LockTimeoutError,
)
from gw_core.domain.job.claim import QueueLock
from gw_core.domain.job.history import Keep
from gw_core.domain.job.outcome import Completed, Failed, Outcome, Returned
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    JobCompleted,
    JobLockLost,
    JobResultRejected,
    JobReturned,
    JobsSettled,
)
from gw_core.postgres.connection.database import RESPONSE_TIMEOUT, Database
from gw_core.postgres.connection.error_mapping import is_beyond_encoding, needs_connection, rejects_a_row
from gw_core.postgres.road.job_store import SETTLE_PLAN, JobStore, Settled
from gw_core.runtime.service import Service
from gw_core.worker.follow_ups import FollowUps, ended_members
from gw_core.worker.job_durations import JobDurations
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.ledger import Ledger, OutcomeBatch
from gw_core.worker.outage import Outage

NO_DELAY: Final = timedelta(0)
UNTIL_WOKEN: Final = timedelta(hours=1)
KINDS: Final = (Completed, Failed, Returned)

BATCH: Final = 1_000
"""Outcomes in one statement: enough to fill a round trip, few enough to keep the locks short."""

RESULT_BYTES: Final = 4_000_000
"""Results in one statement, so that it fits into memory and its time limit."""

LOCK_RETRY_INTERVAL: Final = 0.2
"""Seconds between two checks whether a job's row that another session locked is free again."""

RETRIED_REJECTIONS: Final = 10
"""Rejected outcomes that are tried again at a time, so that new ones never wait for many of them."""

MIN_REJECTED_DELAY: Final = 1.0
MAX_REJECTED_DELAY: Final = 60.0
"""Seconds between two attempts to write what a trigger or constraint rejects."""


class Settler(Service):
    """Thread `gw-settle`. Owns its store, `_unwritten`, `_outage` and `durations`; `_inbox` is fed by threads.

    Outcomes wait for the database as long as it takes; they are only given up when the process ends. Two kinds are set
    aside so that they delay no others: those of jobs whose rows another session locked (`_row_locked`), and those that
    a trigger or constraint rejects (`_rejected`), which are tried again less and less often.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        database: Database,
        ledger: Ledger,
        lease: Lease,
        events: Events,
        keeps: Callable[[], Mapping[str, Keep]],
        on_queues_freed: Callable[[], None],
        on_settled: Callable[[], None],
        on_end: Callable[[Callable[[], JobStore]], None],
    ) -> None:
        super().__init__("gw-settle")
        self.durations = JobDurations()
        """How long jobs take; read by the claimer."""
        self.completed = 0
        self.failed = 0
        self._worker_id = worker_id
        self._database = database
        self._ledger = ledger
        self._lease = lease
        self._events = events
        self._keeps = keeps
        self._on_queues_freed = on_queues_freed
        self._on_settled = on_settled
        self.follow_ups = FollowUps()
        self._on_end = on_end
        self._inbox: deque[Outcome] = deque()
        self._unwritten: deque[OutcomeBatch] = deque()
        self._row_locked: deque[OutcomeBatch] = deque()
        self._retry_row_locked_at = 0.0
        self._rejected: deque[OutcomeBatch] = deque()
        self.retry_rejected_at = 0.0
        self._rejected_delay = MIN_REJECTED_DELAY
        self._store: JobStore | None = None
        self._outage = Outage("record outcomes", worker_id=worker_id, events=events)
        self._resting = False
        self._is_gathering = False
        self.final_timeout = timedelta(seconds=1)
        """How long after the end was asked for the last outcomes may wait for the database."""

    # -- the workers' side -----------------------------------------------------------------------------------------

    def report(self, outcome: Outcome) -> None:
        """Take an outcome; called by worker threads, tens of thousands of times a second."""
        self._inbox.append(outcome)
        if self._resting:
            self.wake()

    @property
    def is_idle(self) -> bool:
        """True when every outcome reported so far is written, or rejected."""
        # In this order: an outcome moves from the inbox under the flag to the batches, and must be seen somewhere.
        return not self._inbox and not self._is_gathering and not self._unwritten and not self._row_locked

    @property
    def reported(self) -> int:
        """How many outcomes wait in the inbox."""
        return len(self._inbox)

    @property
    def unsettled(self) -> int:
        """How many outcomes are not written."""
        # Copies: other threads ask, and without the GIL a deque must not be iterated while its owner changes it.
        waiting = (self._unwritten.copy(), self._row_locked.copy(), self._rejected.copy())
        return len(self._inbox) + sum(len(batch.outcomes) for batches in waiting for batch in batches)

    # -- the settling thread's side --------------------------------------------------------------------------------

    def wake(self) -> None:
        """Cut the rest short."""
        self._resting = False
        self._wake_up.set()

    def step(self) -> timedelta:
        """Write what has ended; rest only when there is nothing to write, or the database is away."""
        if not self._unwritten:
            self._is_gathering = True
            self._gather()
            self._is_gathering = False
        try:
            if self._rejected:
                self._retry_rejected()
            if self._row_locked:
                self._retry_row_locked()
        except GraphileWorkerError as error:  # it is unknown which rows are locked
            return self.try_later(error)
        if not self._unwritten:
            return self._rest_until_reported()
        try:
            self._write(self._unwritten[0])
        except LockTimeoutError as error:
            return self._set_row_locked_aside(error)
        except GraphileWorkerError as error:
            return self._split_rejected(error) if rejects_a_row(error) else self.try_later(error)
        self._outage.end()
        return NO_DELAY

    def teardown(self) -> None:
        """Write what is left, as far as the database lets us, call `on_end` with what connects, then hang up."""
        deadline = time.monotonic() + self.final_timeout.total_seconds()
        self._retry_all_rejected()
        self._write_until(deadline)
        # A job without its record in history is better than one that runs again.
        for batch in self._rejected:
            batch.keeps = {}
        self._retry_all_rejected()
        self._write_until(deadline)
        with suppress(GraphileWorkerError):
            self._on_end(self._ready_store)
        self.disconnect()

    def _retry_all_rejected(self) -> None:
        self._unwritten.extend(self._rejected)
        self._rejected.clear()

    def _write_until(self, deadline: float) -> None:
        has_tried = False  # what a machine that stood still left no time for is sent once all the same
        while not self.is_idle and (not has_tried or time.monotonic() < deadline):
            rest = self.step()
            has_tried = True
            if rest > NO_DELAY and not self.is_idle:
                time.sleep(min(rest.total_seconds(), 0.1))

    def _rest_until_reported(self) -> timedelta:
        self._resting = True
        if self._inbox:  # reported between the check and the flag
            self._resting = False
            return NO_DELAY
        if self._row_locked:
            return timedelta(seconds=LOCK_RETRY_INTERVAL)
        if self._rejected:
            return timedelta(seconds=max(0.0, self.retry_rejected_at - time.monotonic()))
        return UNTIL_WOKEN

    def _set_row_locked_aside(self, error: LockTimeoutError) -> timedelta:
        """Separate the outcomes that have to wait for another session's lock from those that need not."""
        batch = self._unwritten[0]
        try:
            blocked = self._ready_store().blocked(batch.job_ids())
        except GraphileWorkerError as other:
            return self.try_later(other)
        if not blocked:  # a queue's row, then, or the lock is gone
            return self.try_later(error)
        aside = self._ledger.split(batch, lambda outcome: outcome.job.id in blocked)
        self._row_locked.append(aside)
        if not batch.outcomes:
            self._unwritten.popleft()
        self._retry_row_locked_at = time.monotonic() + LOCK_RETRY_INTERVAL
        return NO_DELAY

    def _split_rejected(self, error: GraphileWorkerError) -> timedelta:
        """Halve the batch until the outcome stands alone that the database rejects, and set that aside."""
        batch = self._unwritten[0]
        if len(batch.outcomes) > 1:
            rest = set(batch.job_ids()[len(batch.outcomes) // 2 :])
            self._unwritten.insert(1, self._ledger.split(batch, lambda outcome: outcome.job.id in rest))
            return NO_DELAY
        if not self._rejected:
            self.retry_rejected_at = time.monotonic() + self._rejected_delay
        self._rejected.append(batch)  # always visible in one of the two
        self._unwritten.popleft()
        if not batch.is_reported:
            batch.is_reported = True
            for each in batch.outcomes:
                self._events.emit(JobResultRejected(worker_id=self._worker_id, job=each.job, error=error))
        return NO_DELAY

    def _retry_rejected(self) -> None:
        """Retry some rejected outcomes when they are due, less and less often."""
        if time.monotonic() < self.retry_rejected_at:
            return
        self.retry_rejected_at = time.monotonic() + self._rejected_delay
        self._rejected_delay = min(MAX_REJECTED_DELAY, self._rejected_delay * 2)
        for _ in range(min(RETRIED_REJECTIONS, len(self._rejected))):
            self._unwritten.append(self._rejected[0])  # always visible in one of the two
            self._rejected.popleft()

    def _accept(self, batch: OutcomeBatch) -> None:
        """Note that an outcome was written; if it was rejected before, the others may be accepted now as well."""
        self._unwritten.popleft()
        if batch.is_reported:
            self.retry_rejected_at, self._rejected_delay = 0.0, MIN_REJECTED_DELAY

    def _retry_row_locked(self) -> None:
        """Take up again what was set aside and is no longer locked."""
        if time.monotonic() < self._retry_row_locked_at:
            return
        self._retry_row_locked_at = time.monotonic() + LOCK_RETRY_INTERVAL
        for _ in range(len(self._row_locked)):
            if not self._ready_store().blocked(self._row_locked[0].job_ids()):
                self._unwritten.append(self._row_locked[0])  # always visible in one of the two
                self._row_locked.popleft()
            else:
                self._row_locked.rotate(-1)

    def _gather(self) -> None:
        """Take what has been reported, in one batch for each kind of outcome."""
        inbox = self._inbox
        outcomes = [inbox.popleft() for _ in range(min(BATCH, len(inbox)))]
        if not outcomes:
            return
        self.durations.add([each.seconds for each in outcomes if type(each) is not Returned])
        batches = self._divided(self._batches(outcomes))
        self._ledger.begin_settling(batches)
        self._unwritten.extend(batches)

    def _batches(self, outcomes: list[Outcome]) -> list[OutcomeBatch]:
        """Group outcomes by kind; contested ones are written alone."""
        alone: list[Outcome] = []
        if self._ledger.has_conflicts:
            alone = [each for each in outcomes if self._ledger.is_contested(each)]
            outcomes = [each for each in outcomes if each not in alone]
        kinds = set(map(type, outcomes))
        if len(kinds) == 1 and not alone:
            return [OutcomeBatch(outcomes)]
        alike = [[each for each in outcomes if type(each) is kind] for kind in KINDS if kind in kinds]
        return [OutcomeBatch(each) for each in (*([each] for each in alone), *alike)]

    def _divided(self, batches: list[OutcomeBatch]) -> list[OutcomeBatch]:
        """Separate the outcomes that history keeps from those it does not: each have a statement of their own."""
        keeps = self._keeps()
        return [part for batch in batches for part in divided(batch.outcomes, keeps)] if keeps else batches

    def _write(self, batch: OutcomeBatch) -> None:
        outcomes, releases = batch.outcomes, self._ledger.queues_released_by(batch)
        store, sent_at = self._ready_store(), steady_time()
        try:
            settled = send_outcomes(store, batch, self._worker_id, releases)
        except DatabaseUnavailableError:
            batch.in_doubt_since = batch.in_doubt_since or sent_at
            raise
        if len(settled.ids) < len(outcomes):
            settled = self._written_when_visible(batch, releases, settled, sent_at)
        # What is in doubt and not found was written the first time, unless another worker can have recovered the job.
        in_doubt, since = batch.in_doubt_since is not None, batch.in_doubt_since or sent_at
        ours = settled.ids
        was_written = len(ours) == len(outcomes) or (in_doubt and not self._lease.was_over_since(since))
        lost = [] if was_written else [o for o in outcomes if o.job.id not in ours]
        written = [o for o in outcomes if o.job.id in ours] if lost else outcomes
        self._ledger.discard(batch)
        kind = type(outcomes[0])
        self.completed += len(written) if kind is Completed else 0
        self.failed += len(written) if kind is Failed else 0
        if written:
            self._end_what_belongs_to(written, settled.waited_for)
        self._accept(batch)
        # After the batch is gone, because a worker that ends with the last job checks whether any are left.
        (self._on_queues_freed if releases else self._on_settled)()
        emit_settled(self._events, self._worker_id, written, lost, in_doubt=in_doubt)

    def _written_when_visible(
        self, batch: OutcomeBatch, releases: Sequence[QueueLock], settled: Settled, sent_at: float
    ) -> Settled:
        """Write the outcomes of jobs that were not found a second time; return what both statements settled.

        Row security may have hidden them from the first statement, and they are not lost. Raises
        `PermissionDeniedError` while it does.
        """
        store = self._ready_store()
        try:
            store.require_visible_rows()
            again = send_outcomes(store, batch, self._worker_id, releases)
        except GraphileWorkerError:
            # Those that were found are written, and are not found when the batch is sent again.
            batch.in_doubt_since = batch.in_doubt_since or sent_at
            raise
        return Settled(settled.ids | again.ids, settled.waited_for | again.waited_for)

    def _end_what_belongs_to(self, written: Sequence[Outcome], waited_for: Set[int]) -> None:
        """Let the groups of these jobs go on and delete their steps, in transactions after the one that settled them.

        If that fails, or the process ends between the two, `FollowUpCheck` does it.
        """
        # In doubt, a statement that was sent again finds no rows, and only the claims show for which jobs others wait.
        members = sorted({*waited_for, *ended_members(written)})
        with_steps = self.follow_ups.take_with_steps(written)
        if not members and not with_steps:
            return
        try:
            if members:
                self._ready_store().end_members(members, self._keeps())
            if with_steps:
                self._ready_store().end_steps(with_steps)
        except GraphileWorkerError as error:
            if needs_connection(error):
                self.disconnect()

    def _ready_store(self) -> JobStore:
        if self._store is None or self._store.connection.closed:
            connection = self._database.connect("settle", SETTLE_PLAN, response_timeout=RESPONSE_TIMEOUT)
            self._store = JobStore(connection, self._database.schema)
        return self._store

    def try_later(self, error: GraphileWorkerError) -> timedelta:
        """Keep the batch, and report why; after a deadlock or timeout the connection stays."""
        delay = self._outage.fail(error, self._store)
        if needs_connection(error):
            self.disconnect()
        return delay

    def disconnect(self) -> None:
        if self._store is not None:
            self._store.connection.close()
            self._store = None


def divided(outcomes: list[Outcome], keeps: Mapping[str, Keep]) -> list[OutcomeBatch]:
    """Divide outcomes of one kind into those that history keeps and those it does not."""
    if type(outcomes[0]) is Returned:
        return [OutcomeBatch(outcomes)]
    kept = [each for each in outcomes if each.job.task in keeps]
    rest = outcomes if not kept else [each for each in outcomes if each.job.task not in keeps]
    batches = [OutcomeBatch(each, keeps=keeps) for each in _limited(kept)]
    return [*batches, OutcomeBatch(rest)] if rest else batches


def _limited(outcomes: list[Outcome]) -> Iterator[list[Outcome]]:
    """Divide kept outcomes so that the results in one statement stay below `RESULT_BYTES`, about."""
    part: list[Outcome] = []
    size = 0
    for each in outcomes:
        part.append(each)
        size += len(each.result or "") if type(each) is Completed else 0
        if size > RESULT_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def send_outcomes(store: JobStore, batch: OutcomeBatch, worker_id: str, releases: Sequence[QueueLock]) -> Settled:
    """Write outcomes of one kind, release the queues, and return which jobs were still claimed.

    A database whose encoding is not UTF-8 may reject a text. An outcome that stands alone is then written in ASCII.
    """
    try:
        return _send(store, batch, worker_id, releases)
    except InvalidJobError as error:
        if len(batch.outcomes) > 1 or not is_beyond_encoding(error):
            raise
        return _send(store, batch, worker_id, releases, in_ascii=True)


def _send(
    store: JobStore, batch: OutcomeBatch, worker_id: str, releases: Sequence[QueueLock], *, in_ascii: bool = False
) -> Settled:
    outcomes: list[Any] = batch.outcomes
    kind = type(outcomes[0])
    if kind is Completed:
        return store.complete(outcomes, worker_id=worker_id, releases=releases, keeps=batch.keeps, in_ascii=in_ascii)
    if kind is Failed:
        return store.fail(outcomes, worker_id=worker_id, releases=releases, keeps=batch.keeps, in_ascii=in_ascii)
    return store.return_jobs(outcomes, worker_id=worker_id, releases=releases)


def emit_settled(
    events: Events, worker_id: str, written: Sequence[Outcome], lost: Sequence[Outcome] = (), *, in_doubt: bool = False
) -> None:
    """Emit the events of outcomes of one kind: those that were recorded, and those whose lock was lost."""
    if events.wants(JobsSettled):
        events.emit(JobsSettled(worker_id=worker_id, outcomes=written, lost=lost, in_doubt=in_doubt))
    if written and type(written[0]) is Returned:
        for each in written:
            events.emit(JobReturned(worker_id=worker_id, job=each.job, reason=each.reason))  # type: ignore[union-attr]
    elif events.wants(JobCompleted):
        for each in written:
            error = each.error if type(each) is Failed else None
            events.emit(JobCompleted(worker_id=worker_id, job=each.job, error=error))
    for each in lost:
        events.emit(JobLockLost(worker_id=worker_id, job=each.job, in_doubt=in_doubt))
