"""Carry out the plan, and remember what was done to whom and when."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

import psycopg

from gw_core import Client
from gw_core.errors import GraphileWorkerError
from gw_core.operations import PauseResult
from gw_core.runner.connections import MAINTENANCE_RESPONSE_TIMEOUT

from .fleet import NO_DATABASE, TASKS_OF_ONE, ProcessStates, Slot, Worker, is_alive, send
from .limits import FIELD, LIMITS, MOST_RUNNING, RUNNING, Paused, Unlimited
from .network_faults import ALL_SESSIONS, NetworkPath
from .plan import SERVER_FAULTS, Action
from .producers import HOLDER
from .servers import Cluster
from .stall_detector import wait_for

LINES: Final = ("gw:claim", "gw:settle", "gw:maintenance", "gw:heartbeat")
"""A worker's connections whose answers are lost or swallowed."""

TARGETS: Final = ("all", "task:chaos", "task:alone", "queue:q0", "queue:alone1", *(f"task:{task}" for task in LIMITS))
"""What is paused."""

CONFIRMATION: Final = 20.0
"""Seconds in which workers may confirm a pause or a limit; one that has a fault after the other does not."""

NEVER: Final = 2**63

CLAIM: Final = "claimed as ("
"""A part of the statements that claim, and of no other."""

LATE: Final = 20.0
"""Seconds after which a late claim arrives at most: some time after its worker has connected again."""

FOREIGN_JOB: Final = """
with free as (
  select jobs.id, jobs.job_queue_id
    from graphile_worker._private_jobs as jobs
    join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id and tasks.identifier = 'chaos'
    left join graphile_worker._private_job_queues as queues on queues.id = jobs.job_queue_id
   where jobs.is_available and jobs.key is null and jobs.run_at <= now() and queues.locked_at is null
   order by jobs.priority, jobs.run_at, jobs.id
   limit 1
),
queue as materialized (
  select queues.id from graphile_worker._private_job_queues as queues
   where queues.locked_at is null and queues.id = any(array(select free.job_queue_id from free))
     for update of queues skip locked
),
job as materialized (
  select jobs.id, jobs.job_queue_id from graphile_worker._private_jobs as jobs
   where jobs.is_available and jobs.id = any(array(select free.id from free))
     and (jobs.job_queue_id is null or jobs.job_queue_id = any(array(select queue.id from queue)))
     for update of jobs skip locked
),
locked_queue as (
  update graphile_worker._private_job_queues as queues set locked_by = %(name)s, locked_at = now()
   where queues.id = any(array(select job.job_queue_id from job))
)
update graphile_worker._private_jobs as jobs set locked_by = %(name)s, locked_at = now(), attempts = attempts + 1
 where jobs.id = any(array(select job.id from job))
returning jobs.id
"""
"""Locks a job as a claim does, in a name that knows nothing of it.

The queue comes first: a claim would skip a job that is locked before its queue, and take the jobs behind it.
"""

FOREIGN_QUEUE: Final = """
update graphile_worker._private_job_queues as queues set locked_by = %(name)s, locked_at = now()
 where queues.id = (
         select free.id from graphile_worker._private_job_queues as free
          where free.locked_at is null order by random() limit 1 for update skip locked
       )
returning queues.id
"""

DEAD: Final = """
insert into graphile_worker._private_gw_workers (id, started_at, last_heartbeat_at)
values (%(name)s, now() - interval '1 hour', now() - interval '1 hour')
"""
LIVING: Final = "select id from graphile_worker._private_gw_workers order by id"

TURN: Final = 60.0
"""Seconds that a change of the rules waits for those before it."""

EXIT_TIMEOUT: Final = 5.0
"""Seconds a worker may take to run its first job before it is killed all the same."""


class Cuttable(Protocol):
    """A road to the servers."""

    def cut(self) -> None: ...

    def repair(self, *, forgetful: bool) -> None: ...


@dataclass(slots=True)
class Fault:
    """Something that was done: to one process, or with `pid` None to the servers. TimeRange as in the ledger."""

    what: str
    pid: int | None
    began: int
    ended: int | None = None
    detail: str = ""


class Operator:
    """Injects what the plan names, at its time, and restarts what it ended."""

    def __init__(
        self,
        cluster: Cluster,
        fleet: ProcessStates,
        roads: Mapping[str, Sequence[Cuttable]],
        *,
        threshold: float,
        say: Callable[[str], None],
    ) -> None:
        self.faults: list[Fault] = []
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.slow_to_stop: list[str] = []
        self.ended_alone: list[str] = []
        self.failed_starts = 0
        self.paused: list[Paused] = []
        self.unlimited: list[Unlimited] = []
        self._changes = threading.Lock()  # held while an operator changes the rules for claims
        self._cluster = cluster
        self._fleet = fleet
        self._roads = roads
        self._threshold = threshold
        self._say = say
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []
        self._supervisor = threading.Thread(target=self._carefully, args=(self._watch,), name="supervisor", daemon=True)
        self._doings: dict[str, Callable[[random.Random], None]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "cut": self._cut,
            "stop": self._stop,
            "crash": self._crash,
            "failover": self._fail_over,
            "backend": self._crash_backend,
            "restart": self._restart,
            "stall": self._stall,
            "lonely": self._lose_standby,
            "terminate": self._terminate,
            "lock": self._lock_jobs,
            "doze": self._doze,
            "lose": self._lose_answers,
            "swallow": self._swallow,
            "late": self._deliver_late,
            "delay": self._delay,
            "pause": lambda rng: self._in_turn("pause", self._pause, rng),
            "limit": lambda rng: self._in_turn("limit", self._change_limit, rng),
            "foreign": self._lock_for_others,
        }

    # -- what a supervisor does ---------------------------------------------------------------------------------------

    def supervise(self) -> None:
        """Start again every process that exits, as systemd does; one that has begun to work must not exit."""
        self._supervisor.start()

    def stop_supervising(self) -> None:
        self._closing.set()
        self._supervisor.join(10)

    def _watch(self) -> None:
        while not self._closing.wait(0.2):
            for slot in self._fleet.slots:
                if slot.lock.acquire(blocking=False):
                    try:
                        self._revive(slot)
                    finally:
                        slot.lock.release()

    def retire(self, slot: Slot) -> None:
        """End the worker of a slot permanently."""
        with slot.lock:
            if slot.worker is not None and slot.worker.exit_code is None:
                began = time.monotonic_ns()
                self.stop_gracefully(slot.worker)
                if not slot.worker.is_ours:
                    # Node's worker may end before the result of its last job is written; ours may not.
                    self.faults.append(Fault("retire", slot.worker.pid, began, time.monotonic_ns()))
            slot.worker = None

    def retire_all(self) -> None:
        """End all workers, after a last check which have exited."""
        self.stop_supervising()
        for slot in self._fleet.slots:
            if slot.worker is not None and slot.worker.exit_code is not None:
                self._note_end(slot, slot.worker)
        for slot in self._fleet.slots:
            self.retire(slot)

    def _revive(self, slot: Slot) -> None:
        worker = slot.worker
        if worker is None or worker.exit_code is None:
            return
        self._note_end(slot, worker)
        self._fleet.start(slot)

    def _note_end(self, slot: Slot, worker: Worker) -> None:
        self._fleet.wait_for_end(worker, 1)
        if worker.is_ours and worker.exit_code == NO_DATABASE and not worker.has_begun:
            self.failed_starts += 1
        elif worker.is_ours:
            self.ended_alone.append(f"{slot.name} ({worker.pid}) ended with {worker.exit_code} by itself")

    # -- carrying out -------------------------------------------------------------------------------------------------

    def start(self, plan: Sequence[Action]) -> None:
        """Begin; servers suffer one thing after the other, workers several at a time."""
        began = time.monotonic()
        for_servers = [action for action in plan if action.what in SERVER_FAULTS]
        self._spawn(lambda: [self._at(began, action) for action in for_servers])
        for action in plan:
            if action.what not in SERVER_FAULTS:
                self._spawn(lambda action=action: self._at(began, action))  # type: ignore[misc]

    def wait(self, seconds: float) -> None:
        """Wait until the plan has been carried out; raises what went wrong with it."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._errors:
            raise self._errors[0]
        if any(thread.is_alive() for thread in self._threads):
            raise TimeoutError(f"the plan was not carried out within {seconds:.0f} s")

    def close(self) -> None:
        self.stop_supervising()
        for thread in self._threads:
            thread.join(90)

    def _spawn(self, work: Callable[[], object]) -> None:
        thread = threading.Thread(target=self._carefully, args=(work,), name="operator", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carefully(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)

    def _at(self, began: float, action: Action) -> None:
        if not self._closing.wait(max(0.0, began + action.at - time.monotonic())):
            self._doings[action.what](random.Random(action.seed))

    @contextmanager
    def _noting(self, what: str, pid: int | None, detail: str = "") -> Iterator[Fault]:
        fault = Fault(what, pid, time.monotonic_ns(), detail=detail)
        self.faults.append(fault)
        self.done[what] += 1
        try:
            yield fault
        finally:
            fault.ended = time.monotonic_ns()
            whom = "" if pid is None else f" {pid}"
            self._say(f"{what}{whom} {fault.detail} ({(fault.ended - fault.began) / 1e9:.1f} s)")

    # -- workers ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _someone(
        self, rng: random.Random, *, suits: Callable[[Slot], bool] = lambda slot: True
    ) -> Iterator[tuple[Slot, Worker]]:
        """Take a worker that nothing else is being done to, and that has run something."""
        slots = [slot for slot in self._fleet.slots if suits(slot)]
        rng.shuffle(slots)
        for slot in slots:
            if slot.lock.acquire(blocking=False):
                break
        else:
            slot = rng.choice(slots)
            slot.lock.acquire()
        try:
            worker = slot.worker
            assert worker is not None
            self._wait_for_sign_of_life(worker)
            self._revive(slot)
            yield slot, slot.worker or worker
        finally:
            slot.lock.release()

    def _wait_for_sign_of_life(self, worker: Worker) -> None:
        deadline = time.monotonic() + EXIT_TIMEOUT
        while not self._fleet.has_run_something(worker) and time.monotonic() < deadline:
            if self._closing.wait(0.05):
                return

    def _kill(self, rng: random.Random) -> None:
        with self._someone(rng) as (slot, worker):
            children = worker.workers() - {worker.pid}
            if children and rng.random() < 0.5:
                self._kill_child(rng.choice(sorted(children)), slot)
                return
            with self._noting("kill", worker.pid, slot.name):
                self._fleet.kill(worker)
            self._expect_orphans_to_end(worker, children)
            self._closing.wait(rng.choice([0.0, 0.0, 0.5]))
            slot.after_kill()
            self._restart_slot(slot)

    def _kill_child(self, victim: int, slot: Slot) -> None:
        """Kill one of a supervisor's processes, which starts another."""
        with self._noting("kill", victim, f"a child of {slot.name}"):
            send(victim, signal.SIGKILL)

    def _expect_orphans_to_end(self, worker: Worker, children: set[int]) -> None:
        """Those whose supervisor was killed end in order by themselves."""
        began = time.monotonic_ns()
        wait_for(lambda: not any(map(is_alive, children)), self._fleet.grace_seconds + 3.0)
        for pid in children:
            self.faults.append(Fault("orphan", pid, began, time.monotonic_ns()))
            if is_alive(pid):
                self.slow_to_stop.append(f"{pid}, a child of {worker.slot.name}, outlived its supervisor")
                send(pid, signal.SIGKILL)

    def _freeze(self, rng: random.Random) -> None:
        with self._someone(rng) as (slot, worker):
            pid = rng.choice(sorted(worker.workers()) or [worker.pid])
            with self._noting("freeze", pid, slot.name):
                send(pid, signal.SIGSTOP)
                self._closing.wait(rng.choice([0.5, self._threshold * 1.3 + 1, self._threshold * 1.3 + 2]))
                send(pid, signal.SIGCONT)

    def _cut(self, rng: random.Random) -> None:
        if not self._roads:
            self.skipped["cut"] += 1
            return
        with self._someone(rng, suits=lambda slot: bool(slot.road)) as (slot, worker):
            forgetful = rng.random() < 0.5
            detail = f"{slot.name}{', forgetful' if forgetful else ''}"
            with self._noting("cut", worker.pid, detail):
                for road in self._roads[slot.road]:
                    road.cut()
                self._closing.wait(rng.choice([1.0, self._threshold * 1.3 + 1, self._threshold * 1.3 + 3]))
                for road in self._roads[slot.road]:
                    road.repair(forgetful=forgetful)

    def _doze(self, rng: random.Random) -> None:
        """Freeze the worker that is alone with its tasks for longer than the sweep threshold: it claims them again."""
        with (
            self._someone(rng, suits=lambda slot: slot.tasks is TASKS_OF_ONE) as (slot, worker),
            self._noting("doze", worker.pid, slot.name),
        ):
            send(worker.pid, signal.SIGSTOP)
            self._closing.wait(self._threshold * 1.3 + rng.choice([1, 3]))
            send(worker.pid, signal.SIGCONT)

    def _proxies(self, slot: Slot) -> list[NetworkPath]:
        return [road for road in self._roads.get(slot.road, ()) if isinstance(road, NetworkPath)]

    def _lose_answers(self, rng: random.Random) -> None:
        """Lose some answers of one connection, each with the connection, at the next statements it sends."""
        with self._someone(rng, suits=lambda slot: bool(self._proxies(slot))) as (slot, worker):
            line, committed = rng.choice(LINES), rng.random() < 0.7
            detail = f"{slot.name}, {line}, {'after' if committed else 'before'} the commit"
            with self._noting("lose", worker.pid, detail):
                for _ in range(rng.randint(1, 5)):
                    losses = [(road, road.lose_next(line, committed=committed)) for road in self._proxies(slot)]
                    wait_for(lambda losses=losses: any(loss.happened.is_set() for _, loss in losses), 1.0)  # type: ignore[misc]
                    for road, loss in losses:
                        road.withdraw(loss)

    def _swallow(self, rng: random.Random) -> None:
        """Swallow the answers on one connection, or all, which stay open afterwards as if nothing had been."""
        with self._someone(rng, suits=lambda slot: bool(self._proxies(slot))) as (slot, worker):
            line = rng.choice([*LINES, ALL_SESSIONS])
            # Without its heartbeat it counts as dead, until it gives up waiting for the answer.
            cuts_off = line in ("gw:heartbeat", ALL_SESSIONS)
            with self._noting("mute" if cuts_off else "swallow", worker.pid, f"{slot.name}, {line or 'all'}") as fault:
                for road in self._proxies(slot):
                    road.swallow(line)
                self._closing.wait(rng.choice([1.0, self._threshold * 1.3 + 1]))
                for road in self._proxies(slot):
                    road.heal(line)
            if cuts_off:
                assert fault.ended is not None
                fault.ended += int(MAINTENANCE_RESPONSE_TIMEOUT.total_seconds() * 1e9)

    def _deliver_late(self, rng: random.Random) -> None:
        """Break the connection of a claim, which arrives at the server when its worker has connected again."""
        with (
            self._someone(rng, suits=lambda slot: bool(self._proxies(slot))) as (slot, worker),
            self._noting("late", worker.pid, slot.name) as fault,
        ):
            armed = [(road, road.delay_next("gw:claim", mark=CLAIM)) for road in self._proxies(slot)]
            wait_for(lambda: any(late.happened.is_set() for _, late in armed), 2.0)
            for road, late in armed:
                road.withdraw(late)
            self._closing.wait(rng.choice([0.0, 1.0, LATE]))
            for _, late in armed:
                if late.happened.is_set():
                    late.deliver()
                    fault.detail += ", arrived"

    def _delay(self, rng: random.Random) -> None:
        with (
            self._someone(rng, suits=lambda slot: bool(self._proxies(slot))) as (slot, worker),
            self._noting("delay", worker.pid, slot.name),
        ):
            for road in self._proxies(slot):
                road.delay(rng.choice([0.1, 0.5]))
            self._closing.wait(3.0)
            for road in self._proxies(slot):
                road.heal()

    def _stop(self, rng: random.Random) -> None:
        with self._someone(rng) as (slot, worker):
            children = worker.workers() - {worker.pid}
            with self._noting("stop", worker.pid, slot.name) as fault:
                self.stop_gracefully(worker)
            self.faults += [replace(fault, pid=pid) for pid in children]
            self._restart_slot(slot)

    def stop_gracefully(self, worker: Worker) -> None:
        """Send SIGTERM and see that it ends within the grace period and a second."""
        self._fleet.request_stop(worker)
        most = self._fleet.grace_seconds + 1.0
        # The machine may be busy; what counts is the promise, and that nothing hangs.
        if self._fleet.wait_for_end(worker, most + 2.0):
            return
        if worker.is_ours:
            self.slow_to_stop.append(f"{worker.slot.name} ({worker.pid}) did not end within {most:g} s of SIGTERM")
        self._fleet.kill(worker)

    def _restart_slot(self, slot: Slot) -> None:
        if not self._closing.is_set():
            self._fleet.start(slot)

    # -- servers ------------------------------------------------------------------------------------------------------

    def _crash(self, rng: random.Random) -> None:
        how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGQUIT])
        with self._noting("crash", None, how.name):
            self._cluster.restart(how, down_for=rng.choice([0.0, 0.3, 1.0]))

    def _restart(self, rng: random.Random) -> None:
        with self._noting("restart", None, "SIGINT"):
            self._cluster.restart(signal.SIGINT, down_for=rng.choice([0.0, 0.5]))

    def _crash_backend(self, rng: random.Random) -> None:
        with self._noting("backend", None):
            self._cluster.crash_a_backend()

    def _stall(self, rng: random.Random) -> None:
        with self._noting("stall", None):
            self._cluster.stall(rng.choice([1.0, self._threshold + 1, self._threshold * 1.3 + 2]))

    def _lock_jobs(self, rng: random.Random) -> None:
        seconds = rng.choice([0.5, 2.0, self._threshold * 1.3 + 1])
        with self._noting("lock", None, f"{seconds:g} s"):
            self._cluster.lock_jobs(seconds)

    def _lose_standby(self, rng: random.Random) -> None:
        with self._noting("lonely", None):
            self._cluster.lose_standby(rng.choice([0.5, 2.0]))

    def _fail_over(self, rng: random.Random) -> None:
        how = rng.choice([signal.SIGKILL, signal.SIGQUIT, signal.SIGINT])
        with self._noting("failover", None, how.name):
            old = self._cluster.fail_over(how, noticed_after=rng.choice([0.0, 1.0, self._threshold * 1.3 + 1]))
        way = self._cluster.bring_back(old, by_rewinding=rng.random() < 0.5)
        self._say(f"server {old.name} follows again, by {way}")

    def _terminate(self, rng: random.Random) -> None:
        with self._noting("terminate", None) as fault:
            fault.detail = f"{self._cluster.terminate_backends(rng)} connections"

    # -- rules for claims ---------------------------------------------------------------------------------------------

    def _in_turn(self, what: str, change: Callable[[random.Random], None], rng: random.Random) -> None:
        """Make one change at a time; one that has waited for long is left out, so that they do not pile up."""
        if not self._changes.acquire(timeout=TURN):
            self.skipped[what] += 1
            return
        try:
            change(rng)
        finally:
            self._changes.release()

    def _pause(self, rng: random.Random) -> None:
        target = rng.choice(TARGETS)
        with self._changing("pause", target) as client:
            is_confirmed = self._make(lambda: client.pauses.pause(target))
            began = time.monotonic_ns()
            self._closing.wait(rng.choice([0.2, 1.0, 2.0]))
            if is_confirmed:
                self.paused.append(Paused(target, began, time.monotonic_ns()))
            self._make(lambda: client.pauses.resume(target))

    def _change_limit(self, rng: random.Random) -> None:
        """Change the number of a limit, or remove the limit by field with its index, and set it again."""
        if rng.random() < 0.5:
            most = rng.randint(1, MOST_RUNNING)
            with self._changing("limit", f"{RUNNING} {most}") as client:
                self._make(lambda: client.limits.set(RUNNING, running=most))
            return
        with self._changing("limit", FIELD) as client:
            began = time.monotonic_ns()
            self._make(lambda: client.limits.remove(FIELD))
            is_confirmed = self._make(lambda: client.limits.set(FIELD, **LIMITS[FIELD]))
            self.unlimited.append(Unlimited(FIELD, began, time.monotonic_ns() if is_confirmed else NEVER))

    def _lock_for_others(self, rng: random.Random) -> None:
        """Lock a job or a queue in a name that knows nothing of it: of a living worker, of a dead one, or of none."""
        self._closing.wait(rng.random())
        try:
            with psycopg.connect(self._cluster.conninfo(), autocommit=True) as connection:
                living = [name for (name,) in connection.execute(LIVING) if HOLDER.fullmatch(name)]
                kind = rng.choice(["living", "living", "dead", "none"] if living else ["dead", "none"])
                name = rng.choice(living) if kind == "living" else f"gw-gone-{rng.getrandbits(32):x}"
                with connection.transaction():
                    if kind == "dead":
                        connection.execute(DEAD, {"name": name})
                    locks_job = kind == "dead" or (kind == "living" and rng.random() < 0.5)
                    statement = FOREIGN_JOB if locks_job else FOREIGN_QUEUE
                    locked = connection.execute(statement, {"name": name}).fetchall()
        except psycopg.OperationalError:
            self.skipped["foreign"] += 1
            return
        self.done["foreign" if locked else "foreign, nothing free"] += 1
        self._say(f"foreign {'job' if locks_job else 'queue'} lock of {kind} {name}: {locked}")

    @contextmanager
    def _changing(self, what: str, detail: str) -> Iterator[Client]:
        with Client(self._cluster.conninfo(), max_pool_size=1) as client:
            began = time.monotonic()
            self.done[what] += 1
            yield client
            self._say(f"{what} {detail} ({time.monotonic() - began:.1f} s)")

    def _make(self, change: Callable[[], PauseResult]) -> bool:
        """Make a change until it is answered; again, for some time, until all workers that live have confirmed it."""
        deadline = time.monotonic() + CONFIRMATION
        is_answered = False
        while not is_answered or time.monotonic() < deadline:
            try:
                missing = [worker_id for worker_id in change().unconfirmed if _lives(worker_id)]
            except GraphileWorkerError:
                time.sleep(0.1)
                if time.monotonic() > 2 * CONFIRMATION + deadline:
                    raise
            else:
                is_answered = True
                if not missing:
                    return True
        return False


def _lives(worker_id: str) -> bool:
    holder = HOLDER.fullmatch(worker_id)
    return holder is not None and is_alive(int(holder[1]))
