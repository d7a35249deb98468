"""The judge of a run: each promise, kept and broken."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gw_core import JobSpec

from .app import repetitions
from .faults import Fault
from .invariants import SECOND, Ended, Evidence, Row, judge
from .ledger import Run, Tick, read_ledger
from .limits import FIELD, RATE, RUNNING, BucketChange, LimitedClaim, Paused, Unlimited
from .producers import Added

ONE, OTHER = 100, 200


def at(seconds: float) -> int:
    return int(seconds * SECOND)


def added(
    n: int, *, kind: str = "plain", task: str = "chaos", transaction: int = 1, answered: bool = True, **options: Any
) -> Added:
    payload = {"n": n, "tenant": options.pop("tenant", None)}
    more = {name: options.pop(name) for name in ("removed", "holder", "delay", "last") if name in options}
    spec = JobSpec(task=task, payload=payload, **options)
    return Added(n=n, kind=kind, spec=spec, transaction=transaction, asked=0, answered=1 if answered else None, **more)


def ran(
    n: int, began: float, ended: float | None, *, pid: int = ONE, how: str = "ok", job_id: int | None = None
) -> Run:
    return Run(
        pid=pid,
        job_id=job_id or n,
        attempt=1,
        n=n,
        began=at(began),
        began_wall=at(began),
        ended=None if ended is None else at(ended),
        how="" if ended is None else how,
    )


def row(n: int, **differences: Any) -> Row:
    failed = Row(job_id=n, n=n, attempts=1, max_attempts=1, locked_by=None, has_key=False, last_error="as planned")
    return replace(failed, **differences)


def fault(what: str, began: float, ended: float, *, pid: int | None = None) -> Fault:
    return Fault(what, pid, at(began), at(ended))


def final(job_id: int, *, attempt: int = 1) -> Ended:
    return Ended(job_id, attempt, "completed", True)


def retried(job_id: int, *, attempt: int = 1) -> Ended:
    return Ended(job_id, attempt, "retried", False)


def claimed(job_id: int, *, task: str = RUNNING, locked: int = 1, most: int | None = 3, transaction: int = 1) -> Any:
    return LimitedClaim(task, None, job_id, 1, transaction, locked, most)


def within_limit(*times: tuple[float, float], task: str = RUNNING, **more: Any) -> Evidence:
    """Return the evidence of jobs of one tenant that ran at these times, each in a process of its own."""
    jobs = [added(n, task=task, tenant="t") for n in range(1, len(times) + 1)]
    runs = [ran(n, *time, pid=n) for n, time in enumerate(times, start=1)]
    claims = [claimed(run.job_id, task=task) for run in runs]
    return evidence(*jobs, **{"runs": runs, "claims": claims, **more})


def paced(*, jobs: int, tokens: float, before: float | None = None, seconds: float | None = None) -> Evidence:
    """Return the evidence of one claim of this many jobs, and of what it left in the bucket."""
    return evidence(
        *(added(n, task=RATE) for n in range(1, jobs + 1)),
        runs=[ran(n, n, n + 0.5) for n in range(1, jobs + 1)],
        claims=[claimed(n, task=RATE, most=None) for n in range(1, jobs + 1)],
        buckets=[BucketChange(RATE, 1, before, tokens, seconds)],
    )


def evidence(*jobs: Added, runs: list[Run], **more: Any) -> Evidence:
    """Return the evidence of these runs; by default, each job that ran is in one place."""
    left = {row.job_id for row in more.get("rows", ())}
    ended = {run.job_id for run in runs} | {tick.job_id for tick in more.get("ticks", ())}
    history = [final(job_id) for job_id in ended - left]
    return Evidence(added=jobs, runs=runs, **{"faults": [], "rows": [], "history": history, **more})


NOON, AFTER_NOON = (datetime(2026, 11, 21, 12, minute, tzinfo=UTC) for minute in (0, 1))
QUEUED = {"kind": "queued", "queue_name": "q"}
TWICE = [ran(1, 1, 9, how="failed", job_id=7), ran(1, 5, 6, pid=OTHER, job_id=7)]
LATE = [ran(1, 1, 9, pid=ONE), ran(2, 5, 6, pid=OTHER)]
FROZEN = [fault("freeze", 2, 8, pid=ONE)]
KILLED = [fault("kill", 2, 2, pid=ONE)]
CRASHED = [fault("crash", 1.5, 1.6)]
CRASHED_LATER: dict[str, Any] = {
    "runs": [ran(1, 1, 2), ran(1, 12, 13, pid=OTHER)],
    "faults": [fault("crash", 8, 8.1)],
}
GROUP = [added(1, kind="member", last=2), added(2, kind="last")]
STOOD_STILL = [(at(2.5), at(7))]

KEPT = {
    "it ran": evidence(added(1), runs=[ran(1, 1, 2)]),
    "an add without an answer need not run": evidence(added(1, answered=False), runs=[]),
    "it failed and ran again": evidence(
        added(1, kind="failing"), runs=[ran(1, 1, 2, how="failed"), ran(1, 3, 4, pid=OTHER)]
    ),
    "it failed for good as it was to": evidence(
        added(1, kind="final"), runs=[ran(1, 1, 2, how="failed")], rows=[row(1)]
    ),
    "its worker was killed": evidence(
        added(1), runs=[ran(1, 1, None), ran(1, 7, 8, pid=OTHER)], faults=KILLED, ends={ONE: at(2)}
    ),
    "its claim was lost in a crash": evidence(added(1), runs=[ran(1, 1, 2), ran(1, 3, 4, pid=OTHER)], faults=CRASHED),
    "its result was lost in a crash, for the machine stood still": evidence(
        added(1), **CRASHED_LATER, stalls=STOOD_STILL
    ),
    "its result waited for a locked table, and its worker was killed": evidence(
        added(1),
        runs=[ran(1, 1, 2), ran(1, 12, 13, pid=OTHER)],
        faults=[fault("lock", 1.5, 8), fault("kill", 9, 9, pid=ONE)],
    ),
    "its claim was lost with a server": evidence(
        added(1), runs=[ran(1, 1, 9), ran(1, 3, 4, pid=OTHER)], faults=CRASHED, lost={ONE: {1}}
    ),
    "its worker was frozen": evidence(
        added(1), runs=[ran(1, 1, 9), ran(1, 7, 8, pid=OTHER)], faults=FROZEN, lost={ONE: {1}}
    ),
    "two attempts beside each other, the first void": evidence(added(1), runs=TWICE, faults=FROZEN, lost={ONE: {7}}),
    "a queue one after the other": evidence(
        added(1, **QUEUED), added(2, transaction=2, **QUEUED), runs=[ran(1, 1, 2), ran(2, 2, 3)]
    ),
    "a queue beside a run that was presumed dead and is void": evidence(
        added(1, **QUEUED), added(2, **QUEUED), runs=LATE, faults=FROZEN, lost={ONE: {1}}
    ),
    "a queue after a killed run": evidence(
        added(1, **QUEUED),
        added(2, **QUEUED),
        runs=[ran(1, 1, None), ran(2, 3, 4, pid=OTHER), ran(1, 5, 6, pid=OTHER)],
        faults=KILLED,
        ends={ONE: at(2)},
        delayed=frozenset({1}),
    ),
    "a job that goes back to run later is overtaken": evidence(
        added(1, **QUEUED),
        added(2, transaction=2, **QUEUED),
        runs=[ran(2, 1, 2), ran(1, 3, 4)],
        delayed=frozenset({1}),
    ),
    "the last keyed add ran": evidence(
        added(1, kind="keyed", job_key="k"), added(2, kind="keyed", job_key="k"), runs=[ran(2, 1, 2)]
    ),
    "a keyed add without an answer replaced the last": evidence(
        added(1, kind="keyed", job_key="k"),
        added(2, kind="keyed", job_key="k", answered=False),
        runs=[ran(2, 1, 2)],
    ),
    "a removed job that was running ended": evidence(
        added(1, kind="removed", removed=at(2), holder=ONE), runs=[ran(1, 1, 3)]
    ),
    "a removed job that had been claimed began": evidence(
        added(1, kind="removed", removed=at(2), holder=ONE), runs=[ran(1, 2.1, 3)]
    ),
    "a recurring job each minute, again after a crash": evidence(
        runs=[],
        ticks=[Tick("tick", NOON, 1), Tick("tick", AFTER_NOON, 2), Tick("tick", AFTER_NOON, 2)],
        minutes=[NOON, AFTER_NOON],
    ),
    "a scheduled job in time": evidence(added(1, kind="scheduled", delay=1.0), runs=[ran(1, 1, 2)]),
    "each attempt is recorded": evidence(
        added(1, kind="failing"),
        runs=[ran(1, 1, 2, how="failed"), ran(1, 3, 4)],
        history=[retried(1), final(1, attempt=2)],
    ),
    "it failed permanently, and its attempt is in history": evidence(
        added(1, kind="final"), runs=[ran(1, 1, 2, how="failed")], rows=[row(1)], history=[Ended(1, 1, "failed", False)]
    ),
    "a job of Node is gone": evidence(added(1), runs=[ran(1, 1, 2)], history=[], foreign=frozenset({ONE})),
    "a job that was replaced and that Node completed is gone": evidence(
        added(1, kind="keyed", job_key="k"),
        added(2, kind="keyed", job_key="k"),
        runs=[ran(1, 1, None, job_id=7), ran(2, 7, 8, pid=OTHER, job_id=7)],
        faults=KILLED,
        ends={ONE: at(2)},
        history=[],
        foreign=frozenset({OTHER}),
    ),
    "a job of Node began in the millisecond of its time": evidence(
        added(1, kind="scheduled", delay=1.0009), runs=[ran(1, 1, 2)], foreign=frozenset({ONE})
    ),
    "a recurring job of Node, perhaps, is gone": evidence(
        runs=[], ticks=[Tick("tick", NOON, 1)], history=[], foreign=frozenset({ONE})
    ),
    "a removed job that ran is gone": evidence(
        added(1, kind="removed", removed=at(3)), runs=[ran(1, 1, 2, how="failed")], history=[retried(1)]
    ),
    "a job that was replaced counts its attempts from zero": evidence(
        added(1, kind="keyed", job_key="k"),
        added(2, kind="keyed", job_key="k"),
        runs=[ran(1, 1, 2, how="failed", job_id=7), ran(2, 3, 4, job_id=7)],
        history=[retried(7), final(7)],
    ),
    "the last job of a group": evidence(*GROUP, runs=[ran(1, 1, 2), ran(2, 3, 4)]),
    "the last job of a group, again after its worker was killed": evidence(
        *GROUP, runs=[ran(1, 0, 0.1), ran(2, 1, None), ran(2, 7, 8, pid=OTHER)], faults=KILLED, ends={ONE: at(2)}
    ),
    "as many as may run at a time": within_limit((1, 4), (2, 4), (3, 4), (4, 5)),
    "one more than may run at a time, for one was presumed dead": within_limit(
        (1, 9), (7, 9), (7, 9), (7, 9), faults=[fault("freeze", 2, 6, pid=1)], lost={1: {1}}
    ),
    "more than may run at a time, while there was no limit": within_limit(
        (1, 4), (1, 4), (1, 4), task=FIELD, unlimited=[Unlimited(FIELD, at(0), at(2))]
    ),
    "jobs of two tenants": evidence(
        *(added(n, task=FIELD, tenant=f"t{n % 2}") for n in range(1, 5)),
        runs=[ran(n, 1, 2, pid=n) for n in range(1, 5)],
        claims=[claimed(n, task=FIELD) for n in range(1, 5)],
    ),
    "a job over the limit of its tenant is overtaken": evidence(
        added(1, task=FIELD, tenant="t0", **QUEUED),
        added(2, task=FIELD, tenant="t1", transaction=2, **QUEUED),
        runs=[ran(2, 1, 2), ran(1, 3, 4)],
        claims=[claimed(n, task=FIELD) for n in (1, 2)],
    ),
    "a full bucket is spent": paced(jobs=4, tokens=0),
    "a bucket that has filled again is spent": paced(jobs=3, tokens=0, before=1, seconds=0.05),
    "a job beside a full value": evidence(
        added(1, kind="full"),
        added(2, kind="beside"),
        added(3, kind="full"),
        runs=[ran(n, n, n + 1) for n in (1, 2, 3)],
    ),
    "a job began before its pause and after it": evidence(
        added(1), added(2), runs=[ran(1, 1, 4), ran(2, 5, 6)], paused=[Paused("task:chaos", at(2), at(3))]
    ),
    "a job of another task began during a pause": evidence(
        added(1), runs=[ran(1, 2, 3)], paused=[Paused("task:other", at(1), at(4))]
    ),
    "Node does not know of a pause": evidence(
        added(1), runs=[ran(1, 2, 3)], paused=[Paused("all", at(1), at(4))], foreign=frozenset({ONE})
    ),
}

BROKEN = {
    "it never ran": (evidence(added(1), runs=[]), "never ran to its end"),
    "it was cut off and never ran again": (evidence(added(1), runs=[ran(1, 1, None)]), "never ran to its end"),
    "it vanished instead of failing": (evidence(added(1, kind="final"), runs=[]), "not there to be seen"),
    "it ran twice": (evidence(added(1), runs=[ran(1, 1, 2), ran(1, 3, 4)]), "ran again without a reason"),
    "it ran twice, and somebody else was killed": (
        evidence(added(1), runs=[ran(1, 1, 2), ran(1, 3, 4)], faults=[fault("kill", 2, 2, pid=OTHER)]),
        "ran again without a reason",
    ),
    "it ran twice, long after a crash": (
        evidence(added(1), runs=[ran(1, 11, 12), ran(1, 13, 14)], faults=CRASHED),
        "ran again without a reason",
    ),
    "it ran twice, a while before a crash": (evidence(added(1), **CRASHED_LATER), "ran again without a reason"),
    "it is still locked": (evidence(added(1), runs=[ran(1, 1, 2)], rows=[row(1, locked_by="gw-1")]), "still locked"),
    "it is forgotten": (
        evidence(added(1), runs=[ran(1, 1, 2)], rows=[row(1, max_attempts=25)]),
        "could still run, and does not",
    ),
    "it failed for good by mistake": (evidence(added(1), runs=[ran(1, 1, 2)], rows=[row(1)]), "failed for good"),
    "a row nobody added": (evidence(runs=[], rows=[row(1)]), "nobody added"),
    "two attempts beside each other": (
        evidence(added(1, kind="failing"), runs=TWICE),
        "as 7 jobs 1 and 1 ran at the same time",
    ),
    "it ran beside itself in a frozen worker, and both results count": (
        evidence(added(1), runs=[ran(1, 1, 9), ran(1, 7, 8, pid=OTHER)], faults=FROZEN),
        "its result was not rejected",
    ),
    "it ran twice, and answers were lost": (
        evidence(added(1), runs=[ran(1, 1, 2), ran(1, 3, 4)], faults=[fault("lose", 1, 3, pid=ONE)]),
        "ran again without a reason",
    ),
    "a queue beside itself": (
        evidence(added(1, **QUEUED), added(2, **QUEUED), runs=LATE),
        "ran at the same time",
    ),
    "a queue beside a run that was presumed dead and counts": (
        evidence(added(1, **QUEUED), added(2, **QUEUED), runs=LATE, faults=FROZEN),
        "its result was not rejected",
    ),
    "a queue beside itself hidden behind a void run": (
        evidence(
            *(added(n, **QUEUED) for n in (1, 2, 3)),
            runs=[*LATE, ran(3, 5.5, 7, pid=OTHER)],
            faults=FROZEN,
            lost={ONE: {1}},
        ),
        "jobs 2 and 3 ran at the same time",
    ),
    "a queue beside itself after a crash": (
        evidence(added(1, **QUEUED), added(2, **QUEUED), runs=LATE, faults=CRASHED, lost={ONE: {1}}),
        "ran at the same time",
    ),
    "it ran beside itself long after a crash": (
        evidence(added(1), runs=[ran(1, 5, 9), ran(1, 7, 8, pid=OTHER)], faults=CRASHED, lost={ONE: {1}}),
        "ran at the same time",
    ),
    "a queue out of order": (
        evidence(added(1, **QUEUED), added(2, transaction=2, **QUEUED), runs=[ran(2, 1, 2), ran(1, 3, 4)]),
        "job 2 overtook 1",
    ),
    "a keyed add was lost": (
        evidence(added(1, kind="keyed", job_key="k"), added(2, kind="keyed", job_key="k"), runs=[ran(1, 1, 2)]),
        "the last add under key k",
    ),
    "a removed job ran": (
        evidence(added(1, kind="removed", removed=at(2)), runs=[ran(1, 3, 4)]),
        "1.000 s after it was removed",
    ),
    "a job removed while it ran came back to life": (
        evidence(
            added(1, kind="removed", removed=at(2), holder=ONE),
            runs=[ran(1, 1, 3, how="failed"), ran(1, 6, 7, pid=OTHER)],
        ),
        "after it was removed",
    ),
    "a recurring job twice": (
        evidence(runs=[], ticks=[Tick("tick", NOON, 1), Tick("tick", NOON, 2)]),
        "tick was added 2 times for 12:00",
    ),
    "a recurring job forgotten": (
        evidence(runs=[], ticks=[Tick("tick", NOON, 1)], minutes=[NOON, AFTER_NOON]),
        "tick was not added for 12:01",
    ),
    "a scheduled job too early": (
        evidence(added(1, kind="scheduled", delay=1.5), runs=[ran(1, 1, 2)]),
        "before its time",
    ),
    "it is in both places": (
        evidence(added(1, kind="final"), runs=[ran(1, 1, 2, how="failed")], rows=[row(1)], history=[final(1)]),
        "job 1 is in the table and in history",
    ),
    "it completed and is in neither place": (
        evidence(added(1), runs=[ran(1, 1, 2)], history=[]),
        "job 1 is neither in the table nor in history",
    ),
    "it failed, and no end of it is known": (
        evidence(added(1), runs=[ran(1, 1, 2, how="failed"), ran(1, 3, 4)], history=[retried(1)]),
        "job 1 is neither in the table nor in history",
    ),
    "it ran in Node, was completed here and is in neither place": (
        evidence(
            added(1),
            runs=[ran(1, 1, None), ran(1, 7, 8, pid=OTHER)],
            faults=KILLED,
            ends={ONE: at(2)},
            foreign=frozenset({ONE}),
            history=[],
        ),
        "job 1 is neither in the table nor in history",
    ),
    "a recurring job in neither place": (
        evidence(runs=[], ticks=[Tick("tick", NOON, 1)], history=[]),
        "tick of 12:00 is neither in the table nor in history",
    ),
    "it completed, was removed while it ran, and is in neither place": (
        evidence(added(1, kind="removed", removed=at(2), holder=ONE), runs=[ran(1, 1, 3)], history=[]),
        "job 1 is neither in the table nor in history",
    ),
    "its end is recorded twice": (
        evidence(
            added(1, kind="failing"),
            runs=[ran(1, 1, 2, how="failed"), ran(1, 3, 4)],
            history=[final(1), final(1, attempt=2)],
        ),
        "job 1 has 2 final rows",
    ),
    "its attempt is recorded twice": (
        evidence(
            added(1, kind="failing"),
            runs=[ran(1, 1, 2, how="failed"), ran(1, 3, 4)],
            history=[retried(1), retried(1), final(1, attempt=2)],
        ),
        "attempt 1 of job 1 ended 2 times",
    ),
    "the last job of a group never ran": (evidence(*GROUP, runs=[ran(1, 1, 2)]), "never ran to its end"),
    "the last job of a group was added twice, and its worker was killed": (
        evidence(*GROUP, runs=[ran(1, 0, 0.1), ran(2, 1, 2), ran(2, 3, 4, pid=OTHER, job_id=3)], faults=KILLED),
        "the last job 2 of a group was added 2 times",
    ),
    "too many run at a time": (within_limit((1, 4), (2, 4), (3, 4), (3.5, 5)), "4 jobs of limited (value None) ran"),
    "too many of a tenant run at a time": (
        within_limit((1, 4), (2, 4), (3, 4), task=FIELD),
        "3 jobs of tenant (value t) ran",
    ),
    "too many are locked": (
        within_limit((1, 4), claims=[claimed(1, locked=4)]),
        "4 jobs of limited were locked after the claim of job 1 (value None), and 3 are allowed",
    ),
    "a limit does not know of a claim": (within_limit((1, 2), claims=[]), "ran 1 times, and its limit knows of 0"),
    "jobs start without a token": (
        evidence(added(1, task=RATE), runs=[ran(1, 1, 2)], claims=[claimed(1, task=RATE, most=None)]),
        "claimed without a token",
    ),
    "a bucket is overdrawn": (paced(jobs=5, tokens=-1), "claimed with too few tokens"),
    "a claim spends less than it takes": (
        paced(jobs=3, tokens=1, before=1, seconds=0.05),
        "claimed with too few tokens",
    ),
    "a job waits for those of a full value": (
        evidence(added(1, kind="full"), added(2, kind="beside"), runs=[ran(n, n, n + 1) for n in (1, 2)]),
        "job 2 waited until the jobs of a full value had run",
    ),
    "a job of a paused queue begins": (
        evidence(added(1, **QUEUED), runs=[ran(1, 2, 3)], paused=[Paused("queue:q", at(1), at(4))]),
        "job 1 began 1.000 s after queue:q was paused",
    ),
    "the last job of a group was too early": (
        evidence(*GROUP, runs=[ran(1, 1, 4), ran(2, 3, 4)]),
        "began before member 1 ended",
    ),
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_a_kept_promise_is_not_complained_about(kept: Evidence) -> None:
    assert judge(kept).broken == []


@pytest.mark.parametrize(("broken", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_promise_is_named(broken: Evidence, words: str) -> None:
    assert any(words in each for each in judge(broken).broken)


LOST = "[core] WARNING: Cannot claim jobs: the server is away; retrying, first in 0.05 s"
FOUND = "[core] INFO: Database available again: can claim jobs after 2 failed attempts"


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        pytest.param([LOST, FOUND, LOST, FOUND], 0, id="reported once each time"),
        pytest.param([LOST, LOST.replace("claim jobs", "record outcomes")], 0, id="two troubles"),
        pytest.param([LOST, LOST, FOUND], 1, id="reported twice"),
    ],
)
def test_a_failure_that_is_reported_twice_is_noticed(lines: list[str], count: int) -> None:
    assert len(list(repetitions("\n".join(lines)))) == count


def test_two_processes_with_one_id_keep_their_runs(tmp_path: Path) -> None:
    first = "B 1 10 1 100 1 1\nE 1 ok 2\nB 2 11 1 101 3 3\n"
    second = "B 1 20 1 200 4 4\nB 2 21 1 201 5 5\nE 2 failed 6\nE 1 ok 7\n"
    (tmp_path / "4711").write_text(first + second)

    found = [(run.n, run.how, run.ended) for run in read_ledger(tmp_path)]

    assert found == [(100, "ok", 2), (101, "", None), (200, "ok", 7), (201, "failed", 6)]
