"""One run of chaos: servers, workers, load and failures, then the verdict."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg

from gw_core import Client, JobSpec
from gw_core.errors import GraphileWorkerError
from gw_core.front_ends import FrontEnd
from gw_core.postgres.connection.database import RESPONSE_TIMEOUT
from gw_core.runner.connections import MAINTENANCE_RESPONSE_TIMEOUT

from .cleanup_guard import Guard
from .faults import Cuttable, Operator
from .fleet import NO_DATABASE, TASKS_OF_ONE, ProcessStates, Slot, Worker
from .invariants import CUTTING_FAULTS, Ended, Evidence, Findings, Row, judge
from .ledger import read_ledger, read_ticks
from .limits import (
    FIELD,
    LARGE_TENANT,
    LIMITS,
    WITNESS as WITNESS_OF_LIMITS,
    BucketChange,
    LimitedClaim,
    remove_limits,
    set_limits,
)
from .network_faults import OUTSIDE, Namespace, NetworkPath, can_make_namespaces
from .node import free_what_node_held, node_command
from .patroni import PatroniCluster, missing
from .plan import OPERATIONS, SERVER_FAULTS, WORKER_FAULTS, make_load, make_plan, usual_counts
from .producers import Added, Producers
from .servers import DATABASE, Cluster, ServerFailedError
from .stall_detector import Stalls, held_up

DRAIN: Final = 90.0
"""Seconds within which everything must have run after the last failure."""

GROUP_CHECK: Final = 150.0
"""Seconds within which workers check every group, and its last job runs: others, or the killed, ended its members."""

FULL: Final = 200
"""Jobs of one tenant that are added at a time: they take five seconds."""

HANG: Final = 600.0
"""Seconds after which the plan counts as hung: on a busy machine, each failover of Patroni takes 25."""

CALL: Final = 20.0
"""Seconds within which every worker must run something after the last failure."""


LOST_TOUCH: Final = re.compile(r"(\[core[^]]*\]) WARNING: Cannot (claim jobs|record outcomes): ")
FOUND_TOUCH: Final = re.compile(
    r"(\[core[^]]*\]) INFO: Database available again: can (claim jobs|record outcomes) after"
)

EDGE: Final = timedelta(seconds=10)
"""How long after the workers' start and before their end a minute may be missed."""

# Jobs that go back to run later may be overtaken; only the database knows which those are.
WITNESS: Final = """
create table public.delayed (job_id bigint not null);
create function public.note_delay() returns trigger language plpgsql as
  $$begin insert into public.delayed values (new.id); return new; end$$;
create trigger note_delay after update on graphile_worker._private_jobs for each row
  when (old.locked_by is not null and new.locked_by is null and new.run_at > old.run_at)
  execute function public.note_delay();
"""


ORPHANED_QUEUES: Final = """
select queue_name from graphile_worker._private_job_queues as queues
 where locked_at is not null and not starts_with(locked_by, 'gw-pause:')
   and not exists (
         select from graphile_worker._private_jobs as jobs
          where jobs.job_queue_id = queues.id and jobs.locked_at is not null
       )
 order by queue_name collate "C"
"""


HOLDERS: Final = """
select locked_by, sum(jobs)::int, sum(queues)::int
  from (
         select locked_by, 1 as jobs, 0 as queues from graphile_worker._private_jobs where locked_at is not null
         union all
         select locked_by, 0, 1 from graphile_worker._private_job_queues
          where locked_at is not null and not starts_with(locked_by, 'gw-pause:')
       ) as locks
 group by locked_by
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to do, and for how long."""

    seed: int
    jobs: int = 100_000
    seconds: float = 60.0
    workers: int = 4
    threshold: float = 4.0
    with_standby: bool = True
    with_namespace: bool = True
    with_node: bool = False
    with_patroni: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    log_level: str = "info"
    keep: bool = False


@dataclass(slots=True, kw_only=True)
class CheckStatus:
    """How a run went."""

    options: Options
    findings: Findings
    faults: dict[str, int]
    skipped: dict[str, int]
    jobs: int
    runs: int
    seconds: float
    folder: Path | None

    @property
    def ok(self) -> bool:
        return not self.findings.broken

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "seed": self.options.seed,
            "jobs": self.jobs,
            "runs": self.runs,
            "seconds": round(self.seconds, 1),
            "faults": self.faults,
            "skipped": self.skipped,
            "figures": dict(sorted(self.findings.figures.items())),
            "broken": self.findings.broken,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 when every promise was kept, 1 when one was broken, 2 when nothing was proved."""
    given = _parser().parse_args(arguments)
    options = _options(given)
    if options.with_patroni and (absent := missing()) is not None:
        print(absent, file=sys.stderr)
        return 2
    say: Callable[[str], None] = lambda words: print(words, file=sys.stderr, flush=True)  # noqa: E731
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(2))
    say(
        f"seed {options.seed}: {options.jobs} jobs, {options.seconds:g} s of chaos; run it again with {_again(options)}"
    )
    try:
        verdict = run(options, say=say)
    except (ServerFailedError, TimeoutError, psycopg.Error) as error:
        say(f"nothing was proved: {error}")
        return 2
    print(json.dumps(verdict.as_json(), indent=2) if given.json else _report(verdict))
    return 0 if verdict.ok else 1


def run(options: Options, *, say: Callable[[str], None] = lambda words: None) -> CheckStatus:
    """Do everything, clean up whatever happens, and say how it went."""
    began = time.monotonic()

    def log(words: str) -> None:
        say(f"{time.monotonic() - began:7.2f} {words}")

    folder = Path(tempfile.mkdtemp(prefix="gw-chaos-"))
    folder.chmod(0o755)
    guard = Guard(str(folder))
    keep = options.keep
    try:
        verdict = _Scene(options, folder, guard, log).play()
        keep = keep or not verdict.ok
    except TimeoutError:
        keep = True
        raise
    finally:
        guard.dismiss()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    verdict.seconds = time.monotonic() - began
    verdict.folder = folder if keep else None
    return verdict


class _Scene:
    """The parts of one run, in the order in which they act."""

    def __init__(self, options: Options, folder: Path, guard: Guard, say: Callable[[str], None]) -> None:
        self._options = options
        self._folder = folder
        self._guard = guard
        self._say = say
        self._findings = Findings()
        self._stalls = Stalls()
        self._stalls.watch()
        self._roads: dict[str, list[Cuttable]] = {}

    def play(self) -> CheckStatus:
        options = self._options
        with ExitStack() as stack:
            self._has_namespace = options.with_namespace and not options.with_patroni and can_make_namespaces()
            addresses = ("127.0.0.1", OUTSIDE) if self._has_namespace else ("127.0.0.1",)
            namespace = self._namespace(stack) if self._has_namespace else None
            self._cluster = self._build_cluster(addresses)
            stack.callback(self._cluster.close)
            self._cluster.create()
            self._prepare_database()
            self._say(f"PostgreSQL {self._cluster.primary.version} is up{' in two' if options.with_standby else ''}")
            self._fleet = ProcessStates(self._folder, self._guard, grace_seconds=4.0)
            stack.callback(self._fleet.close)
            self._man_the_fleet(stack, namespace)
            self._producers = Producers(
                self._cluster.conninfo(),
                seed=options.seed,
                jobs=options.jobs,
                load=make_load(options.seed, seconds=options.seconds),
            )
            stack.callback(self._producers.close)
            self._operator = Operator(
                self._cluster, self._fleet, self._roads, threshold=options.threshold, say=self._say
            )
            stack.callback(self._operator.close)
            self._suffer()
            self._recover()
            self._end()
            return self._judge()

    # -- before -------------------------------------------------------------------------------------------------------

    def _namespace(self, stack: ExitStack) -> Namespace:
        name = f"gw-chaos-{os.getpid()}"
        self._guard.has_namespace(name)
        namespace = Namespace(name)
        stack.callback(namespace.close)
        return namespace

    def _build_cluster(self, addresses: tuple[str, ...]) -> Cluster:
        if self._options.with_patroni:
            return PatroniCluster(self._folder, self._guard)
        return Cluster(self._folder, self._guard, with_standby=self._options.with_standby, addresses=addresses)

    def _prepare_database(self) -> None:
        with Client(self._cluster.conninfo(), max_pool_size=1) as client:
            client.migrate()
            set_limits(client)
        for witness in (WITNESS, WITNESS_OF_LIMITS):
            self._cluster.primary.execute(witness, database=DATABASE)

    def _man_the_fleet(self, stack: ExitStack, namespace: Namespace | None) -> None:
        rng = random.Random(f"fleet {self._options.seed}")
        threshold = self._options.threshold
        common = [
            *("--heartbeat-interval", f"{threshold / 8:g}s", "--sweep-interval", f"{threshold / 8:g}s"),
            *("--sweep-threshold", f"{threshold:g}s", "--recovery-delay", "200ms", "--poll-interval", "500ms"),
            *("--log-level", self._options.log_level),
        ]
        for number in range(self._options.workers):
            threads = rng.choice([1, 4, 10, 20])
            options = [*common, "-j", str(threads), *(["--no-recover"] if number % 2 else [])]
            slot = Slot(f"worker{number}", self._cluster.conninfo(), options, threads=threads)
            if number == 3:
                slot.name, slot.family, slot.options = f"{slot.name}-in-two", True, [*options, "--processes", "2"]
                slot.threads *= 2
            if number == 1:
                self._build_road(slot, stack)
            elif number == 2 and namespace is not None:
                self._build_cable(slot, namespace)
            self._fleet.slots.append(slot)
        self._add_one_alone(common, stack)
        if self._options.with_node:
            self._invite_node(stack)
        for slot in self._fleet.slots:
            self._fleet.start(slot)

    def _add_one_alone(self, common: Sequence[str], stack: ExitStack) -> None:
        """A worker that is the only one to know a task: its recovered jobs wait for it."""
        slot = Slot("alone", self._cluster.conninfo(), [*common, "-j", "8"], threads=8, tasks=TASKS_OF_ONE)
        self._build_road(slot, stack)
        self._fleet.slots.append(slot)

    def _invite_node(self, stack: ExitStack) -> None:
        # Its driver knows one server only, so something must lead it to the one that takes writes.
        road = NetworkPath(lambda: self._cluster.primary.port)
        stack.callback(road.close)
        command = node_command(road.port, self._folder / "node")
        if command is None:
            self._say("npm is not installed, so there is no worker of Node")
            return
        slot = Slot("node", "", (), foreign=command, folder=self._folder / "node", after_kill=self._free_node)
        self._fleet.slots.append(slot)

    def _free_node(self) -> None:
        with suppress(GraphileWorkerError), Client(self._cluster.conninfo(), max_pool_size=1) as client:
            free_what_node_held(client)

    def _build_road(self, slot: Slot, stack: ExitStack) -> None:
        roads = [NetworkPath(lambda server=server: server.port) for server in self._cluster.servers]  # type: ignore[misc]
        for road in roads:
            stack.callback(road.close)
        slot.road, slot.name = f"proxy of {slot.name}", f"{slot.name}-behind-a-proxy"
        slot.conninfo = self._cluster.conninfo([road.port for road in roads])
        self._roads[slot.road] = list(roads)

    def _build_cable(self, slot: Slot, namespace: Namespace) -> None:
        slot.road, slot.name, slot.prefix = "cable", f"{slot.name}-in-a-namespace", namespace.prefix
        slot.conninfo = self._cluster.conninfo(host=OUTSIDE)
        self._roads[slot.road] = [namespace]

    # -- chaos --------------------------------------------------------------------------------------------------------

    def _suffer(self) -> None:
        options = self._options
        counts = {**usual_counts(options.seconds, with_standby=options.with_standby), **options.counts}
        if options.with_patroni:
            counts["stall"] = 0  # Patroni would watch, wait, and then do what cannot be foreseen
        self._began = datetime.now(UTC)
        self._producers.start()
        self._operator.supervise()
        self._operator.start(make_plan(options.seed, seconds=options.seconds, counts=counts))
        self._operator.wait(options.seconds + HANG)
        self._producers.wait(options.seconds + HANG)
        self._say(f"all jobs are added; {self._producers.refusals} calls were not answered and made again")

    # -- after --------------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Leave the workers alone until everything has run, then call each of them."""
        with Client(self._cluster.conninfo(), max_pool_size=1) as client:
            for slot in self._fleet.slots:
                if slot.foreign:
                    self._operator.retire(slot)
            self._insist(lambda: free_what_node_held(client))
            self._insist(lambda: self._producers.remove_the_rest(client))
            self._add_until_all_workers_ran(client)
            self._add_beside_full_value(client)
            self._wait(DRAIN, "every job to run", self._is_drained)
            self._wait(GROUP_CHECK, "every group to go on", self._has_ended_groups)
            # A worker that waits for a swallowed answer sends no heartbeat.
            more = MAINTENANCE_RESPONSE_TIMEOUT.total_seconds() if self._operator.done["mute"] else 0.0
            self._wait(self._options.threshold * 3 + 10 + more, "the dead to be forgotten", self._knows_only_the_living)

    def _add_until_all_workers_ran(self, client: Client) -> None:
        """Add jobs until every worker has run one of them."""
        called: list[Added] = []
        transaction = 10**9
        # More than all threads can take and claim ahead, or the quickest process would take them all.
        enough = 3 * sum(slot.threads for slot in self._fleet.slots)

        def all_have_run() -> bool:
            batch = [
                Added(
                    n=10**9 + len(called) + each,
                    kind="call",
                    spec=JobSpec(task="chaos", payload={"n": 10**9 + len(called) + each, "ms": 50}),
                    transaction=transaction,
                    asked=time.monotonic_ns(),
                )
                for each in range(enough)
            ]
            client.add_many([each.spec for each in batch])
            for each in batch:
                each.answered = time.monotonic_ns()
            called.extend(batch)
            numbers = {each.n for each in called}
            here = {run.pid for run in read_ledger(self._fleet.ledger) if run.n in numbers}
            return all(worker.workers() and worker.workers() <= here for worker in self._fleet.living)

        # A claim whose answer was swallowed is waited for before another connection is made.
        swallowed = self._operator.done["swallow"] + self._operator.done["mute"]
        most = CALL + (RESPONSE_TIMEOUT.total_seconds() if swallowed else 0.0)
        self._wait(most, "every worker to run something after the last fault", all_have_run, every=0.5)
        self._producers.added.extend(called)

    def _add_beside_full_value(self, client: Client) -> None:
        """Add many jobs of one tenant, then some that must not wait for them."""
        full = [("full", FIELD, LARGE_TENANT)] * FULL
        beside = [("beside", task, tenant) for tenant in ("t1", "t2") for task in ("chaos", *LIMITS)]
        jobs = [
            Added(
                n=2 * 10**9 + each,
                kind=kind,
                spec=JobSpec(task=task, payload={"n": 2 * 10**9 + each, "ms": 50, "tenant": tenant}),
                transaction=2 * 10**9,
                asked=time.monotonic_ns(),
            )
            for each, (kind, task, tenant) in enumerate([*full, *beside])
        ]
        # Their limits allow more than twice of what is added, but faults and pauses can stop them for most of the time.
        self._wait(DRAIN + self._options.seconds / 2, "the other limited jobs to run", self._has_no_limited_jobs)
        client.add_many([each.spec for each in jobs])
        for each in jobs:
            each.answered = time.monotonic_ns()
        self._producers.added.extend(jobs)

    def _has_no_limited_jobs(self) -> bool:
        names = ", ".join(f"'{task}'" for task in LIMITS)
        return not self._ask(
            "select 1 from graphile_worker._private_jobs as jobs"
            " join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id"
            f" where tasks.identifier in ({names}) limit 1"
        )

    def _is_drained(self) -> bool:
        return not self._ask(
            "select 1 from graphile_worker._private_jobs where is_available or locked_by is not null limit 1"
        )

    def _has_ended_groups(self) -> bool:
        return (
            not self._ask("select 1 from graphile_worker._private_gw_waiting where released_at is null limit 1")
            and self._is_drained()
        )

    def _knows_only_the_living(self) -> bool:
        known = {pid for (pid,) in self._ask("select pid from graphile_worker._private_gw_workers")}
        return known == {pid for worker in self._fleet.living if worker.is_ours for pid in worker.workers()}

    def _end(self) -> None:
        self._ended = datetime.now(UTC)
        self._operator.retire_all()

    # -- judging ------------------------------------------------------------------------------------------------------

    def _judge(self) -> CheckStatus:
        runs = read_ledger(self._fleet.ledger)
        workers = self._fleet.workers
        evidence = Evidence(
            added=self._producers.added,
            runs=runs,
            faults=self._operator.faults,
            rows=self._rows(),
            history=self._history(),
            lost={pid: worker.lost() for worker in workers for pid in worker.pids()},
            ends=self._ends(workers),
            foreign=frozenset(worker.pid for worker in workers if not worker.is_ours),
            ticks=read_ticks(self._fleet.ledger),
            minutes=_minutes_between(self._began, self._ended),
            claims=[LimitedClaim(*row) for row in self._ask("select * from public.limited_claims")],
            buckets=[BucketChange(*row) for row in self._ask("select * from public.bucket_changes")],
            unlimited=self._operator.unlimited,
            paused=self._operator.paused,
            delayed=frozenset(job_id for (job_id,) in self._ask("select job_id from public.delayed")),
            stalls=tuple(self._stalls.seen),
        )
        self._check_limits_are_removed()
        (self._folder / "evidence.txt").write_text("\n".join(_lines_of(evidence)))
        judged = judge(evidence)
        self._findings.figures.update(judged.figures)
        self._findings.broken += [*judged.broken, *self._what_workers_did(workers), *self._what_is_left()]
        self._findings.broken += self._locks_without_a_reason()
        return CheckStatus(
            options=self._options,
            findings=self._findings,
            faults=dict(self._operator.done),
            skipped=dict(self._operator.skipped),
            jobs=sum(added.answered is not None for added in self._producers.added),
            runs=len(runs),
            seconds=0.0,
            folder=None,
        )

    def _check_limits_are_removed(self) -> None:
        """Remove the limits, and see that nothing is left of them."""
        with Client(self._cluster.conninfo(), max_pool_size=1) as client:
            remove_limits(client)
        for question in (
            "select relname from pg_class where relname like 'jobs_gw_field%'",
            "select task from graphile_worker._private_gw_buckets",
            "select kind from graphile_worker._private_gw_pauses",
        ):
            self._findings.broken += [f"left of limits and pauses: {left}" for (left,) in self._ask(question)]

    def _ends(self, workers: Sequence[Worker]) -> dict[int, int]:
        """When each process ended: with its supervisor at the latest, those apart that it left behind."""
        ends = {pid: worker.ended for worker in workers if worker.ended is not None for pid in worker.pids()}
        for fault in self._operator.faults:
            if fault.what in ("kill", "orphan") and fault.pid in ends and fault.ended is not None:
                ends[fault.pid] = fault.ended
        return ends

    def _rows(self) -> list[Row]:
        return [
            Row(
                job_id=row[0],
                n=row[1],
                attempts=row[2],
                max_attempts=row[3],
                locked_by=row[4],
                has_key=row[5],
                last_error=row[6],
            )
            for row in self._ask(
                "select id, coalesce((payload ->> 'n')::bigint, 0), attempts, max_attempts, locked_by,"
                " key is not null, last_error from graphile_worker._private_jobs"
            )
        ]

    def _history(self) -> list[Ended]:
        columns = "job_id, attempt, state, final"
        return [Ended(*row) for row in self._ask(f"select {columns} from graphile_worker._private_gw_history")]

    def _what_workers_did(self, workers: Sequence[Worker]) -> Iterator[str]:
        yield from self._operator.slow_to_stop
        yield from self._operator.ended_alone
        self._findings.figures["failed starts while the database was away"] += self._operator.failed_starts
        if self._producers.empty_answers:
            yield f"keyed adds {self._producers.empty_answers} were answered with another job, or none"
        for worker in workers:
            if not worker.is_ours:
                continue
            if worker.asked_to_stop and not worker.killed and worker.exit_code not in _orderly_ends(worker):
                yield f"{worker.slot.name} ({worker.pid}) ended with {worker.exit_code} after SIGTERM"
            yield from (f"{worker.slot.name} ({worker.pid}) said: {line}" for line in _complaints(worker.words()))
            self._findings.figures["jobs said to be lost"] += len(worker.lost())
            if "was presumed dead" in worker.words():
                self._findings.figures["live workers presumed dead"] += 1
                pids = worker.pids()
                cut_off = any(fault.pid in pids and fault.what in CUTTING_FAULTS for fault in self._operator.faults)
                if not cut_off and not self._stood_still_for_long():
                    yield f"{worker.slot.name} ({worker.pid}) was presumed dead, though no fault had stopped it"

    def _stood_still_for_long(self) -> bool:
        """Whether the machine did, for longer than the sweep threshold."""
        return any(ended - began > self._options.threshold * 1e9 for began, ended in self._stalls.seen)

    def _locks_without_a_reason(self) -> Iterator[str]:
        """A locked queue has a locked job, and the doctor finds the same queues."""
        orphaned = [name for (name,) in self._ask(ORPHANED_QUEUES)]
        yield from (f"queue {name} is locked, and none of its jobs is" for name in orphaned)
        with Client(self._cluster.conninfo(), max_pool_size=1) as client:
            facts = FrontEnd(client).examine()
        if orphaned != (found := sorted(queue.name for queue in facts.orphaned_queues)):
            yield f"the doctor finds {found} locked without a job, and there are {orphaned}"
        holders = {name: (jobs, queues) for name, jobs, queues in self._ask(HOLDERS)}
        if holders != (seen := {each.id: (each.jobs, each.queues) for each in facts.holders}):
            yield f"the doctor finds the locks {seen}, and there are {holders}"

    def _what_is_left(self) -> Iterator[str]:
        for table, column in (
            ("_private_job_queues", "locked_by"),
            ("_private_jobs", "locked_by"),
            ("_private_gw_workers", "id"),
        ):
            for (left,) in self._ask(f"select {column} from graphile_worker.{table} where {column} is not null"):
                yield f"{table} still names {left}"
        for question, what in (
            ("select pid from pg_locks where locktype = 'advisory'", "an advisory lock is held by"),
            ("select application_name from pg_stat_activity where application_name like 'gw:%'", "still connected is"),
            ("select gid from pg_prepared_xacts", "a transaction is left prepared:"),
            ("select relname from pg_class where relpersistence = 't'", "a temporary table is left:"),
        ):
            for (left,) in self._ask(question):
                yield f"{what} {left}"

    # -- small things -------------------------------------------------------------------------------------------------

    def _ask(self, question: str) -> list[tuple[Any, ...]]:
        return self._cluster.primary.execute(question, database=DATABASE)

    def _insist(self, act: Callable[[], object]) -> None:
        """Try again while connections are still being made again."""

        def is_done() -> bool:
            with suppress(GraphileWorkerError):
                act()
                return True
            return False

        self._wait(30, "the servers to answer", is_done)

    def _wait(self, seconds: float, what: str, condition: Callable[[], bool], *, every: float = 0.1) -> None:
        """Wait for something that must come; if it does not, that is a finding, and the run goes on to its end."""
        began = time.monotonic_ns()
        while (
            passed := time.monotonic_ns() - began - held_up(self._stalls.seen, began, time.monotonic_ns())
        ) < seconds * 1e9:
            with suppress(GraphileWorkerError, psycopg.OperationalError):
                if condition():
                    self._say(f"waited {passed / 1e9:.1f} s for {what}")
                    return
            time.sleep(every)
        self._findings.broken.append(f"waited {seconds:g} s without success for {what}")


def _minutes_between(began: datetime, ended: datetime) -> list[datetime]:
    """The minutes that came while there were workers, those at the very edges apart."""
    minute = (began + EDGE).replace(second=0, microsecond=0) + timedelta(minutes=1)
    count = (ended - EDGE - minute) // timedelta(minutes=1) + 1
    return [minute + timedelta(minutes=each) for each in range(count)]


def _orderly_ends(worker: Worker) -> tuple[int, ...]:
    """How a worker may end that is asked to: one that had not begun may find no database instead."""
    # The code of a supervisor is the worst of its processes', one of which may have been starting.
    may_find_none = worker.family or not worker.has_begun
    return (-signal.SIGTERM, NO_DATABASE) if may_find_none else (-signal.SIGTERM,)


def _lines_of(evidence: Evidence) -> Iterator[str]:
    """Everything there is to judge by, to find the cause of a finding."""
    for things in (
        *(evidence.faults, evidence.added, evidence.runs, evidence.rows, evidence.history),
        *(evidence.claims, evidence.buckets, evidence.unlimited, evidence.paused),
    ):
        yield from map(repr, things)
    yield f"given back to run later: {sorted(evidence.delayed)}"


def _complaints(words: str) -> Iterator[str]:
    """Lines that no worker should ever write, whatever happens to its database."""
    for line in words.splitlines():
        if "Traceback" in line or "Thread gw-" in line or "A listener for" in line:
            yield line
    yield from repetitions(words)


def repetitions(words: str) -> Iterator[str]:
    """Failures that a worker reported again before it reported their end."""
    reported: set[tuple[str, str]] = set()
    for line in words.splitlines():
        if lost := LOST_TOUCH.match(line):
            if lost.groups() in reported:
                yield f"{line[:120]}… again"
            reported.add((lost[1], lost[2]))
        elif found := FOUND_TOUCH.match(line):
            reported.discard((found[1], found[2]))
        elif "is ready (pid" in line:  # another process speaks under that name
            reported.clear()


# -- the command line -------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="decides what happens and when; chosen and printed if not given")
    parser.add_argument("--jobs", type=int, default=100_000, help="how many jobs are added (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long things go wrong (%(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="how many worker processes (%(default)s)")
    parser.add_argument(
        "--threshold", type=float, default=4.0, help="seconds without heartbeats until dead (%(default)s)"
    )
    parser.add_argument("--no-standby", action="store_true", help="one server alone, so no failover")
    parser.add_argument("--no-namespace", action="store_true", help="cut the network by a proxy only, also as root")
    parser.add_argument("--node", action="store_true", help="npm's graphile-worker beside ours")
    parser.add_argument("--patroni", action="store_true", help="Patroni and etcd decide which server leads")
    for what, often in {**WORKER_FAULTS, **SERVER_FAULTS, **OPERATIONS}.items():
        parser.add_argument(f"--{what}", type=int, metavar="N", help=f"how often (usually {often} a minute)")
    parser.add_argument("--log-level", default="info", help="of the workers (%(default)s)")
    parser.add_argument(
        "--keep", action="store_true", help="keep the logs and the ledger; after a failure they are kept"
    )
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    return parser


def _options(given: argparse.Namespace) -> Options:
    counts = {what: getattr(given, what) for what in (*WORKER_FAULTS, *SERVER_FAULTS, *OPERATIONS)}
    return Options(
        seed=given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000),
        jobs=given.jobs,
        seconds=given.seconds,
        workers=given.workers,
        threshold=given.threshold,
        with_standby=not given.no_standby,
        with_namespace=not given.no_namespace,
        with_node=given.node,
        with_patroni=given.patroni,
        counts={what: count for what, count in counts.items() if count is not None},
        log_level=given.log_level,
        keep=given.keep,
    )


def _again(options: Options) -> str:
    words = [f"--seed {options.seed} --jobs {options.jobs} --seconds {options.seconds:g} --workers {options.workers}"]
    words += [f"--{what} {count}" for what, count in options.counts.items()]
    return " ".join(words)


def _report(verdict: CheckStatus) -> str:
    lines = [
        f"seed {verdict.options.seed}: {verdict.jobs} jobs, {verdict.runs} runs, {verdict.seconds:.0f} s in all",
        "faults: " + ", ".join(f"{count} {what}" for what, count in verdict.faults.items()),
        *(f"  {what}: {count}" for what, count in sorted(verdict.findings.figures.items())),
    ]
    broken = verdict.findings.broken
    if broken:
        lines += [f"{len(broken)} promises were broken:", *(f"  - {each}" for each in broken[:50])]
        if len(broken) > 50:
            lines.append(f"  and {len(broken) - 50} more")
        lines.append(f"logs and ledger are in {verdict.folder}")
    else:
        lines.append("every promise was kept")
    return "\n".join(lines)
