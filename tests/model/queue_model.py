"""The model of the road claim → run → settle: real components without their threads, and a judge of what they do.

The claimer, the settler, the ledger, the lock renewal and the sweep are the real ones, over a real PostgreSQL.
Their `step()`s are called one at a time, so every step is deterministic, and so is the time at which an answer is
lost. That needs their inside: no public call runs one step, and threads would decide the order otherwise.

The database's own account of every claim and of how it ended comes from a trigger. The judge compares it with what
the workers reported: a claim ends by the outcome of its own attempt, or because another session took the lock,
and by nothing else.

A Node.js worker is represented by statements with the effects of those by which Graphile Worker 0.18 claims and ends a
job: a real process would be too slow here, and `tests/interop` has those. It knows nothing of gw's tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row
from support.waiting import wait_until

from gw_core import (
    Client,
    Events,
    GiveUp,
    Interrupted,
    Job,
    JobSpec,
    RecoverySettings,
    RetryAfter,
    Snooze,
    WorkerSettings,
)
from gw_core.domain.job.history import Keep
from gw_core.domain.rules.plugins import Interceptors
from gw_core.events import JobCompleted, JobLockLost, JobReturned
from gw_core.execution.executor import outcome_of
from gw_core.front_ends import Completed, Database, Failed, Outcome, PoolClaimed, Returned
from gw_core.maintenance.lock_renewal import LockRenewal
from gw_core.maintenance.sweeper import Sweep
from gw_core.postgres.connection import database as database_module
from gw_core.postgres.connection.connections import SharedConnection
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road import claims as claims_module
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.pauses import end_expired_pauses
from gw_core.worker import (
    claim_connection,
    claim_demand,
    claim_gates as gates_module,
    claim_policy,
    claimed_jobs,
    claimer,
    settler as settler_module,
    wakeup,
)
from gw_core.worker.handoff import Handoff, QueueBatch
from gw_core.worker.lease import Lease
from gw_core.worker.ledger import Ledger
from gw_core.worker.own_locks import OwnLocks
from gw_core.worker.pauses import CurrentPauses

TASK: Final = "work"
FEW: Final = "few"
FEW_EACH: Final = "few_each"
LIMITS: Final[dict[str, dict[str, Any]]] = {FEW: {"running": 2}, FEW_EACH: {"running": 1, "field": "tenant"}}
"""Tasks with a limit."""

THREADS: Final = 2
PREFETCH: Final = timedelta(minutes=10)
TOOK: Final = 200.0
"""Seconds that every attempt is recorded to have taken: two of them fit into what a pool claims ahead, however slow the
machine is that runs this."""

MAX_STEPS: Final = 12
"""Runs of one service in one step: enough to halve a rejected batch until one outcome is left."""

IDENTITY: Final = timedelta(minutes=10)
"""Time passes in multiples of this duration, as renewals do: a claim is still recognised afterwards."""

WITNESS: Final = """
create table public.audit (
  seq bigint generated always as identity, job_id bigint, old_by text, new_by text, is_gone boolean,
  old_attempts int, new_attempts int, max_attempts int, new_error text
);
create table public.refusing (job_id bigint);
create function public.note() returns trigger language plpgsql as $$ begin
  if tg_op = 'DELETE' then
    insert into public.audit (job_id, old_by, is_gone, old_attempts) values (old.id, old.locked_by, true, old.attempts);
  else
    insert into public.audit (job_id, old_by, new_by, is_gone, old_attempts, new_attempts, max_attempts, new_error)
    values (old.id, old.locked_by, new.locked_by, false, old.attempts, new.attempts, new.max_attempts, new.last_error);
  end if;
  return null;
end $$;
create function public.reject() returns trigger language plpgsql as $$ begin
  if exists (select from public.refusing where job_id = old.id) then raise 'refused by a trigger'; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create trigger note_end after delete on graphile_worker._private_jobs for each row
  when (old.locked_by is not null) execute function public.note();
create trigger note_change after update on graphile_worker._private_jobs for each row
  when (old.locked_by is distinct from new.locked_by) execute function public.note();
create trigger refuse_completion before delete on graphile_worker._private_jobs for each row
  when (old.locked_by is not null) execute function public.reject();
create trigger refuse_failure before update on graphile_worker._private_jobs for each row
  when (old.locked_by is not null and new.locked_by is null and new.last_error is distinct from old.last_error
    and new.last_error like 'failure %')
  execute function public.reject();
"""

CLEAN: Final = """
delete from public.audit; delete from public.refusing;
delete from _private_jobs; delete from _private_job_queues; delete from _private_gw_workers;
delete from _private_gw_renewed_locks; delete from _private_gw_history; delete from _private_gw_pauses;
delete from _private_gw_edges; delete from _private_gw_waiting; delete from _private_gw_steps
"""

WAITING: Final = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
ORPHANS: Final = """
select id, queue_name, locked_by from _private_job_queues as queues
 where locked_at is not null and not starts_with(locked_by, 'gw-pause:')
   and not exists (select from _private_jobs as jobs where jobs.job_queue_id = queues.id and jobs.locked_at is not null)
"""
FINISHED_GROUPS: Final = """
select waiting.job_id as id from _private_gw_waiting as waiting
 where released_at is null
   and not exists (select from _private_gw_edges as edges where edges.waiting_id = waiting.job_id)
"""

FORGOTTEN_STEPS: Final = """
select id from _private_jobs as jobs
 where id = any(%s) and not exists (select from _private_gw_steps as steps where steps.job_id = jobs.id)
"""

STARTED_EARLY: Final = """
select waiting.job_id
  from _private_gw_waiting as waiting
  join _private_gw_edges as edges on edges.waiting_id = waiting.job_id
  join _private_jobs as waits on waits.id = waiting.job_id
  join _private_jobs as jobs on jobs.id = edges.job_id
 where waits.run_at < 'infinity' or waits.locked_by is not null
"""

CLAIM_OF: Final = """
select locked_by, mod(round(extract(epoch from locked_at - %s) * 1000000)::bigint, 600000000) = 0 as is_same
  from _private_jobs where id = %s
"""
"""Who has locked a job, and whether that is the claim of this time: renewals move it by multiples of ten minutes."""

NODE: Final = "worker-of-node"
NODE_CLAIMS: Final = """
with found as materialized (
  select jobs.id
    from _private_jobs as jobs
    join _private_tasks as tasks on tasks.id = jobs.task_id
   where tasks.identifier = %s and jobs.is_available and jobs.run_at <= now() and jobs.job_queue_id is null
   order by jobs.priority, jobs.run_at, jobs.id limit 1
     for update of jobs skip locked
)
update _private_jobs as jobs
   set attempts = attempts + 1, locked_by = %s, locked_at = now()
  from found
 where jobs.id = found.id
returning jobs.id
"""
NODE_ENDS: Final = {
    "ok": "delete from _private_jobs where id = %s",
    "raise": "update _private_jobs set last_error = 'of node', locked_by = null, locked_at = null where id = %s",
    "give up": (
        "update _private_jobs set last_error = 'of node', attempts = max_attempts, locked_by = null, locked_at = null"
        " where id = %s"
    ),
}
"""What a Node.js worker does with a job: it claims and ends it, and reads no table of gw."""

STILL_OPEN: Final = """
select id from _private_jobs
 where id = any(%s) and (%s or locked_at is not null or attempts < max_attempts)
"""
"""Jobs that have not ended; for those that hold, one that failed permanently has not either."""

COUNT_LIMITED: Final = """
select identifier, case when identifier = 'few_each' then payload ->> 'tenant' end as tenant, count(*) as locked
  from _private_jobs as jobs join _private_tasks as tasks on tasks.id = jobs.task_id
 where jobs.locked_by is not null and identifier in ('few', 'few_each')
 group by 1, 2
"""

HISTORY: Final = dict.fromkeys((TASK, *LIMITS), Keep(timedelta(days=7), result=True))
KEEPING: Final = {"pool-1"}
"""The first pool records history, those that follow do not."""


class BrokenPromiseError(AssertionError):
    """The components did something that a queue must not do."""


# -- answers that are lost --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Loss:
    """One answer that will be lost: of the `countdown`-th statement on the connection of this role."""

    role: str
    committed: bool
    """Whether the server carries the statement out before the connection is lost."""
    countdown: int = 1
    has_happened: bool = False


class LossyConnection(database_module.QueueConnection):
    """A connection that breaks when the model decides. All statements of psycopg pass through `wait`."""

    loss: ClassVar[Loss | None] = None

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        loss = LossyConnection.loss
        if loss is None or loss.has_happened or self.info.parameter_status("application_name") != f"gw:{loss.role}":
            return super().wait(gen, *arguments, **options)
        loss.countdown -= 1
        if loss.countdown:
            return super().wait(gen, *arguments, **options)
        loss.has_happened = True
        if loss.committed:
            super().wait(gen, *arguments, **options)
        self.pgconn.finish()
        raise psycopg.OperationalError(f"the answer was lost {'after' if loss.committed else 'before'} the commit")


# -- what is known of a claim -----------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Claim:
    """One claim of a job, as the database recorded it, and what became of it."""

    seq: int
    worker_id: str
    job_id: int
    attempts: int
    job: Job | None = None
    """What the pool was given; None while, or because, the answer was lost."""
    outcome: Outcome | None = None
    is_void: bool = False
    """Another session took the lock on purpose: the outcome of the attempt does not count."""
    has_ended: bool = False
    reports: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"claim {self.seq} of job {self.job_id} by {self.worker_id}, attempt {self.attempts}"


@dataclass(eq=False)
class Thread:
    """A worker's thread as far as the claimer reads it."""

    busy_since: float = 0.0
    queue_batch: QueueBatch | None = None
    job: Job | None = None


class _Settler(settler_module.Settler):
    """Notes what the components report."""

    on_report: Callable[[Outcome], None]

    def report(self, outcome: Outcome) -> None:
        self.on_report(outcome)
        super().report(outcome)


class WorkerPool:
    """One worker process: its components, wired as `gw_core.worker.pool` does it, and its threads."""

    def __init__(self, world: World, name: str, database: Database) -> None:
        self.id = name
        self.world = world
        self.threads = [Thread() for _ in range(THREADS)]
        self.ledger = Ledger()
        self.events = Events(on_error=lambda event, error: world.complain(f"a listener failed: {error!r}"))
        self.events.on(PoolClaimed, world.note_claimed)
        for kind in (JobCompleted, JobReturned, JobLockLost):
            self.events.on(kind, world.record_report)
        self.own_locks = OwnLocks(worker_id=name, ledger=self.ledger, events=self.events)
        self.handoff = Handoff(on_low=lambda: None)
        self.settler = _Settler(
            worker_id=name,
            database=database,
            ledger=self.ledger,
            lease=Lease(),
            events=self.events,
            keeps=lambda: HISTORY if name in KEEPING else {},
            on_queues_freed=lambda: None,
            on_settled=lambda: None,
            on_end=lambda connect: self.own_locks.check(connect()),
        )
        self.settler.on_report = world.note_reported
        settings = WorkerSettings(concurrency=THREADS, listen=False, prefetch=PREFETCH)
        slots: Any = self.threads  # as far as the claimer reads them
        self.wakeup = wakeup.Wakeup()
        self.claimed_jobs = claimed_jobs.ClaimedJobs(
            worker_id=name,
            settings=settings,
            handoff=self.handoff,
            ledger=self.ledger,
            settler=self.settler,
            slots=slots,
            events=self.events,
        )
        self.claimer = claimer.Claimer(
            worker_id=name,
            poll_interval=settings.poll_interval,
            connection=claim_connection.ClaimConnection(
                worker_id=name,
                database=database,
                own_locks=self.own_locks,
                notifications=None,
                wakeup=self.wakeup,
                events=self.events,
                lease=Lease(),
                on_new_session=lambda: None,
            ),
            wakeup=self.wakeup,
            policy=claim_policy.ClaimPolicy(
                worker_id=name,
                settings=settings,
                task_names=lambda: (TASK, *LIMITS),
                forbidden_flags=None,
                pauses=CurrentPauses(name),
                events=self.events,
            ),
            demand=claim_demand.ClaimDemand(
                settings=settings,
                handoff=self.handoff,
                ledger=self.ledger,
                settler=self.settler,
                slots=slots,
                lease=Lease(),
            ),
            claimed_jobs=self.claimed_jobs,
            events=self.events,
            on_cancel_requests=lambda requests: None,
        )
        self.maintenance = SharedConnection(database, role="maintenance")
        self.renewal = LockRenewal(
            worker_id=name,
            connection=self.maintenance,
            events=self.events,
            locked=self.ledger.locked,
            every=timedelta(minutes=10),
        )

    @property
    def running(self) -> list[Thread]:
        return [thread for thread in self.threads if thread.job is not None]

    def begin(self) -> bool:
        """Let an idle thread take what waits, as `Worker` does: first what is left of its named queue."""
        for thread in self.threads:
            if thread.job is None and thread.queue_batch:
                thread.job = thread.queue_batch.popleft()
                return True
        for thread in self.threads:
            if thread.job is None and self.handoff.waiting:
                item = self.handoff.take(None)  # type: ignore[arg-type] # the event is for waiting, and nothing waits
                assert item is not None
                if isinstance(item, Job):
                    thread.job = item
                else:
                    thread.queue_batch = item
                    thread.job = item.popleft()
                return True
        return False

    def end(self, thread: Thread, error: BaseException | None) -> None:
        job, thread.job = thread.job, None
        assert job is not None
        if not thread.queue_batch:
            thread.queue_batch = None
        self.settler.report(Completed(job, TOOK) if error is None else outcome_of(job, error, TOOK))

    def close(self) -> None:
        self.settler.disconnect()
        self.maintenance.close()
        if not self.wakeup.is_closed:
            self.claimer.teardown()


# -- the world --------------------------------------------------------------------------------------------------------


class World:
    """The database, the pools that work on it, and the judge."""

    def __init__(self, url: str, hands: psycopg.Connection[DictRow], *, pools: int = 2) -> None:
        self.url = url
        self.hands = hands
        self.client = Client(url, max_pool_size=1)
        self.store = JobStore(hands, "graphile_worker")  # type: ignore[arg-type] # it asks for tuples itself
        self.claims: list[Claim] = []
        self.open: dict[int, Claim] = {}
        self.added: set[int] = set()
        self.waits: dict[int, tuple[list[int], str]] = {}
        """What each waiting job was added to wait for, and on what terms."""
        self._had_failed: set[int] = set()
        """Jobs that had failed permanently when an operator acted on them: they may be open again."""
        self.killed: list[WorkerPool] = []
        self.dropped: set[int] = set()
        self._finished_steps: set[int] = set()
        self._completed: set[int] = set()
        self.is_refusing = False
        self._seen = 0
        self._of_job: dict[int, Claim] = {}
        self._keep_alive: list[Job] = []
        self._taken_from: frozenset[str] = frozenset()
        self._complaints: list[str] = []
        self._messages = 0
        self._started = 0
        hands.execute(CLEAN)
        self._seen = self.run("select coalesce(max(seq), 0) as seq from public.audit")[0]["seq"]
        self._database = Database(url)
        self.pools = [self._start_pool() for _ in range(pools)]

    def run(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.hands.execute(statement, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        LossyConnection.loss = None
        for pool in (*self.pools, *self.killed):
            pool.close()
        self.client.close()

    def _start_pool(self) -> WorkerPool:
        self._started += 1
        pool = WorkerPool(self, f"pool-{self._started}", self._database)
        self._heartbeat(pool.id)
        return pool

    def _heartbeat(self, worker_id: str) -> None:
        self.run(
            "insert into _private_gw_workers (id, started_at, last_heartbeat_at) values (%s, now(), now())"
            " on conflict (id) do update set last_heartbeat_at = now()",
            worker_id,
        )

    @contextmanager
    def losing(self, loss: Loss | None) -> Iterator[None]:
        LossyConnection.loss = loss
        try:
            yield
        finally:
            LossyConnection.loss = None

    # -- steps --------------------------------------------------------------------------------------------------------

    def add(self, task: str = TASK, *, tenant: str = "a", **options: Any) -> int:
        """Add a job, or replace the waiting one with this key."""
        job = self.client.add(JobSpec(task=task, payload={"tenant": tenant}, **options), conn=self.store.connection)
        assert isinstance(job, Job)
        self.added.add(job.id)
        return job.id

    def remove(self, key: str) -> None:
        self.client.remove(key, conn=self.store.connection)

    def add_group(self, *queues: str | None) -> None:
        """Add a job for each of these queues, and one that runs after them."""
        specs = [JobSpec(task=TASK, payload={"tenant": "a"}, queue_name=queue) for queue in queues]
        group = self.client.groups.add(specs, then=JobSpec(task=TASK, payload={"tenant": "a"}))
        self.waits[group.id] = list(group.job_ids), "hold"

    def add_after(self, count: int, on_failure: str) -> None:
        """Add a job that waits for the last of those that are there, waiting ones among them."""
        ids = [row["id"] for row in self.run("select id from _private_jobs order by id desc limit %s", count)]
        added = self.client.add(TASK, {"tenant": "a"}, after=ids, on_failure=on_failure)
        self.waits[added.id] = ids, on_failure

    def run_step(self, pool: WorkerPool, *, dies: bool) -> None:
        """Let each job that runs here reach its step: it runs unless a former attempt has kept it, and is kept then.

        The database accepts it from the claim that holds the job alone. A worker that `dies` in the step keeps nothing.
        """
        for job in [thread.job for thread in pool.running if thread.job is not None]:
            pool.settler.follow_ups.with_steps.add(job.id)  # as `context.step` does
            found = self.run(CLAIM_OF, job.locked_at, job.id)
            is_ours = any(row["locked_by"] == pool.id and row["is_same"] for row in found)
            if is_ours and self._has_kept_step(job):
                continue
            if is_ours and job.id in self._finished_steps:
                self.complain(f"the step of job {job.id} runs again, and it had finished")
            if dies:
                continue
            values = {"job_id": job.id, "worker_id": pool.id, "claimed_at": job.locked_at, "attempt": job.attempts}
            values |= {"name": "step", "value": "1", "finished": True}
            saved = self.store.connection.execute(query("step_save", "graphile_worker"), values).fetchall()
            if bool(saved) != is_ours:
                self.complain(f"a step of job {job.id} was {'rejected' if is_ours else 'accepted'}, held by {found}")
            elif saved:
                self._finished_steps.add(job.id)

    def _has_kept_step(self, job: Job) -> bool:
        values = {"job_id": job.id, "created_at": job.created_at, "schema": "graphile_worker"}
        return bool(self.store.connection.execute(query("step_begin", "graphile_worker"), values).fetchall())

    def kill(self, victim: WorkerPool) -> None:
        """End a pool as `kill -9` does: it does nothing more, and a sweep takes what it holds."""
        self.killed.append(victim)
        self.pools[self.pools.index(victim)] = self._start_pool()
        self.sweep(victim)
        self.run("delete from _private_gw_workers where id = %s", victim.id)

    def run_on_node(self, how: str) -> None:
        """Let a Node.js worker claim a job and end it."""
        for row in self.run(NODE_CLAIMS, TASK, NODE):
            self._read_audit()
            self.run(NODE_ENDS[how], row["id"])
            self._read_audit()

    def act(self, action: str, which: int) -> None:
        """Let an operator act on two neighbouring jobs."""
        ids = [row["id"] for row in self.run("select id from _private_jobs order by id")]
        if chosen := ids[which % max(1, len(ids)) :][:2]:
            self._had_failed |= self._failed() & set(chosen)
            result = getattr(self.client.jobs, action)(chosen, by="an operator")
            if action == "complete":
                self.dropped |= {each.id for each in result.changed}

    def drop_waiting(self, which: int) -> None:
        """Let an operator drop a job that waits for others, with those that wait for it."""
        if waiting := sorted(self.waits):
            self.dropped |= set(self.client.groups.cancel(waiting[which % len(waiting)], by="an operator"))

    def check_follow_ups(self) -> None:
        """What a worker does once a minute: note the jobs that others ended, and forget the steps of those gone."""
        self.store.end_members(None)
        self.store.end_steps(None)

    def pause(self, *targets: str) -> None:
        """Pause these targets for an hour, as far as any pool knows when it claims next."""
        self.client.pauses.pause(*targets, until=timedelta(hours=1), timeout=timedelta(0))
        self._notify_of_rules()

    def resume(self, *targets: str) -> None:
        self.client.pauses.resume(*targets, timeout=timedelta(0))
        self._notify_of_rules()

    def end_pauses(self, settling: WorkerPool | None = None) -> None:
        """Let the time of all pauses come; a pool settles while the session that ends them has not committed."""
        self.run("update _private_gw_pauses set until = now()")
        thread = threading.Thread(target=self.settle, args=(settling,)) if settling is not None else None
        with psycopg.connect(self.url) as other, other.transaction():
            end_expired_pauses(other, "graphile_worker")
            if thread is not None:
                thread.start()
                wait_until(lambda: not thread.is_alive() or self.run(WAITING), what="the settler to wait or to end")
        if thread is not None:
            thread.join()
        self._notify_of_rules()

    def _notify_of_rules(self) -> None:
        for pool in self.pools:
            pool.claimer.on_claim_rules()

    def claim(self, pool: WorkerPool, loss: Loss | None = None) -> None:
        """One round of the claimer."""
        with self.losing(loss):
            pool.claimer.request_claim()
            pool.claimer.step()

    def settle(self, pool: WorkerPool, loss: Loss | None = None) -> None:
        """Let the settler work until it has nothing to do, or lost its connection."""
        with self.losing(loss):
            for _ in range(MAX_STEPS):
                if pool.settler.step() > settler_module.NO_DELAY or (loss is not None and loss.has_happened):
                    break

    def fail(self, pool: WorkerPool, thread: Thread, kind: str) -> None:
        """End an attempt by an exception; its message names the attempt."""
        self._messages += 1
        message = f"failure {self._messages}"
        errors: dict[str, BaseException] = {
            "raise": RuntimeError(message),
            "retry now": RetryAfter(0, message),
            "give up": GiveUp(message),
            "snooze": Snooze(0, message),
            "interrupt": Interrupted(),
        }
        pool.end(thread, errors[kind])

    def renew(self, pool: WorkerPool, loss: Loss | None = None) -> None:
        """Renew the locks of everything the pool holds: the first round takes note, the second one writes."""
        pool.renewal.step()
        with self.losing(loss):
            pool.renewal.step()

    def return_jobs(self, pool: WorkerPool) -> None:
        pool.claimed_jobs.return_waiting("not started within the prefetch window")

    def time_passes(self, intervals: int = 1) -> None:
        """Let retries become due, and every lock older, and let every waiting job be due for a check."""
        by = intervals * IDENTITY
        self.run("update _private_jobs set run_at = run_at - %s where locked_at is null", timedelta(days=2))
        self.run("update _private_jobs set locked_at = locked_at - %s where locked_at is not null", by)
        self.run("update _private_job_queues set locked_at = locked_at - %s where locked_at is not null", by)
        self.run("update _private_gw_waiting set checked_at = checked_at - %s", timedelta(hours=1))
        for pool in self.pools:
            pool.settler.retry_rejected_at = 0.0

    @contextmanager
    def _taking(self, *pools: str) -> Iterator[None]:
        """While the block runs, locks of these pools may be taken away."""
        self.judge()
        self._taken_from = frozenset(pools)
        try:
            yield
            self.judge()
        finally:
            self._taken_from = frozenset()

    def sweep(self, victim: WorkerPool) -> None:
        """Take everything from a pool that lives and sent no heartbeat for an hour."""
        hour = timedelta(hours=1)
        self.run("update _private_jobs set locked_at = locked_at - %s where locked_by = %s", hour, victim.id)
        self.run("update _private_job_queues set locked_at = locked_at - %s where locked_by = %s", hour, victim.id)
        self.run("update _private_gw_workers set last_heartbeat_at = now() - %s where id = %s", hour, victim.id)
        connections = SharedConnection(self._database, role="sweep")
        settings = RecoverySettings(recovery_delay=timedelta(0))
        with self._taking(victim.id):
            Sweep(connections, settings, events=Events(), interceptors=Interceptors()).run(with_orphans=False)
        connections.close()
        self._heartbeat(victim.id)

    def unlock(self, victim: WorkerPool) -> None:
        """What an operator does who takes a pool for dead."""
        with self._taking(victim.id):
            self.run("select force_unlock_workers(%s)", [victim.id])

    def reset_stale(self) -> None:
        """What every pool does with locks that were not renewed for four hours: here, all of them."""
        by = 30 * IDENTITY
        self.run("update _private_jobs set locked_at = locked_at - %s where locked_at is not null", by)
        self.run("update _private_job_queues set locked_at = locked_at - %s where locked_at is not null", by)
        with self._taking(*(pool.id for pool in self.pools)):
            self.store.reset_stale_locks()

    def reject(self, job_id: int) -> None:
        """Let a trigger reject how attempts of this job end."""
        self.is_refusing = True
        self.run("insert into public.refusing values (%s)", job_id)

    def accept_all(self) -> None:
        self.is_refusing = False
        self.run("delete from public.refusing")
        for pool in self.pools:
            pool.settler.retry_rejected_at = 0.0

    def stop(self, pool: WorkerPool, loss: Loss | None = None) -> None:
        """Stop a pool as `WorkerPool.stop` does when its grace period is over; another takes its place."""
        with self.losing(loss):
            pool.claimer.request_stop()
            pool.handoff.close()
            pool.claimed_jobs.return_unstarted("the worker is stopping")
            pool.claimer.teardown()
            for thread in pool.running:
                job, thread.job = thread.job, None
                assert job is not None
                pool.settler.report(Returned(job, "interrupted: the worker stopped"))
            pool.settler.request_stop()
            pool.settler.teardown()
        pool.maintenance.close()
        self.pools[self.pools.index(pool)] = self._start_pool()
        self.judge()
        if not self.is_refusing:
            self._check_nothing_is_held(pool)
        self.unlock(pool)  # as the sweep does with what is left
        self.raise_complaints()

    def _check_nothing_is_held(self, pool: WorkerPool) -> None:
        held = self.run("select id from _private_jobs where locked_by = %s", pool.id)
        queues = self.run("select queue_name from _private_job_queues where locked_by = %s", pool.id)
        if held or queues:
            self.complain(f"{pool.id} has stopped and keeps {held} {queues}")

    def finish(self) -> None:
        """Let all go well from now on: everything must run to its end, and nothing stay locked."""
        self.accept_all()
        self.end_pauses()
        for _ in range(60):
            self.time_passes()
            self.store.end_members(None)
            for pool in self.pools:
                self.settle(pool)
                self.claim(pool)
                while pool.begin():
                    pass
                self.judge()
                for thread in pool.running:
                    pool.end(thread, None)
                self.settle(pool)
                self.judge()
            if not self.run("select 1 from _private_jobs where is_available or locked_by is not null limit 1"):
                break
        for pool in list(self.pools):
            self.stop(pool)
        held = self._held()
        left = self.run("select id, attempts, locked_by from _private_jobs where attempts < max_attempts")
        left = [row for row in left if row["id"] not in held]
        if left:
            self.complain(f"these jobs never ran to their end: {left}")
        self.store.end_steps(None)
        # A job that failed permanently stays, and so do its steps: a retry goes on from there.
        steps = self.run(
            "select job_id from _private_gw_steps "
            "where kept_until is null and job_id not in (select id from _private_jobs)"
        )
        if steps:
            self.complain(f"these jobs are gone, and their steps are not: {steps}")
        if groups := self.run(FINISHED_GROUPS):
            self.complain(f"these groups have ended, and their last jobs were not added: {groups}")
        self._check_none_is_lost()
        killed = {pool.id for pool in self.killed}
        locked = self.run("select queue_name, locked_by from _private_job_queues where locked_by is not null")
        if locked:
            self.complain(f"these queues stay locked: {locked}")
        for claim in self.claims:
            is_alive = claim.worker_id not in killed
            if claim.outcome is not None and not claim.is_void and is_alive and not claim.reports:
                self.complain(f"no event reports how {claim} was settled")
        self.raise_complaints()

    def _failed(self) -> set[int]:
        return {row["id"] for row in self.run("select id from _private_jobs where attempts >= max_attempts")}

    def _held(self) -> set[int]:
        """Return the jobs that wait for one that failed and holds them, or for such a job."""
        failed = self._failed()
        held: set[int] = set()
        for number, (after, on_failure) in sorted(self.waits.items()):
            if (on_failure == "hold" and not failed.isdisjoint(after)) or not held.isdisjoint(after):
                held.add(number)
        return held

    def _check_none_is_lost(self) -> None:
        """Check that each waiting job ran to its end, failed, or was dropped because of a failure."""
        there = {row["id"] for row in self.run("select id from _private_jobs")}
        for number, (after, on_failure) in self.waits.items():
            may_be_dropped = on_failure == "cancel" or any(each in self.waits for each in after)
            is_expected = number in there or number in self._completed or number in self.dropped
            if not is_expected and not may_be_dropped:
                self.complain(f"job {number} waited for {after} and is lost")

    # -- what the components report -----------------------------------------------------------------------------------

    def note_claimed(self, event: PoolClaimed) -> None:
        self._read_audit()
        for job in event.jobs:
            claim = self.open.get(job.id)
            if claim is None or claim.worker_id != event.worker_id or claim.job is not None:
                self.complain(f"{event.worker_id} was given job {job.id}, which it has not just claimed")
                continue
            claim.job = job
            self._of_job[id(job)] = claim
            self._keep_alive.append(job)  # or another could get its id

    def note_reported(self, outcome: Outcome) -> None:
        claim = self._of_job[id(outcome.job)]
        if claim.outcome is not None:
            self.complain(f"{claim} was reported twice: {claim.outcome}, {outcome}")
        claim.outcome = outcome

    def record_report(self, event: JobCompleted | JobReturned | JobLockLost) -> None:
        claim = self._of_job[id(event.job)]
        claim.reports.append(event.name)
        if len(claim.reports) > 1:
            self.complain(f"{claim} was reported twice: {claim.reports}")
        if isinstance(event, JobLockLost) and not claim.is_void:
            self.complain(f"{claim} was reported lost, and no worker had taken it: {claim.outcome}")

    # -- the judge ----------------------------------------------------------------------------------------------------

    def complain(self, words: str) -> None:
        self._complaints.append(words)

    @property
    def is_broken(self) -> bool:
        return bool(self._complaints)

    def raise_complaints(self) -> None:
        if self._complaints:
            raise BrokenPromiseError("\n".join(self._complaints))

    def judge(self) -> None:
        """Check every promise that holds at all times; raises `BrokenPromiseError`."""
        self._read_audit()
        self._check_running()
        self._check_known()
        self._check_reports()
        self._check_history()
        self._check_limits()
        self._check_locked_queues()
        if forgotten := self.run(FORGOTTEN_STEPS, list(self._finished_steps)):
            self.complain(f"these jobs would run a step again that had finished: {forgotten}")
        if early := self.run(STARTED_EARLY):
            self.complain(f"these jobs wait for others and can be claimed: {early}")
        self.raise_complaints()

    def _check_locked_queues(self) -> None:
        """A locked queue has a locked job, or its pool still has to write how that job ended."""
        known = {(pool.id, queue_id) for pool in self.pools for queue_id, _ in pool.ledger.locked().queues}
        for row in self.run(ORPHANS):
            if (row["locked_by"], row["id"]) not in known:
                self.complain(f"queue {row['queue_name']} is locked by {row['locked_by']}, and none of its jobs is")

    def _read_audit(self) -> None:
        for row in self.run("select * from public.audit where seq > %s order by seq", self._seen):
            self._seen = row["seq"]
            if row["old_by"] is None:
                claim = Claim(row["seq"], row["new_by"], row["job_id"], row["new_attempts"])
                self._check_start(claim)
                self.claims.append(claim)
                self.open[row["job_id"]] = claim
            elif row["new_by"] is None:
                self._judge_end(self.open.pop(row["job_id"]), row)
            else:
                self.complain(f"{row['new_by']} took job {row['job_id']} out of the hands of {row['old_by']}")

    def _check_start(self, claim: Claim) -> None:
        """Check that all has ended that the job waits for."""
        after, on_failure = self.waits.get(claim.job_id, ([], ""))
        is_held = on_failure == "hold"
        if not is_held:
            after = [each for each in after if each not in self._had_failed]
        if after and (still := self.run(STILL_OPEN, after, is_held)):
            self.complain(f"{claim} started before these jobs that it waits for have ended: {still}")

    def _judge_end(self, claim: Claim, row: dict[str, Any]) -> None:
        claim.has_ended = True
        if row["is_gone"]:
            self._completed.add(claim.job_id)
        if claim.worker_id == NODE:
            return
        if claim.worker_id in self._taken_from:
            claim.is_void = True
            return
        match claim.outcome:
            case Completed():
                is_right = row["is_gone"]
            case Failed(message=message, permanent=permanent):
                attempts = row["max_attempts"] if permanent else row["old_attempts"]
                is_right = not row["is_gone"] and row["new_error"] == message and row["new_attempts"] == attempts
            case Returned():
                is_right = _is_returned(row)
            case None:
                # No thread received it, because the answer to the claim was lost.
                is_right = claim.job is None and _is_returned(row)
        if not is_right:
            reported = "nothing was reported" if claim.outcome is None else f"reported was {claim.outcome}"
            self.complain(f"{claim} ended by another outcome than its own: {reported}, written was {row}")

    def _check_running(self) -> None:
        of_queue: dict[int, list[Claim]] = {}
        locked_by = {row["id"]: row["locked_by"] for row in self.run("select id, locked_by from _private_job_queues")}
        of_jobs: dict[int, list[Claim]] = {}
        for pool in self.pools:
            for thread in pool.running:
                assert thread.job is not None
                claim = self._of_job[id(thread.job)]
                if claim.is_void:
                    continue
                of_jobs.setdefault(claim.job_id, []).append(claim)
                queue = thread.job.queue_id
                if queue is not None:
                    of_queue.setdefault(queue, []).append(claim)
                    if locked_by.get(queue) not in (pool.id, f"gw-pause:{thread.job.queue_name}"):
                        self.complain(f"{claim} runs, and its queue is held by {locked_by.get(queue)}")
        for claims in (*of_queue.values(), *of_jobs.values()):
            if len(claims) > 1:
                self.complain(f"these run at the same time: {', '.join(map(str, claims))}")

    def _check_known(self) -> None:
        """Whatever a pool has locked and was given, it knows."""
        known = {pool.id: {id(job) for job in pool.ledger.locked().jobs} for pool in self.pools}
        for claim in self.open.values():
            if claim.job is not None and claim.worker_id in known and id(claim.job) not in known[claim.worker_id]:
                self.complain(f"{claim} is still locked, and its pool has forgotten it")

    def _check_reports(self) -> None:
        for claim in self.claims:
            if claim.reports and claim.reports != [JobLockLost.name] and not claim.has_ended:
                self.complain(f"{claim} was reported settled ({claim.reports}), and is not: {claim.outcome}")

    def _check_history(self) -> None:
        """Every attempt that a keeping pool settled has one row, and no other has: a job is in exactly one place."""
        found = sorted(
            (row["worker_id"], row["job_id"], row["final"])
            for row in self.run("select worker_id, job_id, final from _private_gw_history where state <> 'removed'")
        )
        expected = sorted(
            (claim.worker_id, claim.job_id, isinstance(claim.outcome, Completed))
            for claim in self.claims
            if claim.worker_id in KEEPING
            and claim.has_ended
            and not claim.is_void
            and isinstance(claim.outcome, Completed | Failed)
        )
        if found != expected:
            self.complain(f"history has {found}, and what ended is {expected}")

    def _check_limits(self) -> None:
        for row in self.run(COUNT_LIMITED):
            if row["locked"] > LIMITS[row["identifier"]]["running"]:
                self.complain(f"{row['locked']} jobs of {row['identifier']} are locked, tenant {row['tenant']}")


def _is_returned(row: dict[str, Any]) -> bool:
    """Whether the attempt was not counted, or the job was removed or replaced and has none left."""
    if row["is_gone"]:
        return False
    return row["new_attempts"] in (row["old_attempts"] - 1, row["max_attempts"])


# -- without waiting --------------------------------------------------------------------------------------------------


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let nothing rest between two tries, and let connections break when the model decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gw_core.worker.outage.reconnect_delay", lambda tries: settler_module.NO_DELAY)
        patch.setattr(gates_module, "TIME_SHARE", 0)
        # What waits for a session that ends a pause waits until it commits.
        patch.setitem(settler_module.SETTLE_PLAN, "lock_timeout", "60s")
        # A slow machine must not let claims skip what `time_passes` has moved into the past.
        patch.setattr(claims_module, "SLOW_SECONDS", 3_600.0)
        patch.setattr(database_module, "QueueConnection", LossyConnection)
        yield


def make_witness(url: str) -> psycopg.Connection[DictRow]:
    """Teach the database to keep account of claims, set the limits, and return the connection the model works with."""
    with Client(url, max_pool_size=1) as client:
        for task, limit in LIMITS.items():
            client.limits.set(task, **limit)
    hands = psycopg.connect(url, autocommit=True, row_factory=dict_row)
    hands.execute("set search_path = graphile_worker, public")
    hands.execute(WITNESS)
    return hands
