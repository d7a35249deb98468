"""Claim jobs as they are needed, and listen for new ones."""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from gw_core.domain.errors import DatabaseError, GraphileWorkerError
from gw_core.domain.job.cancellation import CancelRequest
from gw_core.domain.job.claim_gap import ClaimGap
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Returned
from gw_core.domain.reports.left_jobs import reason_to_end
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    ClaimEmpty,
    MaintenanceFailed,
    PoolClaimed,
    PoolConnectionLost,
    PoolConnectionRestored,
)
from gw_core.domain.rules.settings import PoolerMode, WorkerSettings
from gw_core.postgres.connection.database import RESPONSE_TIMEOUT, Database, QueueConnection
from gw_core.postgres.connection.error_mapping import needs_connection
from gw_core.postgres.connection.notifications import Subscription, worker_channels
from gw_core.postgres.road.claims import CLAIM_PLAN, Claims
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import Service
from gw_core.worker.claim_demand import claim_demand, jobs_in_window, prefetch_limit
from gw_core.worker.claim_gates import Gates
from gw_core.worker.free_memory import return_free_memory
from gw_core.worker.handoff import Handoff, Item, QueueBatch
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.ledger import Ledger
from gw_core.worker.listener import NotificationHealth
from gw_core.worker.own_locks import OwnLocks
from gw_core.worker.pauses import CurrentPauses
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.settler import NO_DELAY, Settler, reconnect_delay
from gw_core.worker.timeouts import Timeouts

MAX_UNSETTLED: Final = 20_000
"""With more outcomes waiting for the database no jobs are claimed: they fill memory and keep their jobs locked."""

MAX_REJECTIONS: Final = 3
"""How often in a row a function for forbidden flags may fail before `run --once` gives up."""

ForbiddenFlags = Sequence[str] | Callable[[], Sequence[str] | None] | None
"""Flags whose jobs are not claimed: fixed, or returned by a function that each claim calls."""

QUEUE_RETRY_INTERVAL: Final = 0.01
"""Seconds, doubled after each empty claim, until a queue that another worker locked may be free again."""

CONFLICT_DELAY: Final = timedelta(seconds=5)
"""How long a claimed job waits whose earlier attempt still runs here, after its lock was taken away."""

MIN_REST: Final = 0.002
"""Seconds between two checks whether waiting jobs must be returned."""

RETURN_SHARE: Final = 0.2
"""Share of the prefetch window that remains for returning jobs that cannot start here and claiming them elsewhere."""

MIN_STUCK: Final = 0.04
"""Seconds for which a job may wait behind busy threads at least, however short the window."""

TASK_LOOKUP_INTERVAL: Final = 60.0
"""Seconds: a cleanup elsewhere may delete an unused task identifier, which comes back with another id."""


class Claimer(Service):
    """Thread `gw-claim`: claims as many jobs as the worker can use, hands them over, listens for new ones.

    Owns its connection and all its state except the flags `_claim_requested`, `_woken` and `_resting`, and `_gap`.
    Other threads set them through `request_claim`, `on_jobs` and `wake`; they only ask for one more claim, so a race
    costs one empty claim.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        database: Database,
        settings: WorkerSettings,
        task_names: Callable[[], Sequence[str]],
        forbidden_flags: ForbiddenFlags,
        handoff: Handoff,
        ledger: Ledger,
        own_locks: OwnLocks,
        lease: Lease,
        pauses: CurrentPauses,
        is_listening: Callable[[], bool],
        settler: Settler,
        timeouts: Timeouts,
        slots: Sequence[RunSlot],
        events: Events,
        on_cancel_requests: Callable[[Sequence[CancelRequest]], None],
        notifications: NotificationHealth | None,
        on_drained: Callable[[str], None] | None,
        on_rejected: Callable[[GraphileWorkerError], None] | None = None,
    ) -> None:
        super().__init__("gw-claim")
        self._on_rejected = on_rejected
        self._rejections = 0
        self._worker_id = worker_id
        self._database = database
        self._settings = settings
        self._task_names = task_names
        self._forbidden_flags = forbidden_flags
        self._handoff = handoff
        self._ledger = ledger
        self._own_locks = own_locks
        self._lease = lease
        self._pauses = pauses
        self._is_listening = is_listening
        self._gates = Gates(self._report_missing_index)
        self._flags: Sequence[str] | None = None
        self._settler = settler
        self._timeouts = timeouts
        self._slots = slots
        self._events = events
        self._on_drained = on_drained
        self._on_cancel_requests = on_cancel_requests
        self._cancel_requested = False
        self._notifications = notifications
        self._prefetch_seconds = (1 - RETURN_SHARE) * settings.prefetch.total_seconds()
        self._stuck_after = max(MIN_STUCK, self._prefetch_seconds)
        self.overdue_after = 2 * self._stuck_after
        self._poll_every = settings.poll_interval.total_seconds()
        self._store: JobStore | None = None
        self._listener: Subscription | None = None
        self._tasks: dict[int, str] = {}
        self._tasks_read: tuple[Sequence[str], float] = ((), 0.0)
        self.polled_at: float | None = None
        """When a claim last went well, by the steady clock; others read it and may be late."""
        self.tries = 0
        self._max_jobs = settings.claim_limit
        """How many jobs a claim asks for at most: fewer after one that failed, for its answer may have been too large,
        and after one that was cut for the size of its payloads, since the server unpacks all that it is asked for."""
        self._is_cut = False
        self._filled_memory = False
        """Whether payloads have filled the memory for a claim since memory was returned to the system."""
        self._may_find = True
        self._is_empty = False
        self._next_poll = 0.0
        self._retry_after: float | None = None
        self._handed_over = 0.0
        self._claim_requested = False
        self._gap = ClaimGap()
        self._woken = False
        self._resting = False
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._wakeups = selectors.DefaultSelector()
        self._wakeups.register(self._wake_out, selectors.EVENT_READ)

    # -- other threads' side ---------------------------------------------------------------------------------------

    def request_claim(self) -> None:
        """Request a claim; from any thread."""
        self._claim_requested = True
        self.wake()

    def on_jobs(self, count: int) -> None:
        """Request a claim after a notification of this many jobs, some milliseconds later if many workers compete."""
        if self._gap.announce(count):
            self.wake()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is claimed any longer; from any thread."""
        return self.join(timedelta(0))

    def on_cancel_request(self) -> None:
        """Request a read of the cancel requests; from any thread."""
        self._cancel_requested = True
        self.wake()

    def on_claim_rules(self) -> None:
        """Request a read of what is paused; from any thread."""
        self._pauses.request()
        self.wake()

    def on_settled(self) -> None:
        """Request a claim if there is room for limited jobs now, or the last job may have ended; from any thread."""
        if self._gates.is_full or (self._on_drained is not None and self._is_settled()):
            self.request_claim()

    def wake(self) -> None:
        """Cut the rest short, also one that is about to begin."""
        self._woken = True
        if self._resting:
            self._resting = False
            with suppress(OSError):  # it is woken already, or the socket is closed
                self._wake_in.send(b"!")

    # -- one step --------------------------------------------------------------------------------------------------

    def step(self) -> timedelta:
        """Claim what the worker can use now; rest when it can use nothing, or nothing is there."""
        self._woken = False
        self._reconnect_if_unresponsive()
        self._end_gap()
        try:
            store = self._ready_store()
            if self.is_stopping:  # connecting can take its time
                return NO_DELAY
            if self._cancel_requested:
                self._cancel_requested = False
                self._receive_cancel_requests(store)
            self._read_pauses(store)
            rest = self._poll(store)
            if self.tries:  # reported after a success, not before the next try
                self._report_restored()
            return rest
        except GraphileWorkerError as error:
            return self._try_later(error)

    def _end_gap(self) -> None:
        """Once the gap after the last claim is over, request the claim for all notifications that have arrived."""
        if not self._gap.is_notified or time.monotonic() < self._gap.ends_at:
            return
        if self._gap.ends_at:
            self._receive()
        self._gap.is_notified = False
        self._claim_requested = True

    def _begin_gap(self, claimed: int) -> None:
        self._gap.begin(time.monotonic(), random.random(), claimed=claimed)

    def _receive_cancel_requests(self, store: JobStore) -> None:
        """Carry out the cancel requests, then confirm them: after a lost answer, they are read again."""
        if requests := store.read_cancellations(worker_id=self._worker_id):
            self._on_cancel_requests(requests)
            store.confirm_cancellations(requests, worker_id=self._worker_id)

    def _read_pauses(self, store: JobStore) -> None:
        """Read what is paused when that may have changed; the jobs of what was resumed are claimed at the next poll."""
        if self._pauses.due_in(time.monotonic(), is_listening=self._is_listening()) > 0:
            return
        if self._pauses.read(store.connection, store.schema):
            store.claims.skip_ahead.restart_scan()
            self._gates.reset()
            self._claim_requested = True

    def _poll(self, store: JobStore) -> timedelta:
        now = time.monotonic()
        if self._claim_requested or now >= self._next_poll:
            if self._claim_requested and self._retry_after is None:
                self._retry_after = QUEUE_RETRY_INTERVAL
            # Reset before the server is asked: a request that arrives during that stays.
            is_requested, self._claim_requested = self._claim_requested, False
            self._may_find = is_requested or not self._is_idle(store)
            # Also when no thread is idle: the request stays, and the rest is a rest.
            self._next_poll = now + self._poll_every
        self._return_overdue(now)
        if not self._may_find:
            return self._until_poll(now)
        limit = self._demand()
        if limit < 1:
            # Requested before checking again, so that a thread that becomes idle in between is noticed.
            self._handoff.call_when_low(self._prefetch_limit() // 2)
            limit = self._demand()
            if limit < 1:
                self._begin_gap(0)
                self._end_if_stuck(store)
                return self._until_poll(now)
        self._handoff.call_when_low(-1)
        self._next_poll = now + self._poll_every
        # Before the claim: a limit that is full because of an own job that ends during it has room for another one.
        may_end = self._on_drained is not None and self._is_settled()
        jobs = self._claim_allowed(store, limit)
        self._begin_gap(len(jobs))
        # A queue gives only so many jobs to a claim, and holding it may have hidden others behind it.
        # When very many queues are locked, the next claim continues where this one stopped.
        has_queued = any(job.queue_id is not None for job in jobs)
        claims = store.claims
        is_unread = claims.scanned_to is not None or claims.left_rest
        may_be_more = len(jobs) >= limit or is_unread or has_queued or self._is_cut
        # The release of the only queue with jobs requests a claim.
        self._may_find = may_be_more and not claims.is_rest_locked
        if has_queued:
            self._retry_after = QUEUE_RETRY_INTERVAL
        elif not self._may_find and claims.saw_queues:
            self._retry_soon(now)
        if not self._may_find and (everywhere_at := claims.skip_ahead.skips_until(now)) is not None:
            self._next_poll = min(self._next_poll, everywhere_at)
        self._next_poll = min(self._next_poll, self._gates.next_at)
        if jobs:
            self._is_empty = False
        elif not self._may_find and not self._is_empty:
            self._is_empty = True
            self._events.emit(ClaimEmpty(worker_id=self._worker_id))
        if not jobs and self._filled_memory and self._is_settled():
            self._filled_memory = False
            return_free_memory()
        if not jobs and may_end and self._on_drained is not None and not self._may_find and self._is_drained(store):
            self._on_drained(self._reason_to_end(store))
        return NO_DELAY if self._may_find or self._claim_requested else self._until_poll(now)

    def _is_idle(self, store: JobStore) -> bool:
        """Return whether a poll finds that no job waits; a worker that ends with the last job always claims."""
        if not self._is_empty or self._on_drained is not None or not store.claims.is_nothing_waiting():
            return False
        self.polled_at = time.monotonic()
        return True

    def _fills_memory(self, jobs: Sequence[Job]) -> bool:
        """Return whether the size of these payloads may have ended a claim."""
        # A character takes up to four bytes.
        return bool(jobs) and 4 * sum(len(job.payload) for job in jobs) >= self._settings.claim_bytes

    def _retry_soon(self, now: float) -> None:
        """Claim again before the next poll after an empty claim: another worker may have just released a queue.

        Graphile Worker (Node.js) releases a queue without a notification.
        """
        if self._retry_after is None:
            return
        self._next_poll = min(self._next_poll, now + self._retry_after)
        self._retry_after *= 2
        if self._retry_after >= self._poll_every:
            self._retry_after = None

    def _claim_allowed(self, store: JobStore, limit: int) -> Sequence[Job]:
        """Claim jobs of the tasks that are not paused; without any, a claim would only read what it cannot take."""
        tasks, self._flags = self._pauses.rules.allowed(self._tasks), self._flags_now()
        self._is_cut = store.claims.is_rest_locked = False
        if not self._pauses.limited.isdisjoint(tasks.values()):
            return self._claim_with_limits(store, tasks, limit)
        return self._claim_unlimited(store, tasks, limit)

    def _claim_with_limits(self, store: JobStore, tasks: Mapping[int, str], limit: int) -> Sequence[Job]:
        """Claim jobs with and without a limit; which of them come first changes with each claim."""
        limited = {number: name for number, name in tasks.items() if name in self._pauses.limited}
        others = {number: name for number, name in tasks.items() if number not in limited}
        jobs: list[Job] = []
        for are_limited in (True, False) if self._gates.takes_turn() else (False, True):
            if (left := limit - len(jobs)) < 1:
                break
            jobs += (
                self._claim_limited(store, limited, left) if are_limited else self._claim_unlimited(store, others, left)
            )
        return jobs

    def _claim_limited(self, store: JobStore, tasks: Mapping[int, str], limit: int) -> Sequence[Job]:
        jobs: list[Job] = []
        for number, gate in self._gates.in_turn(store, tasks):
            if (left := limit - len(jobs)) < 1:
                break
            task = {number: tasks[number]}
            jobs += self._claimed(store, left, partial(gate.claim, left, partial(self._take, task)))
        return jobs

    def _report_missing_index(self, task: str, field: str) -> None:
        error = DatabaseError(
            f"no jobs of task {task!r} are claimed: its limit by {field} needs an index that is missing; "
            "set the limit again with gw limit"
        )
        self._events.emit(MaintenanceFailed(service=self.name, error=error))

    def _claim_unlimited(self, store: JobStore, tasks: Mapping[int, str], limit: int) -> Sequence[Job]:
        if tasks:
            return self._claimed(store, limit, partial(self._take, tasks, store.claims, limit))
        store.claims.scanned_to, store.claims.left_rest = None, False
        self.polled_at = time.monotonic()
        return ()

    def _take(self, tasks: Mapping[int, str], claims: Claims, limit: int) -> Sequence[Job]:
        mean = self._settler.durations.mean
        return claims.claim(
            worker_id=self._worker_id,
            tasks=tasks,
            limit=limit,
            max_bytes=self._settings.claim_bytes,
            per_queue=1 if mean is None else max(1, min(limit, self._in_window(mean))),
            forbidden_flags=self._flags,
            now=self._client_time(),
            scan_from=0 if claims.scanned_to is None else claims.scanned_to + 1,
        )

    def _claimed(self, store: JobStore, limit: int, claim: Callable[[], Sequence[Job]]) -> Sequence[Job]:
        """Claim, record the claims, and hand over and return the jobs that may start.

        They are handed over before the next claim, because it can fail: the ledger knows these jobs already.
        """
        self._own_locks.begin_claim(store.session)
        jobs = claim()
        start, conflicting = self._ledger.add(jobs)
        self._own_locks.end_claim(jobs)
        is_cut = len(jobs) < limit and self._fills_memory(jobs)
        self._is_cut = self._is_cut or is_cut
        self._filled_memory = self._filled_memory or is_cut
        self._max_jobs = min(self._settings.claim_limit, 2 * (len(jobs) if is_cut else self._max_jobs))
        self.polled_at = time.monotonic()
        if jobs and self._events.wants(PoolClaimed):
            self._events.emit(PoolClaimed(worker_id=self._worker_id, jobs=jobs))
        for job in conflicting:
            reason = "an earlier attempt of the job, or a job of its queue, still runs in this worker"
            self._settler.report(Returned(job, reason, delay=CONFLICT_DELAY, started=False))
        if start:
            self._hand_over(start)
        return start

    def _hand_over(self, jobs: Sequence[Job]) -> None:
        items: list[Item] = []
        batches: dict[int, QueueBatch] = {}
        for job in jobs:
            if job.queue_id is None:
                items.append(job)
            elif job.queue_id in batches:
                batches[job.queue_id].append(job)
            else:
                batches[job.queue_id] = batch = QueueBatch([job])
                items.append(batch)
        self._handed_over = time.monotonic()
        is_alone = len(items) == 1 and self._handoff.idle == len(self._slots)
        self._handoff.put(items)
        if is_alone:
            # Gives up the GIL, for which the woken thread would wait until this one rests. With many jobs, this thread
            # would wait up to 5 ms to get it back before the next claim, which takes a tenth off a drain.
            time.sleep(0)

    # -- how much ----------------------------------------------------------------------------------------------------

    def _demand(self) -> int:
        """Return how many jobs to claim now; none while too many outcomes are unwritten or the lease is over."""
        if self._settler.unsettled >= MAX_UNSETTLED or self._lease.is_over:
            return 0
        return claim_demand(
            idle=self._handoff.idle,
            waiting=self._handoff.waiting,
            prefetch=self._prefetch_limit(),
            threads=self._settings.concurrency,
            outstanding=len(self._ledger) - self._settler.reported,
            max_jobs=self._max_jobs,
        )

    def _prefetch_limit(self) -> int:
        """Return how many jobs fit into the prefetch window of the threads that are not stuck in a long job."""
        return prefetch_limit(
            self._settler.durations.mean,
            threads=self._available_threads(),
            window=self._prefetch_seconds,
            claim_limit=self._settings.claim_limit,
        )

    def _available_threads(self) -> int:
        """Return how many threads are not stuck in a job that takes longer than the window."""
        long_ago = steady_time() - self._prefetch_seconds
        return sum(1 for slot in self._slots if not 0.0 < slot.busy_since < long_ago)

    def _in_window(self, mean: float) -> int:
        return jobs_in_window(mean, window=self._prefetch_seconds, claim_limit=self._settings.claim_limit)

    def _return_overdue(self, now: float) -> None:
        """Return what was prefetched and still waits: another worker may be idle.

        That is when every thread is stuck in a job longer than the window, or the jobs are slower than thought.
        """
        if self._handoff.waiting and not self._handoff.idle:
            waited = now - self._handed_over
            if waited > self.overdue_after or (waited > self._stuck_after and not self._available_threads()):
                self.return_waiting("not started within the prefetch window")
        stuck_since = steady_time() - self.overdue_after
        for slot in self._slots:
            batch = slot.queue_batch
            if batch and 0.0 < slot.busy_since < stuck_since:
                self._return(_emptied(batch), "not started within the prefetch window")

    def return_unstarted(self, reason: str) -> None:
        """Return everything claimed that has not started; from any thread, once the hand-off is closed."""
        self.return_waiting(reason)
        for slot in self._slots:
            if batch := slot.queue_batch:
                self._return(_emptied(batch), reason)

    def return_waiting(self, reason: str) -> None:
        """Return everything no thread has taken."""
        jobs: list[Job] = []
        for item in self._handoff.take_back():
            if type(item) is Job:
                jobs.append(item)
            else:
                jobs.extend(_emptied(item))  # type: ignore[arg-type] # the other member of the union
        self._return(jobs, reason)

    def _return(self, jobs: Sequence[Job], reason: str) -> None:
        for job in jobs:
            self._settler.report(Returned(job, reason, started=False))

    # -- what a claim needs to know -----------------------------------------------------------------------------------

    def _flags_now(self) -> Sequence[str] | None:
        paused = self._pauses.rules.flags
        return [*(self._configured_flags() or ()), *paused] if paused else self._configured_flags()

    def _configured_flags(self) -> Sequence[str] | None:
        if not callable(self._forbidden_flags):
            return self._forbidden_flags
        try:
            flags = self._forbidden_flags()
        except Exception as error:
            # Not knowing what is forbidden, nothing is claimed; user code must not end the thread.
            raise ForbiddenFlagsError(
                f"the function for forbidden flags raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(flags, str):
            raise ForbiddenFlagsError(
                f"the function for forbidden flags returned the text {flags!r}; it must return a list of names"
            )
        self._rejections = 0
        return flags

    def _client_time(self) -> datetime | None:
        return datetime.now(UTC) if self._settings.use_client_time else None

    def _ready_store(self) -> JobStore:
        if self._store is None:
            self._store = self._connect()
        names, read_at = self._tasks_read
        wanted = self._task_names()
        if wanted is not names or time.monotonic() - read_at > TASK_LOOKUP_INTERVAL:
            self._tasks = self._store.register_tasks(wanted)
            self._tasks_read = (wanted, time.monotonic())
        if time.monotonic() >= self._own_locks.check_at and self._own_locks.check(self._store):
            self._claim_requested = True
        return self._store

    def _connect(self) -> JobStore:
        connection = self._database.connect("claim", CLAIM_PLAN, response_timeout=RESPONSE_TIMEOUT)
        store = JobStore(connection, self._database.schema)
        self._tasks_read = ((), 0.0)
        self._pauses.request()
        self._gates.reset()
        if self._notifications is not None and connection.pooling is not PoolerMode.TRANSACTION:
            self._listen(connection, self._notifications)
        self._may_find = True  # jobs added before LISTEN
        return store

    def _listen(self, connection: QueueConnection, notifications: NotificationHealth) -> None:
        try:
            channels = worker_channels(self._worker_id)
            self._listener = Subscription(connection, notifications.on_notification, channels)
        except GraphileWorkerError:
            connection.close()
            raise
        self._selector.register(self._listener, selectors.EVENT_READ)
        notifications.begin()

    def _is_settled(self) -> bool:
        """Return whether this worker has no job whose outcome is not written, but those that overrun."""
        return len(self._ledger) == self._overruns() and self._settler.is_idle

    def _overruns(self) -> int:
        """Return how many tasks still run although they were stopped; a single run does not wait for them."""
        return len(self._timeouts.overruns) if self._timeouts.runs and self._on_drained is not None else 0

    def _end_if_stuck(self, store: JobStore) -> None:
        """End a single run whose threads are all held by tasks that do not end: it can run nothing more."""
        if self._on_drained is None or self._on_rejected is None or self._overruns() < self._settings.concurrency:
            return
        if self._is_drained(store):
            self._on_drained(self._reason_to_end(store))
        else:
            self._on_rejected(AllThreadsHeldError("every thread is held by a task that does not end; jobs are left"))

    def _is_drained(self, store: JobStore) -> bool:
        if not self._is_settled():
            return False
        closed = self._gates.closed
        allowed = self._pauses.rules.allowed(self._tasks)
        tasks = {number: name for number, name in allowed.items() if number not in closed}
        if store.is_anything_runnable(tasks=tasks, forbidden_flags=self._flags_now(), now=self._client_time()):
            # Another session locks its row, or it was added after the claim, or the claim skipped it.
            store.claims.skip_ahead.restart_scan()
            self._next_poll = time.monotonic() + 0.01
            return False
        return True

    def _reason_to_end(self, store: JobStore) -> str:
        """Return why a run ends now, with what it leaves."""
        left = store.list_left_jobs(tasks=self._tasks, now=self._client_time())
        closed = {self._tasks[number]: why for number, why in self._gates.closed.items() if number in self._tasks}
        return reason_to_end(left, pauses=self._pauses.rules, closed_limits=closed)

    # -- resting -----------------------------------------------------------------------------------------------------

    def _until_poll(self, now: float) -> timedelta:
        rest = max(0.0, min(self._next_poll, self._own_locks.check_at) - now)
        rest = min(rest, max(0.0, self._pauses.due_in(now, is_listening=self._is_listening())))
        if self._listener is not None and self._notifications is not None:
            overdue_in = self._notifications.ping_overdue_in()
            rest = rest if overdue_in is None else min(rest, max(0.0, overdue_in))
        if self._handoff.waiting:
            rest = min(rest, self._until_overdue(now))
        if self._gap.is_notified:
            rest = min(rest, max(0.0, self._gap.ends_at - now))
        return timedelta(seconds=rest)

    def _until_overdue(self, now: float) -> float:
        """Return the seconds until waiting jobs may have to be returned, unless a thread becomes idle first."""
        waited = now - self._handed_over
        youngest = steady_time() - max(slot.busy_since for slot in self._slots)
        stuck_in = max(self._stuck_after - waited, self._prefetch_seconds - youngest)
        return max(MIN_REST, min(stuck_in, self.overdue_after - waited))

    def _rest(self, duration: timedelta) -> None:
        if duration <= NO_DELAY:
            return
        self._resting = True
        if self._woken or self.is_stopping:
            self._resting = False
            return
        # What arrives in a gap is read at its end: reading each notification would cost as much as the claims.
        selector = self._wakeups if self._gap.is_notified else self._selector
        ready = selector.select(duration.total_seconds())
        self._resting = False  # before notifications are handled: they wake this thread, which is awake
        for key, _ in ready:
            if key.fileobj is self._wake_out:
                self._wake_out.recv(64)
            else:
                self._receive()

    def _receive(self) -> None:
        if self._listener is None:
            return
        try:
            self._listener.receive()
        except GraphileWorkerError as error:
            # The next step reconnects; a claim would fail with the same error.
            self._try_later(error)

    def _reconnect_if_unresponsive(self) -> None:
        """Listen on a new connection when a ping is overdue, after reading what has already arrived."""
        notifications = self._notifications
        if notifications is None or self._listener is None or (notifications.ping_overdue_in() or 1.0) > 0:
            return
        self._receive()
        if self._listener is not None and notifications.is_unresponsive():
            self._disconnect()

    # -- failures ----------------------------------------------------------------------------------------------------

    def _try_later(self, error: GraphileWorkerError) -> timedelta:
        if isinstance(error, ForbiddenFlagsError):
            self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._rejections += 1
            if self._on_rejected is not None and self._rejections >= MAX_REJECTIONS:
                self._on_rejected(error)
            self._next_poll = time.monotonic() + self._poll_every
            return self._settings.poll_interval
        delay = reconnect_delay(self.tries)
        if self.tries == 0:
            operation = "claim jobs"
            self._events.emit(
                PoolConnectionLost(worker_id=self._worker_id, operation=operation, error=error, delay=delay)
            )
        self.tries += 1
        if self._own_locks.fail_claim(error):
            self._max_jobs = max(1, self._max_jobs // 2)
        self._claim_requested = True
        self._cancel_requested = True  # cancel requests may have been missed
        if needs_connection(error):
            self._disconnect()
        self._stopping.wait(delay.total_seconds())
        return NO_DELAY

    def _report_restored(self) -> None:
        tries, self.tries = self.tries, 0
        self._events.emit(PoolConnectionRestored(worker_id=self._worker_id, operation="claim jobs", attempts=tries))

    def _disconnect(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener = None
            if self._notifications is not None:
                self._notifications.end()
        if self._store is not None:
            self._store.connection.close()
            self._store = None

    def teardown(self) -> None:
        """Return what has not started, and what a claim locked whose answer was lost; then hang up."""
        self.return_unstarted("the worker is stopping")
        self._check_own_locks_at_the_end()
        self._disconnect()
        self._selector.close()
        self._wakeups.close()
        self._wake_in.close()
        self._wake_out.close()

    def _check_own_locks_at_the_end(self) -> None:
        """Return what a lost claim locked, on a second connection if the first is lost too; then a sweep has to."""
        for _ in range(2):
            if not self._own_locks.is_in_doubt:
                return
            try:
                self._store = self._store or self._connect()
                self._own_locks.check(self._store)
            except GraphileWorkerError:
                self._disconnect()


class AllThreadsHeldError(GraphileWorkerError):
    """No thread of a single run is free, and none will be."""


class ForbiddenFlagsError(GraphileWorkerError):
    """The user's function that names the forbidden flags failed."""


def _emptied(batch: QueueBatch) -> list[Job]:
    """Take the jobs from the far end of a batch, which its thread empties from the near end."""
    taken: list[Job] = []
    while True:
        try:
            taken.append(batch.pop())
        except IndexError:
            return taken
