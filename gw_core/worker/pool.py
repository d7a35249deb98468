"""A pool: its workers, the thread that claims for them and the thread that settles what they did."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec import structs

from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.history import Keep, keeps_of
from gw_core.domain.job.job import Job
from gw_core.domain.job.outcome import Outcome, Returned
from gw_core.domain.reports.health import PoolHealth
from gw_core.domain.rules.backoff import retry_delay
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobOverran, PoolInterrupting, PoolStarted, PoolStopped, PoolStopping
from gw_core.domain.rules.only import Only
from gw_core.domain.rules.plugins import Interceptors
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.execution.context import JobContext, TaskResources
from gw_core.execution.task import LoadedTask
from gw_core.postgres.connection.database import Database
from gw_core.postgres.road.job_store import JobStore
from gw_core.runtime.service import Service
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.cancellations import Cancellations
from gw_core.worker.claim_connection import ClaimConnection
from gw_core.worker.claim_demand import ClaimDemand
from gw_core.worker.claim_policy import ClaimPolicy, ForbiddenFlags
from gw_core.worker.claimed_jobs import ClaimedJobs
from gw_core.worker.claimer import Claimer
from gw_core.worker.grace_period import GracePeriod
from gw_core.worker.handoff import Handoff
from gw_core.worker.lease import Lease, steady_time
from gw_core.worker.ledger import Ledger
from gw_core.worker.listener import ListenThread, NotificationHealth
from gw_core.worker.own_locks import OwnLocks
from gw_core.worker.pauses import CurrentPauses
from gw_core.worker.run_slot import RunSlot
from gw_core.worker.settler import Settler
from gw_core.worker.single_run import EndOfRun, SingleRun
from gw_core.worker.thread import LEASE_IS_OVER, WorkerThread, intercepted
from gw_core.worker.timeouts import Timeouts
from gw_core.worker.wakeup import Wakeup

CLEANUP_TIMEOUT = timedelta(seconds=0.3)
"""How long tasks that are interrupted may take for what they do at their end."""

FINAL_SETTLE_TIMEOUT = timedelta(seconds=0.75)
"""How long after the grace period the last results may take to be written; a process ends within a second of it."""

MIN_SETTLE_TIMEOUT = timedelta(seconds=0.25)
"""How long they, and a claim under way, may take in any case.

After a forced stop, and on a machine that stood still, the second after the grace period is soon over.
"""


def new_pool_id() -> str:
    """Return a unique id from which an operator can locate the process: host, process id, random number."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "_", socket.gethostname())[:40]
    return f"gw-{host}-{os.getpid()}-{os.urandom(5).hex()}"


class WorkerPool:
    """Runs jobs of the registry's tasks until it is stopped; with `end_of_run`, until no job is left that it can run.

    `stop` is called by the thread that owns the pool.
    """

    def __init__(
        self,
        *,
        database: Database,
        registry: TaskRegistry,
        settings: WorkerSettings,
        events: Events,
        resources: TaskResources,
        interceptors: Interceptors,
        forbidden_flags: ForbiddenFlags = None,
        listen_database: Database | None = None,
        end_of_run: EndOfRun | None = None,
        on_migration: Callable[[], None],
    ) -> None:
        self.id = new_pool_id()
        self.ledger = Ledger()
        self._own_locks = OwnLocks(worker_id=self.id, ledger=self.ledger, events=events)
        self._settings = settings
        self._events = events
        self._interceptors = interceptors
        self._tasks: dict[str, LoadedTask] = {}
        self._names: tuple[str, ...] = ()
        self.keeps: Mapping[str, Keep] = {}
        """What history keeps of each task's jobs; empty: nothing."""
        self.grace_period = GracePeriod(settings)
        self._is_stopped = False
        self.use(registry)
        self._lease = Lease()
        self.on_new_session: Callable[[], None] = lambda: None
        """Requests a heartbeat over a new connection; called when the connection for claims was opened."""
        self._handoff = Handoff(on_low=lambda: self.claimer.wake())
        self.settler = Settler(
            worker_id=self.id,
            database=database,
            ledger=self.ledger,
            lease=self._lease,
            events=events,
            keeps=lambda: self.keeps,
            on_queues_freed=self.request_claim,
            on_settled=lambda: self.claimer.on_settled(),
            on_end=self._check_own_locks,
        )
        stopping = {"with_steps": self.settler.follow_ups.with_steps, "is_stopping": lambda: self._is_stopped}
        resources = structs.replace(resources, **stopping)
        self.timeouts = Timeouts(self.id, events)
        self._cancellations = Cancellations(self.id, self.ledger, self.timeouts, events)
        self._pauses = CurrentPauses(self.id, is_listening=lambda: self.notifications.is_listening)
        self._slots = [
            RunSlot(f"gw-worker-{number}", worker_id=self.id, report=self.settler.report, events=events)
            for number in range(1, settings.concurrency + 1)
        ]
        self.threads = [
            WorkerThread(
                slot,
                handoff=self._handoff,
                find_task=self._tasks.get,
                resources=resources,
                timeouts=self.timeouts,
                cancellations=self._cancellations,
                lease=self._lease,
                pauses=self._pauses,
                on_end=self.grace_period.note_end,
            )
            for slot in self._slots
        ]
        self.notifications = NotificationHealth(
            worker_id=self.id,
            events=events,
            on_jobs=lambda count: self.claimer.on_jobs(count),
            on_migration=on_migration,
            on_cancel_request=lambda: self.claimer.on_cancel_request(),
            on_claim_rules=lambda: self.claimer.on_claim_rules(),
        )
        self._listener = (
            ListenThread(listen_database, self.notifications)
            if settings.listen and listen_database is not None
            else None
        )
        self.claimer = self._new_claimer(database, forbidden_flags, end_of_run)
        if end_of_run is not None:
            events.on(JobOverran, lambda event: self.request_claim())

    def _new_claimer(self, database: Database, forbidden_flags: ForbiddenFlags, end_of_run: EndOfRun | None) -> Claimer:
        settings, events, wakeup = self._settings, self._events, Wakeup()
        policy = ClaimPolicy(
            worker_id=self.id,
            settings=settings,
            task_names=lambda: self._names,
            forbidden_flags=forbidden_flags,
            pauses=self._pauses,
            events=events,
        )
        claimed_jobs = ClaimedJobs(
            worker_id=self.id,
            settings=settings,
            handoff=self._handoff,
            ledger=self.ledger,
            settler=self.settler,
            slots=self._slots,
            events=events,
        )
        return Claimer(
            worker_id=self.id,
            poll_interval=settings.poll_interval,
            connection=ClaimConnection(
                worker_id=self.id,
                database=database,
                own_locks=self._own_locks,
                notifications=self.notifications if settings.listen and self._listener is None else None,
                wakeup=wakeup,
                events=events,
                lease=self._lease,
                on_new_session=lambda: self.on_new_session(),
            ),
            wakeup=wakeup,
            policy=policy,
            demand=ClaimDemand(
                settings=settings,
                handoff=self._handoff,
                ledger=self.ledger,
                settler=self.settler,
                slots=self._slots,
                lease=self._lease,
            ),
            claimed_jobs=claimed_jobs,
            events=events,
            on_cancel_requests=lambda requests: self._cancellations.receive(requests, self._slots),
            single_run=None
            if end_of_run is None
            else SingleRun(
                threads=settings.concurrency,
                policy=policy,
                claimed_jobs=claimed_jobs,
                timeouts=self.timeouts,
                keeps=lambda: self.keeps,
                end=end_of_run,
            ),
        )

    @property
    def task_names(self) -> Sequence[str]:
        """The tasks whose jobs the worker claims."""
        return self._names

    @property
    def services(self) -> Sequence[Service]:
        """The threads beside those that run jobs."""
        services = (self.settler, self.timeouts, self.claimer, self._listener)
        return [service for service in services if service is not None]

    @property
    def vitals(self) -> PoolHealth:
        """What the pool does now."""
        polled_at = self.claimer.polled_at
        running = sum(1 for slot in self._slots if slot.context is not None)
        return PoolHealth(
            threads=self._settings.concurrency,
            running=running,
            prefetched=max(0, len(self.ledger) - self.settler.reported - running),
            unsettled=self.settler.unsettled,
            since_poll=None if polled_at is None else timedelta(seconds=time.monotonic() - polled_at),
        )

    def use(self, registry: TaskRegistry) -> None:
        """Run the tasks of this registry from the next job on."""
        around = self._interceptors.around_run
        only, timeout = Only.parse(self._settings.only), self._settings.timeout
        chosen = [task for task in registry if only.runs(task.identifier)]
        if timeout is not None:
            chosen = [task if task.timeout is not None else structs.replace(task, timeout=timeout) for task in chosen]
        tasks = {task.identifier: intercepted(task, self._interceptors) if around else task for task in chosen}
        # Changed in place: the threads find their tasks by this dictionary's own `get`.
        self._tasks.update(tasks)
        for identifier in self._tasks.keys() - tasks.keys():
            del self._tasks[identifier]
        self._names = tuple(each for each in registry.identifiers if each in tasks)
        self.keeps = keeps_of({task.identifier: task.history for task in registry}, self._settings.history)

    def use_registry(self, registry: TaskRegistry) -> None:
        """Run the tasks of this registry from the next job on, and claim jobs of those that are new."""
        self.use(registry)
        self.request_claim()

    def stop_lost(self, jobs: Iterable[Job]) -> None:
        """Stop the tasks of jobs whose locks this pool lost: their results cannot be recorded."""
        lost = {id(job) for job in jobs}
        for context in self._running():
            if id(context.job) in lost:
                context.should_stop.force(StopReason.LOCK_LOST)

    def start(self) -> None:
        """Start all threads. Does not block."""
        self._events.emit(PoolStarted(worker_id=self.id, tasks=self._names, concurrency=self._settings.concurrency))
        for thread in self.threads:
            thread.start()
        self.settler.start()
        self.claimer.start()
        if self._listener is not None:
            self._listener.start()

    def request_claim(self) -> None:
        """Claim jobs now."""
        self.claimer.request_claim()

    def expect_ping(self, sent_at: float) -> None:
        """Record that this pool's listener should receive a ping that was sent no earlier than this."""
        self.notifications.expect_ping(sent_at)
        # The listening thread may rest for longer than the ping timeout.
        (self._listener or self.claimer).wake()

    def wait_for_heartbeat(self) -> None:
        """Claim nothing until a heartbeat has been written; call it before `start`."""
        self._lease.until = float("-inf")

    def claim_without_heartbeat(self) -> None:
        """Claim although no heartbeat was written since the connection for claims was opened: none can be."""
        self._lease.begin_session(float("-inf"))
        self.claimer.request_claim()

    def renew_lease(self, since: timedelta) -> None:
        """Record a heartbeat that was sent this long ago. After a long pause, return jobs claimed before it."""
        allowed_claims = self._lease.allows_claims
        if self._lease.is_over:
            self.claimer.claimed_jobs.return_unstarted(LEASE_IS_OVER)
        sent_at = steady_time() - since.total_seconds()
        self._lease.renew(sent_at + self._settings.lease.total_seconds(), sent_at=sent_at)
        if not allowed_claims:
            self.claimer.request_claim()

    def stop(self, reason: str) -> None:
        """Stop gracefully: stop claiming, return unstarted jobs, wait for running jobs, then interrupt them.

        Results wait for the database as long as the grace period lasts. Returns when all is settled, or soon after the
        grace period: `grace_period` knows what is left of the second after it. May be called twice.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._events.emit(PoolStopping(worker_id=self.id, reason=reason, running=len(self._running())))
        self.grace_period.begin()
        # The threads first, the claimer after: it may be in the middle of a statement that takes its time.
        self.claimer.request_stop()
        if self._listener is not None:
            self._listener.request_stop()
        self._handoff.close()
        self.claimer.claimed_jobs.return_unstarted("the worker is stopping")
        ended = self.grace_period.wait(self.threads, notify_tasks=self._notify_tasks)
        self.claimer.join_until(self.grace_period.time_left, at_least=MIN_SETTLE_TIMEOUT)
        if not ended:
            self._interrupt()
        self.settler.final_timeout = max(self.grace_period.time_left(FINAL_SETTLE_TIMEOUT), MIN_SETTLE_TIMEOUT)
        self.settler.request_stop()
        self.settler.join_until(lambda: self.grace_period.time_left(FINAL_SETTLE_TIMEOUT), at_least=MIN_SETTLE_TIMEOUT)
        self.timeouts.request_stop()
        if any(task.isolation for task in self._tasks.values()):
            from gw_core.execution.process_pool import PROCESSES  # loaded with the first of these tasks

            PROCESSES.end_idle()
        self._events.emit(
            PoolStopped(
                worker_id=self.id,
                unsettled=self.settler.unsettled,
                has_unknown_claim=self._own_locks.is_in_doubt or not self.claimer.has_ended,
            )
        )

    @property
    def may_hold_locks(self) -> bool:
        """Whether jobs or queues may still be locked in this worker's name, when it has stopped."""
        return self.settler.unsettled > 0 or self._own_locks.may_hold or not self.claimer.has_ended

    # -- inside ----------------------------------------------------------------------------------------------------

    def _running(self) -> list[JobContext]:
        return [context for slot in self._slots if (context := slot.context) is not None]

    def _check_own_locks(self, connect: Callable[[], JobStore]) -> None:
        """Return what is locked in this worker's name, at its end; while its claim is not answered, a sweep has to."""
        if self.claimer.has_ended and self._own_locks.may_hold:
            self._own_locks.check(connect())

    def _notify_tasks(self) -> None:
        for context in self._running():
            context.should_stop.set()

    def _interrupt(self) -> None:
        """Return the jobs that still run; what their threads do from now on is discarded."""
        interrupted: list[tuple[RunSlot, JobContext, float]] = []
        for slot in self._slots:
            started = slot.busy_since
            context = slot.interrupt()
            if context is None:
                continue
            interrupted.append((slot, context, steady_time() - started))
            context.should_stop.force()
        self._events.emit(PoolInterrupting(worker_id=self.id, jobs=[context.job for _, context, _ in interrupted]))
        for slot, context, seconds in interrupted:
            self.settler.report(self._outcome_of_interrupted(slot, context, seconds))
        # Coroutines and programs that were just interrupted get some time to clean up.
        ends_at = time.monotonic() + CLEANUP_TIMEOUT.total_seconds()
        for thread in self.threads:
            thread.join(max(0.0, ends_at - time.monotonic()))

    def _outcome_of_interrupted(self, slot: RunSlot, context: JobContext, seconds: float) -> Outcome:
        """Return the job; one whose timeout has passed, or that was cancelled, has failed."""
        job, delay = context.job, self._settings.interrupted_delay
        failure = self.timeouts.end(context)
        failure = self._cancellations.outcome_of(job, seconds) or failure
        if failure is None:
            return Returned(job, "interrupted: the worker stopped", delay, seconds)
        slot.emit_failure(failure)
        # Its thread runs on until the process ends, and the next attempt must not start before.
        return structs.replace(failure, delay=max(delay, retry_delay(job.attempts)))
