"""A scripted queue in memory: the console can be tried, tested and photographed without a database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec

from gw_core import CronItem, Job, JobSpec, JobState, cron_item
from gw_core.crontab import KnownCronItem
from gw_core.errors import InvalidInputError, StatementTimeoutError
from gw_core.operations import (
    AdvisoryLock,
    BackendSession,
    CheckStatus,
    CleanupTarget,
    Count,
    EndedAttempt,
    Finding,
    FoundJob,
    HistoryPage,
    HistoryState,
    JobPage,
    JobReport,
    JobVersion,
    LockedQueue,
    LockWait,
    LockWaits,
    NameKind,
    PageCursor,
    Pause,
    PauseTarget,
    PlannedAttempt,
    PrioritySummary,
    QueueReport,
    QueueSnapshot,
    QueueStatistics,
    Reason,
    ReasonCode,
    RunHistory,
    RunPoint,
    RunStatistics,
    SchemaInfo,
    ServerInfo,
    SweepReport,
    TableCounters,
    TaskActivity,
    WorkerInfo,
    retry_delay,
)
from gw_core.selection import Selection
from gw_tui.actions import actions
from gw_tui.actions.actions import Action, Result, SkippedItem
from gw_tui.data.source import PAGE, Crontabs
from gw_tui.rules.queue_info import QueueInfo

START: Final = datetime(2026, 3, 14, 14, 52, 7, tzinfo=UTC)
"""When the fixed clock of tests and pictures stands still."""

SECOND: Final = timedelta(seconds=1)
MAX_STEPS: Final = 120
STALE_AFTER: Final = timedelta(minutes=5)
WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.BACKOFF)
ADVISORY: Final = "gw sweep"

TASKS: Final = ("send_email", "resize_image", "sync_customer", "charge_card", "reports/weekly", "webhook")
ERRORS: Final = {
    "send_email": "ConnectionError: [mx{n}.example.net] refused\n  at send (mailer.py:41)\n  at run (send_email.py:12)",
    "resize_image": "OSError: image file is truncated ({n} bytes not read)\n  at load (resize_image.py:31)",
    "sync_customer": "ValueError: customer {n} has no address\n  at sync (crm.py:57)",
    "charge_card": "PaymentError: insufficient funds (order {n})\n  at charge (payments.py:203)",
    "reports/weekly": "MemoryError: report {n} is too large\n  at render (reports/weekly.py:77)",
    "webhook": "TimeoutError: no answer from api.example.com within 30 s\n  at call (webhook.py:88)",
}
ATTEMPTS: Final = 5
CRONTAB: Final = (
    ("*/5 * * * *", "sync_customer", "sync_customer", timedelta()),
    ("0 8 * * 1", "reports/weekly", "weekly_report", timedelta(hours=12)),
    ("30 2 * * *", "cleanup", "nightly_cleanup", timedelta(days=1)),
)


class FixedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the current time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def real_clock() -> datetime:
    """Return the time of this machine's clock."""
    return datetime.now(UTC)


# -- the queue -------------------------------------------------------------------------------------------------------


class DemoQueue:
    """Jobs, workers and queues that live on from second to second, the same way each time. Not for several threads."""

    def __init__(self, now: datetime, *, seed: int = 7, jobs: int = 400) -> None:
        self.seed = seed
        self.started_at = now - timedelta(days=41)
        self.now = now
        self.ticks = 0
        self.jobs: dict[int, Job] = {}
        self.next_id = 99_000
        self.inserted, self.updated, self.deleted = 9_912_345, 21_034_567, 9_911_020
        self.workers = _workers(now)
        self.held: dict[str, tuple[str, datetime]] = {}
        self.pauses: dict[str, Pause] = {}
        """By target."""
        self.known = _known(now)
        self._begin(Random(seed), jobs)

    # -- time ------------------------------------------------------------------------------------------------------

    def live_until(self, now: datetime) -> None:
        """Simulate the queue until then, second by second."""
        for _ in range(min(MAX_STEPS, int((now - self.now) / SECOND))):
            self.ticks += 1
            self.now += SECOND
            self._step(Random(f"{self.seed}/{self.ticks}"))
        self.now = max(self.now, now)

    def _step(self, chance: Random) -> None:
        for _ in range(chance.randint(4, 9) if self.ticks % 60 < 40 else chance.randint(0, 3)):
            self._add(chance, self.now)
        for job in [each for each in self.jobs.values() if each.locked_by in self.alive]:
            if chance.random() < 0.7:
                self._settle(job, chance)
        for worker in self.alive:
            self._claim(worker, chance.randint(1, 3))
        self.workers = [self._beaten(worker) for worker in self.workers]

    def _beaten(self, worker: WorkerInfo) -> WorkerInfo:
        if worker.id not in self.alive or self.ticks % 10:
            return worker
        return replace(worker, last_heartbeat_at=self.now)

    @property
    def alive(self) -> list[str]:
        """The workers that send heartbeats."""
        return [
            worker.id
            for worker in self.workers
            if worker.last_heartbeat_at is not None and self.now - worker.last_heartbeat_at < STALE_AFTER
        ]

    # -- jobs ------------------------------------------------------------------------------------------------------

    def states(self) -> Iterator[FoundJob]:
        """Yield every job with its state."""
        return (FoundJob(job, self.state(job)) for job in list(self.jobs.values()))

    def state(self, job: Job) -> JobState:
        """Return a job's state."""
        if job.locked_by is not None:
            return JobState.RUNNING
        if job.attempts >= job.max_attempts:
            return JobState.FAILED
        if job.run_at <= self.now:
            return JobState.READY
        return JobState.BACKOFF if job.attempts else JobState.SCHEDULED

    def change(self, job: Job, **values: Any) -> Job:
        """Put a changed job in the place of the old one."""
        self.jobs[job.id] = changed = msgspec.structs.replace(job, **values)
        self.updated += 1
        return changed

    def remove(self, job: Job) -> None:
        """Take a job away."""
        del self.jobs[job.id]
        self.deleted += 1
        if job.queue_name is not None and self.held.get(job.queue_name, ("",))[0] == job.locked_by:
            self.held.pop(job.queue_name, None)

    def insert(self, **values: Any) -> Job:
        """Add a job."""
        self.next_id += 7
        now = self.now.timestamp()
        given = {
            "payload": "{}",
            "attempts": 0,
            "max_attempts": ATTEMPTS,
            "priority": 0,
            "run_at_epoch": now,
            "created_at_epoch": now,
            "updated_at_epoch": now,
            "revision": 0,
        }
        job = Job(**{**given, **values, "id": self.next_id})
        self.jobs[job.id] = job
        self.inserted += 1
        return job

    def _add(self, chance: Random, now: datetime, *, later: bool = False) -> Job:
        task = chance.choice(TASKS)
        number = chance.randint(1, 999)
        delay = chance.randint(60, 86_400) if later else 0
        return self.insert(
            task_identifier=task,
            payload=_payload(task, number),
            priority=chance.choice((-10, 0, 0, 0, 0, 5, 10)),
            run_at_epoch=(now + timedelta(seconds=delay)).timestamp(),
            queue_name=f"customer:{number % 9}" if task == "sync_customer" else None,
            key=f"welcome:{number}" if task == "send_email" and number % 5 == 0 else None,
            flags='{"slow":true}' if task == "reports/weekly" else None,
        )

    def _claim(self, worker: str, count: int) -> None:
        ready = [each.job for each in self.states() if each.state is JobState.READY]
        free = (
            job
            for job in sorted(ready, key=_turn)
            if (job.queue_name is None or job.queue_name not in self.held)
            and self.pauses.keys().isdisjoint((f"task:{job.task_identifier}", f"queue:{job.queue_name}"))
        )
        for job, _ in zip(free, range(count), strict=False):
            if job.queue_name is not None:
                self.held[job.queue_name] = (worker, self.now)
            self.change(job, attempts=job.attempts + 1, locked_by=worker, locked_at_epoch=self.now.timestamp())

    def _settle(self, job: Job, chance: Random) -> None:
        if chance.random() < 0.93:
            self.remove(job)
            return
        if job.queue_name is not None:
            self.held.pop(job.queue_name, None)
        self._fail(job, chance)

    def _fail(self, job: Job, chance: Random) -> Job:
        again = self.now + retry_delay(max(1, job.attempts))
        error = ERRORS[job.task_identifier].format(n=chance.randint(1, 9))
        return self.change(job, locked_by=None, locked_at_epoch=None, run_at_epoch=again.timestamp(), last_error=error)

    # -- how it begins ---------------------------------------------------------------------------------------------

    def _begin(self, chance: Random, count: int) -> None:
        for number in range(count):
            job = self._add(chance, self.now, later=number % 3 == 0)
            since = self.now - timedelta(seconds=chance.randint(1, 2_400))
            job = self.change(
                job, created_at_epoch=(since - 600 * SECOND).timestamp(), updated_at_epoch=since.timestamp()
            )
            if number % 3:
                job = self.change(job, run_at_epoch=since.timestamp())
            if number % 13 == 0:
                tries = ATTEMPTS if number % 26 == 0 else chance.randint(1, ATTEMPTS - 1)
                job = self._fail(self.change(job, attempts=tries), chance)
                if tries == ATTEMPTS:
                    self.change(job, run_at_epoch=(since + retry_delay(tries)).timestamp())
        self._dead_worker()
        for worker in self.alive:
            self._claim(worker, 4)
        self.updated = 21_034_567
        self.inserted = 9_912_345

    def _dead_worker(self) -> None:
        dead = next(worker for worker in self.workers if worker.id not in self.alive and worker.has_heartbeat)
        node = next(worker for worker in self.workers if not worker.has_heartbeat)
        since = self.now - timedelta(minutes=9, seconds=14)
        ready = sorted((each.job for each in self.states() if each.state is JobState.READY), key=_turn)
        for job in ready[:3]:
            self.change(job, attempts=1, locked_by=dead.id, locked_at_epoch=since.timestamp(), queue_name="imports")
        self.held["imports"] = (dead.id, since)
        for job in ready[3:7]:
            self.change(job, queue_name="imports")
        recent = self.now - timedelta(seconds=41)
        self.change(ready[8], attempts=1, locked_by=node.id, locked_at_epoch=recent.timestamp())


def _workers(now: datetime) -> list[WorkerInfo]:
    hosts = (("app-1", 4711, 3), ("app-1", 4712, 8), ("app-2", 1203, 5), ("app-3", 977, 544))
    beating = [
        WorkerInfo(
            id=f"gw-{host}-{pid}-{pid * 7919 % 0xFFFFFF:06x}",
            host=host,
            pid=pid,
            version="0.1.0",
            started_at=now - timedelta(hours=6, minutes=pid % 60),
            last_heartbeat_at=now - inactive_for * SECOND,
            heartbeat_age=inactive_for * SECOND,
        )
        for host, pid, inactive_for in hosts
    ]
    return [*beating, WorkerInfo(id="worker-4f1d9c2ab8")]


def _known(now: datetime) -> list[KnownCronItem]:
    since = now - timedelta(days=30)
    return [
        KnownCronItem("sync_customer", since, now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)),
        KnownCronItem("weekly_report", since, now - timedelta(days=5, hours=6)),
        KnownCronItem("nightly_cleanup", since, now - timedelta(days=1, hours=12)),
        KnownCronItem("retired_task", since, None),
    ]


def _payload(task: str, number: int) -> str:
    match task:
        case "send_email":
            return (
                f'{{"to": "user{number}@example.com", "template": "welcome", "attempt_id": 90071992547409931{number}, '
                f'"token": "s3cr3t-{number}"}}'
            )
        case "charge_card":
            return f'{{"order": {number}, "amount": 49.90, "currency": "EUR", "card": "4111111111111111"}}'
        case "webhook":
            return f'[{{"url": "https://example.com/hook/{number}"}}, {{"url": "https://example.org/hook"}}]'
        case _:
            return f'{{"id": {number}, "options": {{"deep": true, "tags": ["a", "b"]}}}}'


def _turn(job: Job) -> tuple[int, float, int]:
    return job.priority, job.run_at_epoch, job.id


# -- the source ------------------------------------------------------------------------------------------------------


class DemoEar:
    """Receives the announcements of the demo queue."""

    def __init__(self, source: DemoSource) -> None:
        self._source = source
        self._closed = threading.Event()

    def wait(self, timeout: timedelta) -> int:
        """Wait until jobs are announced."""
        with self._source.bell:
            self._source.bell.wait_for(
                lambda: self._closed.is_set() or self._source.failure or self._source.announced,
                timeout.total_seconds(),
            )
            if self._source.failure is not None and not self._closed.is_set():
                raise self._source.failure
            received, self._source.announced = self._source.announced, 0
            return received

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        with self._source.bell:
            self._source.bell.notify_all()


class DemoSource:
    """Answers like a queue. Tests set `failure` to have every call raise it, and `delay` to have every call last."""

    def __init__(
        self,
        clock: Callable[[], datetime] | None = None,
        *,
        seed: int = 7,
        jobs: int = 400,
        read_only: bool = False,
    ) -> None:
        self.clock = clock or FixedClock()
        self.queue = DemoQueue(self.clock(), seed=seed, jobs=jobs)
        self.failure: Exception | None = None
        self.delay = 0.0
        self.snapshots = 0
        self.actions: list[Action] = []
        self.announced = 0
        self.closed = False
        self.is_busy = False
        self.bell = threading.Condition()  # guards announced and failure where the ear waits for them
        self._read_only = read_only
        self._lock = threading.Lock()  # guards the queue: the reader and the actor are two threads
        self._cancelled = threading.Event()

    # -- for tests -------------------------------------------------------------------------------------------------

    def go_down(self, error: Exception) -> None:
        """Let every call raise this from now on, and break what listens."""
        self.failure = error
        with self.bell:
            self.bell.notify_all()

    def come_back(self) -> None:
        """Answer again."""
        self.failure = None

    def announce(self, jobs: int) -> None:
        """Announce new jobs to the listener."""
        with self.bell:
            self.announced += jobs
            self.bell.notify_all()

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def info(self) -> QueueInfo:
        """Which queue this is."""
        return QueueInfo(where="demo@in-memory/shop", schema="graphile_worker", is_read_only=self._read_only)

    def snapshot(self) -> QueueSnapshot:
        """Return what every tick shows."""
        with self._queue() as queue:
            self.snapshots += 1
            counts = Counter(each.state for each in queue.states())
            return QueueSnapshot(
                at=self.clock(),
                took=timedelta(milliseconds=3),
                server=_server(queue, read_only=self._read_only),
                schema=_SCHEMA,
                counters=TableCounters(
                    inserted=queue.inserted,
                    updated=queue.updated,
                    deleted=queue.deleted,
                    live_rows=len(queue.jobs),
                    dead_rows=queue.deleted % 977,
                    last_vacuum_at=queue.now - timedelta(minutes=3),
                ),
                total=Count(len(queue.jobs)),
                waiting=Count(sum(counts[state] for state in WAITING)),
                running=Count(counts[JobState.RUNNING]),
                failed=Count(counts[JobState.FAILED]),
                table_bytes=len(queue.jobs) * 412 + 3_000_000,
                priorities=tuple(_priorities(queue)),
                workers=tuple(self._workers(queue)),
                held_queues=tuple(
                    LockedQueue(name=name, held_by=who, held_at=at) for name, (who, at) in queue.held.items()
                ),
                crontabs=tuple(queue.known),
            )

    def count_locks(self) -> timedelta | None:
        """Do nothing: a snapshot of the demo queue counts everything."""
        return timedelta()

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
        with self._queue() as queue:
            found = [each for each in queue.states() if wanted.matches(each, queue.now)]
            if after is not None and after.order == "newest":
                return _newest(found, int(after.place[0]), limit)
            by_turn = wanted.states <= set(WAITING)
            key: Callable[[FoundJob], tuple[float, ...]] = (
                (lambda each: _turn(each.job)) if by_turn else (lambda each: (each.job.id,))
            )
            rest = sorted((each for each in found if after is None or key(each) > _place(after)), key=key)
            jobs = tuple(rest[:limit])
            mark = None if len(rest) <= limit else _mark(jobs[-1].job, by_turn=by_turn)
            shown = jobs if with_payload else tuple(FoundJob(_bare(each.job), each.state) for each in jobs)
            order = "turn" if by_turn else "id"
            return JobPage(jobs=shown, after=mark, scanned=len(queue.jobs), is_full=len(rest) >= limit, order=order)

    def job(self, job_id: int, *, with_payload: bool = True) -> JobReport | None:
        """Return everything about one job, its payload only when wanted; None when it is gone."""
        with self._queue() as queue:
            job = queue.jobs.get(job_id)
            if job is None:
                return None
            job = job if with_payload else _bare(job)
            state = queue.state(job)
            failed = job.run_at - retry_delay(job.attempts) if job.last_error and job.attempts else None
            return JobReport(
                job=job,
                state=state,
                at=queue.now,
                reasons=(_reason(job, state, queue.now),),
                attempts=tuple(_planned(job, state, queue.now)),
                failed_at=failed,
            )

    def statistics(self) -> QueueStatistics:
        """Return how many jobs are in each state."""
        with self._queue() as queue:
            return _statistics(queue)

    def history(self, which: str = "", *, after: str | None = None) -> HistoryPage:
        """Return ended attempts: those of a task, of a state, or of a job."""
        with self._queue() as queue:
            return HistoryPage(attempts=tuple(_ended(queue.now, which))[:PAGE])

    def run_history(self, back: timedelta, step: timedelta, task: str | None = None) -> RunHistory:
        """Return what ended in each step: an hour with a gap, and errors that began a while ago."""
        with self._queue() as queue:
            return _runs(queue, back, step, task)

    def queues(self, *, after: str = "", limit: int = PAGE, only_held: bool = False) -> Sequence[QueueReport]:
        """Return named queues in order of their names."""
        with self._queue() as queue:
            names = sorted({job.queue_name for job in queue.jobs.values() if job.queue_name} | set(queue.held))
            wanted = [name for name in names if name > after and (not only_held or name in queue.held)]
            return [_queue(queue, name) for name in wanted[:limit]]

    def workers(self) -> Sequence[WorkerInfo]:
        """Return every worker known."""
        with self._queue() as queue:
            return self._workers(queue)

    def crontabs(self) -> Crontabs:
        """Return the recurring tasks."""
        with self._queue() as queue:
            return Crontabs(known=tuple(queue.known), items=_items())

    def findings(self) -> Sequence[Finding]:
        """Return the doctor's findings."""
        with self._queue() as queue:
            return _findings(self._workers(queue))

    def blockages(self) -> LockWaits:
        """Return who waits for whom."""
        with self._queue():
            waiting = _session(3021, "gw-worker", "update _private_jobs set …", minutes=1)
            blocker = _session(2877, "psql", "begin; lock table graphile_worker._private_jobs", minutes=14)
            sweeper = _session(3001, "gw-worker", None, minutes=0)
            return LockWaits(
                blocked=(LockWait(session=waiting, waits_for="RowExclusiveLock on _private_jobs", blocked_by=(2877,)),),
                blockers=(blocker,),
                advisory=(AdvisoryLock(name=ADVISORY, granted=True, session=sweeper),),
                oldest_transactions=(blocker,),
            )

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest."""
        with self._queue() as queue:
            found: Iterable[str]
            match kind:
                case NameKind.TASKS:
                    found = TASKS
                case NameKind.QUEUES:
                    found = {job.queue_name for job in queue.jobs.values() if job.queue_name}
                case NameKind.WORKERS:
                    found = {worker.id for worker in queue.workers}
                case _:
                    found = {job.key for job in queue.jobs.values() if job.key}
            return sorted(name for name in found if name.startswith(prefix))

    def listen(self) -> DemoEar:
        """Subscribe to notifications of new jobs."""
        if self.failure is not None:
            raise self.failure
        return DemoEar(self)

    def cancel(self) -> None:
        """Cancel the query in progress."""
        self._cancelled.set()

    def close(self) -> None:
        """Let go of everything."""
        self.closed = True

    # -- acting ----------------------------------------------------------------------------------------------------

    def run(self, action: Action) -> Result:
        """Have something done, and say what became of each job."""
        with self._queue() as queue:
            self.actions.append(action)
            match action:
                case actions.Retry() | actions.Reschedule() | actions.Fail() | actions.Complete():
                    return _each(queue, action.jobs, _on_job(queue, action))
                case actions.Cancel():
                    return _cancelled(queue, action.ids)
                case actions.Restore():
                    return Result(done=tuple(str(queue.insert(**_again(job)).id) for job in action.jobs))
                case actions.Add():
                    return Result(done=(str(queue.insert(**_specified(action.spec, action.payload)).id),))
                case actions.Unlock():
                    return Result(done=tuple(_freed(queue, action.workers)))
                case actions.Pause():
                    queue.pauses[action.target] = Pause(
                        target=PauseTarget.parse(action.target),
                        since=queue.now,
                        until=None,
                        by="you",
                        reason=action.reason,
                    )
                    return Result(done=(action.target,))
                case actions.Resume():
                    queue.pauses.pop(action.target, None)
                    return Result(done=(action.target,))
                case actions.Sweep():
                    return self._sweep(queue, dry_run=action.dry_run)
                case actions.Cleanup():
                    return Result(count=len(list(_cleared(queue, action.target, dry_run=action.dry_run))))
                case actions.CleanupSelected():
                    return _cleaned(queue, action)
                case actions.FindByKey():
                    found = [each for each in queue.states() if each.job.key == action.key]
                    return Result(found=found[0] if found else None)
                case actions.RemoveByKey():
                    return _removed_by_key(queue, action)
                case actions.Forget():
                    queue.known = [each for each in queue.known if each.identifier != action.identifier]
                    return Result(done=(action.identifier,))
                case actions.RunDoctor():
                    return Result(findings=_findings(self._workers(queue)))
                case actions.CountExactly():
                    if action.queue is None:
                        return Result(statistics=_statistics(queue))
                    counted = _queue(queue, action.queue)
                    return Result(queue=(counted.waiting, counted.due))
                case _:
                    raise TypeError(action)

    def _sweep(self, queue: DemoQueue, *, dry_run: bool) -> Result:
        dead = tuple(worker for worker in self._workers(queue) if worker.is_stale)
        held = sum(worker.jobs for worker in dead)
        freed = sum(worker.queues for worker in dead)
        if not dry_run:
            list(_freed(queue, [worker.id for worker in dead]))
            queue.workers = [worker for worker in queue.workers if worker.id not in {each.id for each in dead}]
        report = SweepReport(dry_run=dry_run, workers=dead, jobs=held, queues=freed)
        return Result(done=tuple(worker.id for worker in dead), sweep=report)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _queue(self) -> _Borrowed:
        self._last()
        if self.failure is not None:
            raise self.failure
        return _Borrowed(self._lock, self.queue, self.clock)

    def _last(self) -> None:
        """Wait for the configured delay, or until the query is cancelled."""
        if not self.delay:
            return
        self._cancelled.clear()
        self.is_busy = True
        cancelled = self._cancelled.wait(self.delay)
        self.is_busy = False
        if cancelled:
            raise StatementTimeoutError("the database could not finish the statement now: cancelled")

    def _workers(self, queue: DemoQueue) -> list[WorkerInfo]:
        jobs = Counter(job.locked_by for job in queue.jobs.values())
        queues = Counter(who for who, _ in queue.held.values())
        found = []
        for worker in queue.workers:
            age = None if worker.last_heartbeat_at is None else max(timedelta(), queue.now - worker.last_heartbeat_at)
            locks = [job.locked_at for job in queue.jobs.values() if job.locked_by == worker.id and job.locked_at]
            found.append(
                replace(
                    worker,
                    heartbeat_age=age,
                    lock_age=max(timedelta(), queue.now - max(locks)) if locks else None,
                    jobs=jobs[worker.id],
                    queues=queues[worker.id],
                    is_stale=age is not None and age >= STALE_AFTER,
                )
            )
        return [worker for worker in found if worker.has_heartbeat or worker.jobs]


class _Borrowed:
    """The queue, simulated up to now, for one thread at a time."""

    def __init__(self, lock: threading.Lock, queue: DemoQueue, clock: Callable[[], datetime]) -> None:
        self._lock, self._queue, self._clock = lock, queue, clock

    def __enter__(self) -> DemoQueue:
        self._lock.acquire()
        self._queue.live_until(self._clock())
        return self._queue

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_SCHEMA: Final = SchemaInfo(
    name="graphile_worker",
    revision=20,
    rows_hidden=False,
    has_heartbeats=True,
    has_locked_index=True,
    has_failed_index=True,
    has_queue_index=True,
)


def _server(queue: DemoQueue, *, read_only: bool) -> ServerInfo:
    return ServerInfo(
        version="17.2",
        database="shop",
        user="app",
        host="demo",
        port=5432,
        started_at=queue.started_at,
        in_recovery=False,
        read_only=read_only,
    )


def _priorities(queue: DemoQueue) -> Iterator[PrioritySummary]:
    found = [each for each in queue.states() if each.state in WAITING]
    for priority in sorted({each.job.priority for each in found}):
        jobs = [each for each in found if each.job.priority == priority]
        ready = sorted((each.job for each in jobs if each.state is JobState.READY), key=_turn)
        later = [each.job.run_at for each in jobs if each.state is not JobState.READY]
        yield PrioritySummary(
            priority=priority,
            ready=Count(len(ready)),
            oldest_id=ready[0].id if ready else None,
            oldest_task=ready[0].task_identifier if ready else None,
            oldest_due_at=ready[0].run_at if ready else None,
            next_due_at=min(later, default=None),
        )


def _held(queue: DemoQueue) -> Iterator[LockedQueue]:
    return (LockedQueue(name=name, held_by=who, held_at=at) for name, (who, at) in queue.held.items())


def _ended(now: datetime, which: str) -> Iterator[EndedAttempt]:
    """Yield attempts that ended lately and meet each condition: `task:NAME`, `state:NAME` or `id:N`."""
    chance, wanted = Random(7), set(which.split())
    for number in range(60):
        task, state = chance.choice(TASKS), chance.choice([HistoryState.COMPLETED] * 8 + list(HistoryState)[:3])
        finished = now - timedelta(seconds=9 * number + 4)
        has_failed = state is not HistoryState.COMPLETED
        job_id = 5_000 - number
        if wanted <= {f"task:{task}", f"state:{state}", f"id:{job_id}"}:
            yield EndedAttempt(
                job_id=job_id,
                attempt=25 if state is HistoryState.FAILED else 1,
                max_attempts=25,
                task=task,
                queue_name=None,
                key=None,
                state=state,
                final=not has_failed,
                error=ERRORS.get(task, "RuntimeError: no answer").format(n=number) if has_failed else None,
                worker_id="gw-web-1-4711-0f3a91c2de",
                created_at=finished - timedelta(minutes=2),
                started_at=finished - timedelta(milliseconds=chance.randrange(20, 9_000)),
                finished_at=finished,
                expires_at=finished + timedelta(days=7),
            )


def _statistics(queue: DemoQueue) -> QueueStatistics:
    found = list(queue.states())
    counts = Counter(each.state for each in found)
    by_task = Counter((each.job.task_identifier, each.state) for each in found)
    due = [each.job.run_at for each in found if each.state is JobState.READY]
    later = [each.job.run_at for each in found if each.state in (JobState.SCHEDULED, JobState.BACKOFF)]
    return QueueStatistics(
        at=queue.now,
        total=Count(len(found)),
        states={state: Count(counts[state]) for state in JobState},
        first_due_at=min(due, default=None),
        next_due_at=min(later, default=None),
        queues=len({each.job.queue_name for each in found if each.job.queue_name}),
        held_queues=len(queue.held),
        table_bytes=len(found) * 412 + 3_000_000,
        tasks={task: {state: Count(by_task[task, state]) for state in JobState} for task in sorted(TASKS)},
        activity={
            task: _activity([each for each in found if each.job.task_identifier == task], queue.now)
            for task in sorted(TASKS)
        },
        pauses=tuple(queue.pauses.values()),
    )


def _activity(found: Sequence[FoundJob], now: datetime) -> TaskActivity:
    failing = [each.job for each in found if each.state in (JobState.BACKOFF, JobState.FAILED)]
    return TaskActivity(
        failed_lately=Count(sum(now - job.updated_at < timedelta(minutes=10) for job in failing)),
        failing_since=min((job.created_at for job in failing), default=None),
        due_since=min((each.job.run_at for each in found if each.state is JobState.READY), default=None),
        running_since=min((each.job.started_at for each in found if each.job.started_at is not None), default=None),
    )


def _runs(queue: DemoQueue, back: timedelta, step: timedelta, task: str | None) -> RunHistory:
    seconds = int(step.total_seconds())
    last = int(queue.now.timestamp()) // seconds
    numbers = range(last - int(back / step), last)
    gap = range(last - 42, last - 38)
    points = [
        RunPoint(
            at=datetime.fromtimestamp(number * seconds, UTC),
            runs=_run(Random(f"{queue.seed}/{number}/{task}"), seconds, 1 if task else len(TASKS), last - number),
        )
        for number in numbers
        if number not in gap
    ]
    return RunHistory(at=queue.now, step=step, points=points)


def _run(chance: Random, seconds: int, tasks: int, ago: int) -> RunStatistics:
    completed = int(seconds * tasks * chance.uniform(0.5, 0.9))
    failed = int(seconds * tasks * chance.uniform(0.05, 0.1)) if ago < 17 else chance.randint(0, tasks)
    slow = completed // 8 if ago < 17 else completed // 40
    durations = (0,) * 5 + (completed - slow, failed, 0, slow) + (0,) * 8
    return RunStatistics(
        completed=completed,
        failed=failed,
        run_seconds=completed * 0.04 + slow * 0.4,
        durations=durations,
        waited=completed,
        wait_seconds=completed * chance.uniform(0.5, 2.0),
    )


def _queue(queue: DemoQueue, name: str) -> QueueReport:
    jobs = sorted((job for job in queue.jobs.values() if job.queue_name == name and job.locked_by is None), key=_turn)
    waiting = [job for job in jobs if queue.state(job) in WAITING]
    due = [job for job in waiting if queue.state(job) is JobState.READY]
    head = next(iter(due or waiting), None)
    holder, since = queue.held.get(name, (None, None))
    return QueueReport(
        name=name,
        held_by=holder,
        held_at=since,
        waiting=Count(len(waiting)),
        due=Count(len(due)),
        head_id=None if head is None else head.id,
        head_task=None if head is None else head.task_identifier,
        head_run_at=None if head is None else head.run_at,
        pause=queue.pauses.get(f"queue:{name}"),
    )


def _items() -> tuple[CronItem, ...]:
    return tuple(cron_item(when, task, id=name, fill=fill) for when, task, name, fill in CRONTAB)


def _findings(workers: Iterable[WorkerInfo]) -> Sequence[Finding]:
    dead = [worker.id for worker in workers if worker.is_stale]
    locks = Finding("locks", CheckStatus.OK, "no job is locked by a dead worker")
    if dead:
        words = f"{dead[0]} has locked 3 jobs and 1 queue, and its last heartbeat was 9m4s ago"
        locks = Finding("locks", CheckStatus.ERROR, words, f"gw unlock {dead[0]}")
    return (
        Finding("server", CheckStatus.OK, "PostgreSQL 17.2, as role app"),
        Finding("schema", CheckStatus.OK, "revision 20"),
        Finding("row security", CheckStatus.OK, "hides nothing from this role"),
        Finding("indexes", CheckStatus.OK, "all there and valid"),
        locks,
        Finding("vacuum", CheckStatus.WARNING, "_private_jobs was vacuumed 3m ago"),
    )


def _session(pid: int, application: str, statement: str | None, *, minutes: int) -> BackendSession:
    age = timedelta(minutes=minutes, seconds=12)
    return BackendSession(
        pid=pid,
        user="app",
        application=application,
        state="active" if minutes < 10 else "idle in transaction",
        in_state_for=age,
        transaction_age=age,
        statement=statement,
    )


def _bare(job: Job) -> Job:
    return msgspec.structs.replace(job, payload="")


def _mark(job: Job, *, by_turn: bool) -> PageCursor:
    if not by_turn:
        return PageCursor.after_id(job.id)
    return PageCursor("turn", (str(job.priority), repr(job.run_at_epoch), f"{job.id},0"))


def _newest(found: Sequence[FoundJob], before: int, limit: int) -> JobPage:
    """Return a page of the newest jobs before an id."""
    rest = sorted((each for each in found if each.job.id < before), key=lambda each: -each.job.id)
    jobs = tuple(FoundJob(_bare(each.job), each.state) for each in rest[:limit])
    mark = None if len(rest) <= limit else PageCursor.newest(jobs[-1].job.id)
    return JobPage(jobs=jobs, after=mark, scanned=len(found), is_full=len(rest) >= limit, order="newest")


def _place(mark: PageCursor) -> tuple[float, ...]:
    if mark.order == "id":
        return (int(mark.place[0]),)
    priority, run_at, place = mark.place
    return int(priority), float(run_at), int(place.strip("()").split(",")[0])


def _reason(job: Job, state: JobState, now: datetime) -> Reason:
    match state:
        case JobState.RUNNING:
            return Reason(ReasonCode.RUNNING, f"{job.locked_by} runs attempt {job.attempts}")
        case JobState.FAILED:
            return Reason(ReasonCode.FAILED, f"it failed permanently: all {job.max_attempts} attempts are used up")
        case JobState.READY:
            return Reason(ReasonCode.CLAIMABLE, "nothing blocks it: a worker can claim it at any time")
        case JobState.BACKOFF:
            return Reason(ReasonCode.BACKOFF, f"attempt {job.attempts} failed, the next is due later")
        case JobState.SCHEDULED:
            return Reason(ReasonCode.SCHEDULED, f"it is scheduled for later: in {round((job.run_at - now) / SECOND)}s")


def _planned(job: Job, state: JobState, now: datetime) -> Iterator[PlannedAttempt]:
    if state is JobState.FAILED:
        return
    at, inferred = max(job.run_at, now), job.run_at <= now
    for number in range(job.attempts + 1, job.max_attempts + 1):
        yield PlannedAttempt(number, at, inferred)
        at, inferred = at + retry_delay(number), True


# -- what actions do -------------------------------------------------------------------------------------------------

_JobAct = actions.Retry | actions.Reschedule | actions.Fail | actions.Complete


def _on_job(queue: DemoQueue, action: _JobAct) -> Callable[[Job], str | None]:
    now = queue.now.timestamp()

    def done(job: Job) -> str | None:
        match action:
            case actions.Retry():
                if not job.attempts:
                    return "not failed; t reschedules it"
                tries = 0 if job.attempts >= job.max_attempts else job.attempts
                queue.change(job, run_at_epoch=now, attempts=tries)
            case actions.Reschedule():
                at = (
                    action.run_at if isinstance(action.run_at, datetime) else queue.now + (action.run_at or timedelta())
                )
                wanted = {"priority": action.priority, "attempts": action.attempts, "max_attempts": action.max_attempts}
                given = {name: value for name, value in wanted.items() if value is not None}
                when = {} if action.run_at is None else {"run_at_epoch": at.timestamp()}
                queue.change(job, **given, **when)
            case actions.Fail():
                queue.change(job, attempts=job.max_attempts, last_error=action.reason or "Manually marked as failed")
            case actions.Complete():
                queue.remove(job)
        return None

    return done


def _each(queue: DemoQueue, wanted: Sequence[JobVersion], do: Callable[[Job], str | None]) -> Result:
    done: list[str] = []
    skipped: list[SkippedItem] = []
    before: list[Job] = []
    for seen in wanted:
        job = queue.jobs.get(seen.id)
        if job is None:
            skipped.append(SkippedItem(str(seen.id), "gone"))
        elif job.locked_by is not None:
            skipped.append(SkippedItem(str(seen.id), f"locked by {job.locked_by}"))
        elif (why := seen.changes(job) or do(job)) is not None:
            skipped.append(SkippedItem(str(seen.id), why))
        else:
            done.append(str(seen.id))
            before.append(job)
    removed = tuple(job for job in before if job.id not in queue.jobs)
    return Result(done=tuple(done), skipped=tuple(skipped), removed=removed)


def _cancelled(queue: DemoQueue, ids: Sequence[int]) -> Result:
    """Fail running jobs, as their workers would."""
    running = [job for each in ids if (job := queue.jobs.get(each)) is not None and job.locked_by is not None]
    for job in running:
        queue.held.pop(job.queue_name or "", None)
        queue.change(
            job, locked_by=None, locked_at_epoch=None, attempts=job.max_attempts, last_error="cancelled by an operator"
        )
    done = tuple(str(job.id) for job in running)
    return Result(
        done=done, skipped=tuple(SkippedItem(str(each), "not running") for each in ids if str(each) not in done)
    )


def _again(job: Job) -> dict[str, Any]:
    kept = ("task_identifier", "payload", "queue_name", "key", "priority", "run_at_epoch", "flags", "attempts")
    return {**{name: getattr(job, name) for name in kept}, "max_attempts": job.max_attempts}


def _cleared(queue: DemoQueue, target: CleanupTarget, *, dry_run: bool) -> Iterator[Job]:
    if target is CleanupTarget.FAILED_JOBS:
        for job in [each.job for each in queue.states() if each.state is JobState.FAILED]:
            if not dry_run:
                queue.remove(job)
            yield job


def _cleaned(queue: DemoQueue, action: actions.CleanupSelected) -> Result:
    found = tuple(each.job for each in queue.states() if action.selection.matches(each, queue.now))
    if action.dry_run:
        return Result(count=len(found))
    for job in found:
        queue.remove(job)
    return Result(done=tuple(str(each.id) for each in found), removed=found)


def _removed_by_key(queue: DemoQueue, action: actions.RemoveByKey) -> Result:
    job = queue.jobs.get(action.job.id)
    if job is None:
        return Result(skipped=(SkippedItem(str(action.job.id), "gone"),))
    if (changes := action.job.changes(job)) is not None:
        return Result(skipped=(SkippedItem(str(job.id), f"changed ({changes})"),))
    if job.locked_by is not None:
        queue.change(job, key=None, attempts=job.max_attempts)
        message = f"job {job.id} is running: it lost its key and is not retried"
        return Result(done=(str(job.id),), message=message)
    queue.remove(job)
    return Result(done=(str(job.id),), removed=(job,), message=f"job {job.id} removed")


def _specified(spec: JobSpec, payload: str | None = None) -> dict[str, Any]:
    names = {"task_identifier": spec.task, "queue_name": spec.queue_name, "key": spec.job_key}
    text = msgspec.json.encode(spec.payload or {}).decode() if payload is None else payload
    return {**names, "priority": spec.priority or 0, "payload": text}


def _freed(queue: DemoQueue, workers: Sequence[str]) -> Iterator[str]:
    if not workers:
        raise InvalidInputError("name at least one worker")
    for name, (who, _) in list(queue.held.items()):
        if who in workers:
            del queue.held[name]
    for job in list(queue.jobs.values()):
        if job.locked_by in workers:
            queue.change(job, locked_by=None, locked_at_epoch=None)
    yield from workers
