"""The loop of the thread that claims jobs: when to claim, and when to rest.

Each part has its file: `claim_connection` connects and listens, `claim_policy` knows which jobs may be claimed,
`claim_demand` how many, `claimed_jobs` hands them to the threads, and `single_run` ends a run with its last job.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from gw_core.domain.errors import GraphileWorkerError, PermissionDeniedError
from gw_core.domain.job.cancellation import CancelRequest
from gw_core.domain.job.claim_gap import ClaimGap
from gw_core.domain.job.claim_schedule import ClaimSchedule, Found
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import ClaimEmpty, MaintenanceFailed
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import Service
from gw_core.worker.claim_connection import ClaimConnection
from gw_core.worker.claim_demand import ClaimDemand
from gw_core.worker.claim_gates import Gate
from gw_core.worker.claim_policy import ClaimPolicy, ForbiddenFlagsError
from gw_core.worker.claimed_jobs import ClaimedJobs
from gw_core.worker.free_memory import return_free_memory
from gw_core.worker.settler import NO_DELAY
from gw_core.worker.single_run import SingleRun
from gw_core.worker.wakeup import Wakeup


class Claimer(Service):
    """Thread `gw-claim`: claims as many jobs as the worker can use, hands them over, listens for new ones.

    Owns its connection and all its state except `_wakeup`, `_gap`, `_cancel_requested` and the request of the schedule.
    Other threads set them through `request_claim`, `on_jobs` and `wake`; they only ask for one more claim, so a race
    costs one empty claim.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        poll_interval: timedelta,
        connection: ClaimConnection,
        wakeup: Wakeup,
        policy: ClaimPolicy,
        demand: ClaimDemand,
        claimed_jobs: ClaimedJobs,
        events: Events,
        on_cancel_requests: Callable[[Sequence[CancelRequest]], None],
        single_run: SingleRun | None = None,
    ) -> None:
        super().__init__("gw-claim")
        self.claimed_jobs = claimed_jobs
        self.policy = policy
        self.polled_at: float | None = None
        """When a claim last went well, by the steady clock; others read it and may be late."""
        self._worker_id = worker_id
        self._poll_interval = poll_interval
        self._connection = connection
        self._own_locks = connection.own_locks
        self._wakeup = wakeup
        self._demand = demand
        self._events = events
        self._on_cancel_requests = on_cancel_requests
        self._single_run = single_run
        self._schedule = ClaimSchedule(poll_interval.total_seconds())
        self._gap = ClaimGap()
        self._cancel_requested = False

    # -- other threads' side ---------------------------------------------------------------------------------------

    def request_claim(self) -> None:
        """Request a claim; from any thread."""
        self._schedule.is_requested = True
        self.wake()

    def on_jobs(self, count: int) -> None:
        """Request a claim after a notification of this many jobs, some milliseconds later if many workers compete."""
        if self._gap.announce(count):
            self.wake()

    def on_cancel_request(self) -> None:
        """Request a read of the cancel requests; from any thread."""
        self._cancel_requested = True
        self.wake()

    def on_claim_rules(self) -> None:
        """Request a read of what is paused; from any thread."""
        self.policy.request_rules()
        self.wake()

    def on_settled(self) -> None:
        """Request a claim if there is room for limited jobs now, or the last job may have ended; from any thread."""
        if self.policy.has_full_limit or (self._single_run is not None and self._single_run.is_settled()):
            self.request_claim()

    def wake(self) -> None:
        """Cut the rest short, also one that is about to begin."""
        self._wakeup.wake()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is claimed any longer; from any thread."""
        return self.join(timedelta(0))

    @property
    def tries(self) -> int:
        """How many tries to reach the database have failed since the last success; from any thread."""
        return self._connection.outage.tries

    # -- one step --------------------------------------------------------------------------------------------------

    def step(self) -> timedelta:
        """Claim what the worker can use now; rest when it can use nothing, or nothing is there."""
        self._wakeup.clear()
        try:
            self._connection.replace_if_unresponsive()
            self._end_gap()
            store = self._connection.store()
            if self.is_stopping:  # connecting can take its time
                return NO_DELAY
            self._prepare(store)
            may_claim = self._connection.may_claim  # before the limit, which is none if it may not
            limit = self._limit(store)
            if limit:
                self._claim(store, limit)
            if may_claim:
                self._connection.outage.end()  # after a success, not before the next try
        except GraphileWorkerError as error:
            return self._try_later(error)
        is_more = self._schedule.may_find or self._schedule.is_requested
        return NO_DELAY if limit and is_more else self._until_next()

    def _end_gap(self) -> None:
        """Once the gap after the last claim is over, claim for all notifications that have arrived.

        A worker with rivals asks first whether a job is due: another one has claimed most of what is announced by then.
        """
        if not self._gap.is_notified or time.monotonic() < self._gap.ends_at:
            return
        if self._gap.ends_at:
            self._connection.receive()
        self._gap.is_notified = False
        if self._gap.has_rivals:
            self._schedule.poll_now(time.monotonic())
        else:
            self._schedule.is_requested = True

    def _begin_gap(self, claimed: int) -> None:
        self._gap.begin(time.monotonic(), random.random(), claimed=claimed)

    def _prepare(self, store: JobStore) -> None:
        """Find out everything that has changed since the last step."""
        if self.policy.use(store):
            self._schedule.may_find = True  # jobs added before LISTEN
        if time.monotonic() >= self._own_locks.check_at and self._own_locks.check(store):
            self._schedule.is_requested = True
        if self._cancel_requested:
            self._cancel_requested = False
            self._receive_cancel_requests(store)
        if self.policy.read_rules(store):
            self._schedule.is_requested = True  # for the jobs of what was resumed

    def _receive_cancel_requests(self, store: JobStore) -> None:
        """Carry out the cancel requests, then confirm them: after a lost answer, they are read again."""
        if requests := store.read_cancellations(worker_id=self._worker_id):
            self._on_cancel_requests(requests)
            store.confirm_cancellations(requests, worker_id=self._worker_id)

    def _limit(self, store: JobStore) -> int:
        """Return how many jobs to claim now: none without a reason to claim, or without a use for them."""
        now, schedule = time.monotonic(), self._schedule
        if schedule.is_due(now):
            is_requested = schedule.take_request(now)
            schedule.may_find = is_requested or not self._is_nothing_due(store)
        self.claimed_jobs.return_overdue(now)
        if not schedule.may_find:
            return 0
        limit = self._demand.limit()
        if not limit:
            self._begin_gap(0)
            if self._single_run is not None:
                self._single_run.end_if_stuck(store)
        return limit

    def _is_nothing_due(self, store: JobStore) -> bool:
        """Return whether a poll finds that no job is due; a worker that ends with the last job always claims."""
        if not self._schedule.is_empty or self._single_run is not None or not self.policy.is_nothing_due(store):
            return False
        self.polled_at = time.monotonic()
        self._begin_gap(0)
        return True

    def _claim(self, store: JobStore, limit: int) -> None:
        """Claim up to this many jobs, and hand over those that may start.

        They are handed over before the next claim, because it can fail: the ledger knows these jobs already.
        """
        began = time.monotonic()
        # Before the claim: a limit that is full because of an own job that ends during it has room for another one.
        may_end = self._single_run is not None and self._single_run.is_settled()
        options = self.policy.options(per_queue=self._demand.per_queue())
        found = Found(limit=limit)
        for source, tasks in self.policy.sources(store):
            left = limit - found.jobs
            self._own_locks.begin_claim(store.session)
            try:
                jobs = source.claim(tasks=tasks, limit=left, **options)
            except PermissionDeniedError as error:
                # The jobs of other tasks are claimed all the same; a single run ends for a missing right.
                if self._single_run is not None or not isinstance(source, Gate):
                    raise
                source.deny(error)
                jobs = ()
            started = self.claimed_jobs.accept(jobs)
            self._own_locks.end_claim(jobs)
            found.jobs += len(started)
            found.has_queued |= any(job.queue_id is not None for job in started)
            found.has_more |= self._demand.size.note_claim(jobs, left) or source.has_more
            found.is_rest_locked |= source.is_rest_locked
            found.saw_queues |= source.saw_queues
            if found.jobs >= limit:
                break
        self.polled_at = time.monotonic()
        found.retry_at = min(self.policy.limits_retry_at, store.claims.skip_ahead.skips_until(began) or float("inf"))
        if self._schedule.note_claim(found, began):
            self._events.emit(ClaimEmpty(worker_id=self._worker_id))
        self._begin_gap(found.jobs)
        if not found.jobs:
            self._end_work(store, may_end=may_end and not self._schedule.may_find)

    def _end_work(self, store: JobStore, *, may_end: bool) -> None:
        """After a claim that found nothing, return memory to the system, and end a single run."""
        if self._demand.size.has_filled_memory and self.claimed_jobs.is_settled():
            self._demand.size.has_filled_memory = False
            return_free_memory()
        if may_end and self._single_run is not None and not self._single_run.end_if_drained(store):
            # Another session locks a job's row, or it was added after the claim, or the claim skipped it.
            store.claims.skip_ahead.restart_scan()
            self._schedule.retry_drain(time.monotonic())

    # -- resting -----------------------------------------------------------------------------------------------------

    def _until_next(self) -> timedelta:
        """Return how long there is nothing to do."""
        now = time.monotonic()
        seconds = min(
            self._schedule.poll_at - now,
            self._own_locks.check_at - now,
            self.policy.rules_due_in(now),
            self._connection.ping_overdue_in(),
            self.claimed_jobs.overdue_in(now),
            self._gap.ends_at - now if self._gap.is_notified else float("inf"),
        )
        return timedelta(seconds=max(0.0, seconds))

    def _rest(self, duration: timedelta) -> None:
        if duration <= NO_DELAY or self.is_stopping:
            return
        # What arrives in a gap is read at its end: reading each notification would cost as much as the claims.
        if self._wakeup.rest(duration.total_seconds(), receives=not self._gap.is_notified):
            try:
                self._connection.receive()
            except GraphileWorkerError as error:
                self._try_later(error)  # the next step reconnects; a claim would fail with the same error

    # -- failures ----------------------------------------------------------------------------------------------------

    def _try_later(self, error: GraphileWorkerError) -> timedelta:
        if isinstance(error, ForbiddenFlagsError):
            self._events.emit(MaintenanceFailed(service=self.name, error=error))
            if self._single_run is not None:
                self._single_run.reject(error)
            self._schedule.poll_later(time.monotonic())
            return self._poll_interval
        delay = self._connection.fail(error)
        if self._own_locks.fail_claim(error):
            self._demand.size.note_failure()
        self._schedule.is_requested = True
        self._cancel_requested = True  # cancel requests may have been missed
        self._stopping.wait(delay.total_seconds())
        return NO_DELAY

    def teardown(self) -> None:
        """Return what has not started, and what a claim locked whose answer was lost; then hang up."""
        self.claimed_jobs.return_unstarted("the worker is stopping")
        self._connection.check_own_locks_at_the_end()
        self._connection.close()
        self._wakeup.close()
