"""The promises, checked from outside: what was added, what ran, what was done to whom, and what is left.

Every rule is a function of these, and answers with sentences about what broke it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from .faults import Fault
from .ledger import Run, Tick
from .limits import (
    FIELD,
    LIMITS,
    MOST_RUNNING,
    RUNNING,
    BucketChange,
    LimitedClaim,
    Paused,
    Unlimited,
    by_limit,
    claims_over_a_limit,
    runs_without_a_claim,
    starts_over_a_rate,
    too_many_at_a_time,
)
from .producers import Added
from .stall_detector import Stall, held_up

SECOND: Final = 1_000_000_000
MILLISECOND: Final = SECOND // 1_000
BEFORE: Final = 1 * SECOND
"""How long before a run a failure may have been that concerns it: its claim was not yet on disk, or it waited."""

AFTER: Final = 3 * SECOND
"""How long after its end a run's result may be under way, on a busy machine and while connections are made again."""

SERVER_FAULTS: Final = frozenset({"crash", "failover", "backend", "restart", "stall"})
CUTTING_FAULTS: Final = frozenset({"freeze", "doze", "cut", "mute"})
LOSING_FAULTS: Final = frozenset({"crash", "failover"})
HARMLESS_FAULTS: Final = frozenset({"lose", "swallow", "late", "delay", "lock"})
"""What no job may run again for: lost and late answers, and a table that stays locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job that is still in the table when all is over."""

    job_id: int
    n: int
    attempts: int
    max_attempts: int
    locked_by: str | None
    has_key: bool
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A row of history: one ended attempt."""

    job_id: int
    attempt: int
    state: str
    final: bool


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Everything there is to judge by."""

    added: Sequence[Added]
    runs: Sequence[Run]
    faults: Sequence[Fault]
    rows: Sequence[Row]
    history: Sequence[Ended] = ()
    """What workers of gw recorded of ended attempts."""
    lost: Mapping[int, set[int]] = field(default_factory=dict)
    """For each process the jobs it reported as lost."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """When each process ended."""
    foreign: frozenset[int] = frozenset()
    """Processes that are not ours: they have no heartbeat, and say nothing of jobs they lost."""
    ticks: Sequence[Tick] = ()
    minutes: Sequence[datetime] = ()
    """The minutes for which each job that recurs must have run."""
    delayed: frozenset[int] = frozenset()
    """Jobs that were returned to run later: others may overtake them."""
    claims: Sequence[LimitedClaim] = ()
    """The claims of limited tasks."""
    buckets: Sequence[BucketChange] = ()
    unlimited: Sequence[Unlimited] = ()
    paused: Sequence[Paused] = ()
    stalls: Sequence[Stall] = ()
    """When the machine stood still, and nothing under way came any further."""


@dataclass(slots=True)
class Findings:
    """What broke a promise, and figures about what did not."""

    broken: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


def judge(evidence: Evidence) -> Findings:
    """Check all promises."""
    findings = Findings()
    court = _Court(evidence, findings.figures)
    for rule in (
        court.nothing_is_lost,
        court.nothing_strange_is_left,
        court.extra_runs_are_explained,
        court.attempts_do_not_overlap,
        court.queues_do_not_overlap,
        court.queues_keep_their_order,
        court.the_last_keyed_add_runs,
        court.the_retired_stay_retired,
        court.nothing_runs_too_early,
        court.every_minute_comes_once,
        court.no_job_is_in_two_places,
        court.no_job_is_in_neither_place,
        court.no_end_is_recorded_twice,
        court.groups_go_on_exactly_once,
        court.limits_are_kept,
        court.rates_are_kept,
        court.full_values_hold_nothing_up,
        court.nothing_paused_starts,
    ):
        findings.broken.extend(rule())
    return findings


class _Court:
    def __init__(self, evidence: Evidence, figures: Counter[str]) -> None:
        self._evidence = evidence
        self._figures = figures
        self._excused: set[int] = set()
        self._accused: set[int] = set()
        self._added = {each.n: each for each in evidence.added}
        self._rows = {row.n: row for row in evidence.rows}
        self._runs: dict[int, list[Run]] = defaultdict(list)
        self._by_job: dict[int, list[Run]] = defaultdict(list)
        for run in evidence.runs:
            self._runs[run.n].append(run)
            self._by_job[run.job_id].append(run)
        self._of_servers = [fault for fault in evidence.faults if fault.what in SERVER_FAULTS]
        # While another session keeps the table locked, nothing gets any further either.
        locked = [(fault.began, fault.ended or fault.began) for fault in evidence.faults if fault.what == "lock"]
        self._held_up: Sequence[Stall] = (*evidence.stalls, *locked)
        self._of_pid: dict[int, list[Fault]] = defaultdict(list)
        for fault in evidence.faults:
            if fault.pid is not None:
                self._of_pid[fault.pid].append(fault)

    # -- rules --------------------------------------------------------------------------------------------------------

    def nothing_is_lost(self) -> Iterator[str]:
        for added in self._evidence.added:
            if added.answered is None or added.kind in ("keyed", "removed"):
                continue
            self._figures["adds answered"] += 1
            if added.kind == "final":
                if added.n not in self._rows:
                    yield f"job {added.n} was to fail for good, and is not there to be seen"
            elif not any(run.how == "ok" for run in self._runs[added.n]):
                yield f"job {added.n} ({added.kind}) was added and never ran to its end{self._story(added.n)}"

    def nothing_strange_is_left(self) -> Iterator[str]:
        for row in self._evidence.rows:
            added = self._added.get(row.n)
            if added is None:
                yield f"job {row.job_id} is there, and nobody added number {row.n}"
            elif row.locked_by is not None:
                yield f"job {row.n} ({added.kind}) is still locked by {row.locked_by}"
            elif row.attempts < row.max_attempts:
                yield f"job {row.n} ({added.kind}) could still run, and does not{self._story(row.n)}"
            elif added.kind not in ("final", "removed", "keyed"):
                yield f"job {row.n} ({added.kind}) failed for good: {row.last_error}"
            elif added.kind != "final" and row.has_key:
                yield f"job {row.n} ({added.kind}) failed for good and was neither removed nor superseded"

    def extra_runs_are_explained(self) -> Iterator[str]:
        for n, runs in self._runs.items():
            for before, after in pairwise(runs):
                if before.how == "failed":
                    continue
                self._figures["extra runs"] += 1
                reason = self._reason_to_repeat(before, after)
                if reason is None:
                    yield f"job {n} ran again without a reason{self._story(n)}"
                else:
                    self._figures[f"extra runs: {reason}"] += 1

    def attempts_do_not_overlap(self) -> Iterator[str]:
        for job_id, runs in self._by_job.items():
            for one, other in self._overlaps(runs):
                yield from self._overlap(f"as {job_id}", one, other)

    def queues_do_not_overlap(self) -> Iterator[str]:
        for queue, runs in self._by_queue().items():
            for one, other in self._overlaps(runs):
                if one.job_id != other.job_id:
                    yield from self._overlap(f"in queue {queue}", one, other)

    def _overlaps(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
        """Return which of these runs, in the order of their beginning, went on at the same time."""
        running: list[Run] = []
        for run in runs:
            running = [each for each in running if self._end(each) > run.began]
            yield from ((each, run) for each in running)
            running.append(run)

    def queues_keep_their_order(self) -> Iterator[str]:
        for (queue, _), runs in self._by_queue_and_tenant().items():
            newest: Run | None = None  # of those that have begun, the one that was added last
            overtaken: dict[int, list[Run]] = defaultdict(list)
            for run in self._first_runs(runs):
                added = self._added[run.n]
                if added.kind == "keyed" or added.answered is None or run.job_id in self._evidence.delayed:
                    continue  # a job that is replaced may keep its place, or lose it
                self._figures["runs in order"] += 1
                if newest is not None and self._transaction(run) < self._transaction(newest):
                    overtaken[newest.n].append(run)
                else:
                    newest = run
            for n, late in overtaken.items():
                yield (
                    f"in queue {queue} job {n} overtook {len(late)} that were added before it, such as job {late[0].n}"
                    f"{self._story(n, late[0].n)}"
                )

    def the_last_keyed_add_runs(self) -> Iterator[str]:
        by_key: dict[str, list[Added]] = defaultdict(list)
        for added in self._evidence.added:
            if added.kind == "keyed" and added.spec.job_key is not None:
                by_key[added.spec.job_key].append(added)
        for key, adds in by_key.items():
            answered = [each.n for each in adds if each.answered is not None]
            if not answered:
                continue
            last = max(answered)
            self._figures["keyed adds answered"] += len(answered)
            # One that was not answered may have replaced it all the same.
            candidates = [each.n for each in adds if each.n >= last]
            if not any(run.how == "ok" for n in candidates for run in self._runs[n]):
                yield f"the last add under key {key} (job {last}) never ran to its end{self._story(last)}"

    def the_retired_stay_retired(self) -> Iterator[str]:
        for added in self._evidence.added:
            if added.removed is None:
                continue
            self._figures["removed"] += 1
            late = [run for run in self._runs[added.n] if run.began > added.removed and not self._was_cut_off(run)]
            if added.holder is not None:
                self._figures["removed while running"] += 1
                # It had been claimed by then; its own process may have begun it just after.
                claimed = [run for run in late if run.pid == added.holder or run.pid in self._evidence.foreign][:1]
                late = [run for run in late if run not in claimed]
            if late:
                yield f"job {added.n} began {_ago(late[0].began, added.removed)} after it was removed"

    def nothing_runs_too_early(self) -> Iterator[str]:
        for added in self._evidence.added:
            for run in self._runs[added.n] if added.delay and added.kind == "scheduled" else ():
                self._figures["scheduled runs"] += 1
                early = added.asked_wall + added.delay * SECOND - run.began_wall
                # The server counts in microseconds, and Node.js in milliseconds.
                if early > (MILLISECOND if run.pid in self._evidence.foreign else 10_000):
                    yield f"job {added.n} began {early / SECOND:.3f} s before its time"

    def every_minute_comes_once(self) -> Iterator[str]:
        jobs: dict[tuple[str, datetime], set[int]] = defaultdict(set)
        for tick in self._evidence.ticks:
            jobs[tick.name, tick.minute].add(tick.job_id)
        for (name, minute), ids in jobs.items():
            self._figures["recurring jobs"] += 1
            if len(ids) > 1:
                yield f"{name} was added {len(ids)} times for {minute:%H:%M}"
        names = {tick.name for tick in self._evidence.ticks}
        for name in names:
            for minute in self._evidence.minutes:
                if (name, minute) not in jobs:
                    yield f"{name} was not added for {minute:%H:%M}"

    def no_job_is_in_two_places(self) -> Iterator[str]:
        final = {ended.job_id: ended for ended in self._final()}
        self._figures["jobs in history"] = len(final)
        for row in self._evidence.rows:
            if row.job_id in final:
                yield f"job {row.n} is in the table and in history: {final[row.job_id]}{self._story(row.n)}"

    def no_job_is_in_neither_place(self) -> Iterator[str]:
        known = {row.job_id for row in self._evidence.rows} | {ended.job_id for ended in self._final()}
        for job_id in self._by_job.keys() - known:
            excuse = self._excuse_to_be_gone(self._by_job[job_id])
            if excuse is None:
                numbers = self._numbers_of(job_id)
                yield f"job {max(numbers)} is neither in the table nor in history as {job_id}{self._story(*numbers)}"
            else:
                self._figures[f"jobs in neither place: {excuse}"] += 1
        # A tick does not say which process ran it.
        for tick in () if self._evidence.foreign else self._evidence.ticks:
            if tick.job_id not in known:
                yield f"{tick.name} of {tick.minute:%H:%M} is neither in the table nor in history as {tick.job_id}"

    def no_end_is_recorded_twice(self) -> Iterator[str]:
        for job_id, count in Counter(ended.job_id for ended in self._final()).items():
            if count > 1:
                yield f"job {job_id} has {count} final rows in history{self._story(*self._numbers_of(job_id))}"
        self._figures["attempts in history"] = len(self._evidence.history)
        ended = [row for row in self._evidence.history if row.state != "removed"]  # that row stands for no attempt
        for (job_id, attempt), count in Counter((row.job_id, row.attempt) for row in ended).items():
            # A job that is replaced counts its attempts from zero.
            if count > 1 and count > len(numbers := self._numbers_of(job_id)):
                yield f"attempt {attempt} of job {job_id} ended {count} times in history{self._story(*numbers)}"

    def groups_go_on_exactly_once(self) -> Iterator[str]:
        members: dict[int, list[int]] = defaultdict(list)
        for added in self._evidence.added:
            if added.last is not None:
                members[added.last].append(added.n)
        for last, numbers in members.items():
            ids = {run.job_id for run in self._runs[last]}
            if len(ids) > 1:
                yield f"the last job {last} of a group was added {len(ids)} times{self._story(last)}"
            for run in self._runs[last][:1]:
                self._figures["groups that went on"] += 1
                for n in numbers:
                    if not any(each.how == "ok" and self._end(each) <= run.began for each in self._runs[n]):
                        yield f"the last job {last} of a group began before member {n} ended{self._story(last, n)}"

    def limits_are_kept(self) -> Iterator[str]:
        yield from claims_over_a_limit(self._evidence.claims)
        for (task, value), runs in by_limit(self._evidence.runs, self._limit_of).items():
            self._figures[f"runs within the limit of {task}"] += len(runs)
            most = MOST_RUNNING if task == RUNNING else LIMITS[task]["running"]
            for run, beside in too_many_at_a_time(runs, most, self._end):
                numbers = [each.n for each in (run, *beside) if not self._has_lost_its_lock(each)]
                if len(numbers) > most:
                    yield f"{len(numbers)} jobs of {task} (value {value}) ran at the same time{self._story(*numbers)}"
                else:
                    self._figures["runs beside a full limit, void"] += 1

    def rates_are_kept(self) -> Iterator[str]:
        limited = [run for run in self._evidence.runs if self._task_of(run) in LIMITS]
        yield from runs_without_a_claim(limited, self._evidence.claims)
        yield from starts_over_a_rate(self._evidence.claims, self._evidence.buckets)
        self._figures["claims of limited tasks"] = len(self._evidence.claims)

    def full_values_hold_nothing_up(self) -> Iterator[str]:
        last = max((run.began for n in self._numbers_of_kind("full") for run in self._runs[n]), default=None)
        for n in self._numbers_of_kind("beside"):
            for run in self._runs[n][:1]:
                self._figures["jobs beside a full value"] += 1
                if last is None or run.began > last:
                    yield f"job {n} waited until the jobs of a full value had run{self._story(n)}"

    def nothing_paused_starts(self) -> Iterator[str]:
        for paused in self._evidence.paused:
            self._figures["pauses"] += 1
            for run in self._evidence.runs:
                if paused.began < run.began < paused.ended and self._must_not_start(run, paused):
                    since = _ago(run.began, paused.began)
                    yield f"job {run.n} began {since} after {paused.target} was paused{self._story(run.n)}"

    def _must_not_start(self, run: Run, paused: Paused) -> bool:
        if run.pid in self._evidence.foreign or run.n not in self._added or self._was_cut_off(run):
            return False
        spec = self._added[run.n].spec
        return paused.concerns(str(spec.task), spec.queue_name)

    def _limit_of(self, run: Run) -> tuple[str, str | None] | None:
        """Return the task and the value by which a run counts; None without a limit."""
        task = self._task_of(run)
        if "running" not in LIMITS.get(task, ()):
            return None
        if any(each.task == task and each.began < run.began < each.ended for each in self._evidence.unlimited):
            return None
        return task, self._payload_of(run)["tenant"] if task == FIELD else None

    def _has_lost_its_lock(self, run: Run) -> bool:
        return self._was_cut_off(run) and self._is_void(run)

    def _task_of(self, run: Run) -> str:
        added = self._added.get(run.n)
        return "" if added is None else str(added.spec.task)

    def _payload_of(self, run: Run) -> Any:
        return self._added[run.n].spec.payload

    def _numbers_of_kind(self, kind: str) -> list[int]:
        return [added.n for added in self._evidence.added if added.kind == kind]

    # -- reasons ------------------------------------------------------------------------------------------------------

    def _reason_to_repeat(self, before: Run, after: Run) -> str | None:
        """Return the failure during which a repeated job was in flight, or None."""
        faults = [
            fault
            for run in (before, after)
            for fault in (*self._of_pid[run.pid], *self._of_servers)
            if fault.what not in HARMLESS_FAULTS and self._concerns(fault, run)
        ]
        # Several may be near; what happened closest to its end is the likeliest.
        nearest = min(faults, key=lambda fault: abs(fault.began - self._end(before)), default=None)
        return None if nearest is None else nearest.what

    def _concerns(self, fault: Fault, run: Run) -> bool:
        began, ended, over = fault.began, self._end(run), fault.ended or fault.began
        after = AFTER + held_up(self._held_up, ended, began)
        before = BEFORE + held_up(self._held_up, over, run.began)
        return began <= ended + after and over >= run.began - before

    def _overlap(self, where: str, one: Run, other: Run) -> Iterator[str]:
        """Excuse a run that had lost its claim without knowing, if its result counted for nothing."""
        cut_off = [run for run in (one, other) if self._was_cut_off(run) or self._has_lost_its_claim(run)]
        if not cut_off:
            yield f"{where} jobs {one.n} and {other.n} ran at the same time{self._story(one.n, other.n)}"
            return
        void = [run for run in cut_off if self._is_void(run)]
        if not void and id(cut_off[0]) not in self._accused:
            self._accused.add(id(cut_off[0]))
            yield (
                f"{where} jobs {one.n} and {other.n} ran at the same time, one in a worker that had been"
                f" cut off, and its result was not rejected{self._story(one.n, other.n)}"
            )
        self._excused.update(id(run) for run in void)
        self._figures["runs beside others of their queue, void"] = len(self._excused)

    def _was_cut_off(self, run: Run) -> bool:
        return any(f.what in CUTTING_FAULTS and self._concerns(f, run) for f in self._of_pid[run.pid])

    def _has_lost_its_claim(self, run: Run) -> bool:
        """Whether a server may have gone away before the claim was safe: only claims of named queues are durable."""
        added = self._added.get(run.n)
        return (
            added is not None
            and added.spec.queue_name is None
            and any(
                fault.what in LOSING_FAULTS and fault.began - BEFORE <= run.began <= (fault.ended or fault.began)
                for fault in self._of_servers
            )
        )

    def _is_void(self, run: Run) -> bool:
        """Whether its process reported the job as lost, or could not report or know it.

        A result whose confirmation was lost is sent again; when the job is gone by then, it is unknown who ended it.
        """
        if run.pid in self._evidence.foreign or run.job_id in self._evidence.lost.get(run.pid, ()):
            return True
        of_its_connections = ("cut", "mute", "lose", "swallow")
        broke_its_connection = (
            *(f for f in self._evidence.faults if f.pid is None and f.what != "lock"),
            *(f for f in self._of_pid[run.pid] if f.what in of_its_connections),
        )
        ended_it = (f for f in self._of_pid[run.pid] if f.what in ("kill", "stop", "orphan"))
        return any(self._concerns(fault, run) for fault in (*broke_its_connection, *ended_it))

    def _excuse_to_be_gone(self, runs: Sequence[Run]) -> str | None:
        """Return why nothing is known of a job that ran: other workers and removals write no history."""
        added = self._added.get(runs[0].n)
        # One that was running when it was removed stays in the table until it is settled.
        if added is not None and added.kind == "removed" and added.holder is None:
            return "removed"
        by_node = any(run.how == "ok" and run.pid in self._evidence.foreign for run in runs)
        return "completed by Node" if by_node else None

    # -- small things -------------------------------------------------------------------------------------------------

    def _final(self) -> Iterator[Ended]:
        return (ended for ended in self._evidence.history if ended.final)

    def _numbers_of(self, job_id: int) -> set[int]:
        """Return the numbers under which a job ran; one that is replaced has several."""
        return {run.n for run in self._by_job.get(job_id, ())}

    def _by_queue(self) -> Mapping[str, list[Run]]:
        queues: dict[str, list[Run]] = defaultdict(list)
        for run in self._evidence.runs:
            added = self._added.get(run.n)
            if added is not None and added.spec.queue_name is not None:
                queues[added.spec.queue_name].append(run)
        return queues

    def _by_queue_and_tenant(self) -> Mapping[tuple[str, str], list[Run]]:
        """Return the runs of each queue; a job over the limit of its tenant is overtaken by those of others."""
        queues: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for queue, runs in self._by_queue().items():
            for run in runs:
                queues[queue, self._payload_of(run)["tenant"] if self._task_of(run) == FIELD else ""].append(run)
        return queues

    def _first_runs(self, runs: Sequence[Run]) -> Iterator[Run]:
        seen: set[int] = set()
        for run in runs:
            if run.n not in seen:
                seen.add(run.n)
                yield run

    def _transaction(self, run: Run) -> int:
        return self._added[run.n].transaction

    def _end(self, run: Run) -> int:
        """When it ended; one that was cut off ended with its process."""
        return run.ended if run.ended is not None else self._evidence.ends.get(run.pid, run.began)

    def _story(self, *numbers: int) -> str:
        """Describe everything that is known of some jobs, to find the cause."""
        lines = [line for n in numbers for line in self._lines(n)]
        return "".join(f"\n      {line}" for line in lines)

    def _lines(self, n: int) -> Iterator[str]:
        added = self._added.get(n)
        if added is None:
            return
        yield f"{n}: {added.kind} queue={added.spec.queue_name} asked={_s(added.asked)} answered={_s(added.answered)}"
        for run in self._runs[n]:
            yield (
                f"{n}: ran as {run.job_id} in {run.pid}, attempt {run.attempt}, {_s(run.began)} to {_s(run.ended)}"
                f" {run.how or '(cut off)'}{' (lost)' if run.job_id in self._evidence.lost.get(run.pid, ()) else ''}"
            )
        yield from (self._fault_line(n, fault) for fault in self._faults_around(self._runs[n]))

    def _faults_around(self, runs: Sequence[Run]) -> Iterable[Fault]:
        pids = {run.pid for run in runs}
        for fault in self._evidence.faults:
            if (fault.pid in pids or fault.pid is None) and any(self._concerns(fault, run) for run in runs):
                yield fault

    def _fault_line(self, n: int, fault: Fault) -> str:
        return f"{n}: {fault.what} of {fault.pid or 'the servers'}, {_s(fault.began)} to {_s(fault.ended)}"


def _s(timestamp: int | None) -> str:
    return "never" if timestamp is None else f"{timestamp / SECOND:.3f}"


def _ago(later: int, earlier: int) -> str:
    return f"{(later - earlier) / SECOND:.3f} s"
