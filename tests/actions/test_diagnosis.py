"""What a diagnosis makes of facts: pure, a row for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from gw_core.front_ends import CheckStatus, DoctorFacts, PauseTarget, RoleKind, TableHealth, diagnose, is_healthy
from gw_core.operations import Finding, Pause, TaskLimit, WorkerInfo

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)

SOUND = DoctorFacts(
    schema="graphile_worker",
    server="15.1",
    revision=20,
    schema_behind=False,
    schema_problem=None,
    role="app",
    read_only=False,
    clock_skew=timedelta(milliseconds=30),
    uncertainty=timedelta(milliseconds=1),
    through_pooler=False,
    autovacuum=True,
    has_heartbeats=True,
    live_workers=2,
)


def holder(**options: Any) -> WorkerInfo:
    return WorkerInfo(**{"id": "w", "jobs": 1, "oldest_lock_age": MINUTE, **options})


def table(**options: Any) -> TableHealth:
    common = {"name": "_private_jobs", "live_rows": 10, "dead_rows": 0, "last_vacuum": HOUR, "autovacuum": True}
    return TableHealth(**{**common, **options})


PAUSED = Pause(
    target=PauseTarget.parse("task:mail"), since=datetime(2026, 1, 1, tzinfo=UTC), until=None, by="ops", reason="freeze"
)
LIMITED = TaskLimit(task="mail", running=2, locked=2)
RATED = TaskLimit(task="mail", per_period=10, period=MINUTE, startable=0.4)
HALF_USED = structs.replace(RATED, startable=1.0)

RUST_WORKER = WorkerInfo(id="graphile_worker_0123456789abcdef01", heartbeat_age=MINUTE)


def of(check: str, **facts: Any) -> Finding:
    return next(each for each in diagnose(structs.replace(SOUND, **facts)) if each.check == check)


def test_a_sound_queue_is_healthy_and_every_check_says_so() -> None:
    findings = diagnose(SOUND)

    assert is_healthy(findings)
    assert {each.status for each in findings} == {CheckStatus.OK}
    assert len({each.check for each in findings}) == len(findings) == 17


@pytest.mark.parametrize(
    ("check", "facts", "message", "fix"),
    [
        pytest.param("server", {"read_only": True}, "read-only", "primary", id="a standby"),
        pytest.param("clock", {"clock_skew": HOUR}, "1h ahead of", "NTP", id="a clock that is ahead"),
        pytest.param("clock", {"clock_skew": -HOUR}, "behind", "NTP", id="a clock that is behind"),
        pytest.param("schema", {"schema_problem": "too new"}, "too new", "follow", id="a schema we cannot use"),
        pytest.param(
            "row security",
            {"hidden_tables": ["t"]},
            "row security hides rows of t from role app, without any error",
            "gw grant worker app",
            id="hidden rows",
        ),
        pytest.param(
            "rights",
            {"lacking": ["insert t"], "kinds": [RoleKind.ADDER, RoleKind.VIEWER]},
            "role app lacks insert on t, which an adder and a viewer needs",
            "as the queue's owner: gw grant adder app; gw grant viewer app",
            id="a right that is lacking",
        ),
        pytest.param(
            "citus",
            {"distributed_tables": ["_private_jobs"]},
            "Citus distributes _private_jobs",
            "select citus_schema_undistribute('graphile_worker')",
            id="a distributed queue",
        ),
        pytest.param(
            "node",
            {"parallel_queues": ["serial"]},
            "several jobs of serial at the same time",
            "upgrade graphile-worker to 0.18",
            id="a local queue of Node 0.17",
        ),
        pytest.param(
            "indexes", {"invalid_indexes": ["i"]}, "i is invalid", 'reindex index "graphile_worker"."i"', id="invalid"
        ),
        pytest.param(
            "indexes",
            {"missing_indexes": ["jobs_main_index"]},
            "is missing",
            "create index concurrently",
            id="an index missing",
        ),
        pytest.param(
            "locks", {"holders": [holder(oldest_lock_age=5 * HOUR)]}, "no heartbeat", "gw unlock w", id="a stale lock"
        ),
        pytest.param(
            "locks",
            {"holders": [holder(heartbeat_age=HOUR)]},
            "last heartbeat 1h ago",
            "gw sweep",
            id="a lock of the dead",
        ),
        pytest.param(
            "locks",
            {"holders": [holder(id="a; rm", oldest_lock_age=5 * HOUR)], "schema": "my queue"},
            "a; rm",
            "gw unlock '--schema=my queue' 'a; rm'",
            id="names a shell would take apart",
        ),
        pytest.param(
            "locks",
            {"holders": [holder(id="--all", oldest_lock_age=5 * HOUR)], "schema": "--help"},
            "--all",
            "gw unlock --schema=--help -- --all",
            id="names that look like options",
        ),
        pytest.param(
            "locks",
            {"holders": [holder(id="w\x15rm -rf ~\n", oldest_lock_age=5 * HOUR)]},
            "rm -rf",
            "select * from \"graphile_worker\".force_unlock_workers(array[E'w\\u0015rm -rf ~\\u000a']);",
            id="a name with controls",
        ),
        pytest.param("backlog", {"due_tasks": [("mail", HOUR)]}, "due for 1h", "gw queues", id="a backlog"),
        pytest.param(
            "backlog", {"due_tasks": [("mail", HOUR)], "live_workers": 0}, "no live worker", "gw run", id="nobody works"
        ),
        pytest.param(
            "backlog",
            {"due_tasks": [("mail", HOUR)], "limits": [HALF_USED]},
            "no worker claimed it",
            "gw queues",
            id="a backlog beside a limit with room",
        ),
        pytest.param("vacuum", {"autovacuum": False}, "off on this server", "alter system", id="no autovacuum"),
        pytest.param("vacuum", {"tables": [table(autovacuum=False)]}, "off for", "reset", id="none for a table"),
        pytest.param(
            "vacuum", {"tables": [table(dead_rows=200_000)]}, "200000 dead rows", "vacuum analyze", id="dead rows"
        ),
        pytest.param(
            "transactions", {"oldest_transaction": ("process 7", HOUR)}, "process 7", "terminate", id="old transaction"
        ),
        pytest.param("ids", {"most_used_sequence": ("t", 0.9)}, "90% of the ids of t", "restart", id="ids used up"),
    ],
)
def test_what_is_wrong_is_said_with_its_fix(check: str, facts: dict[str, Any], message: str, fix: str) -> None:
    finding = of(check, **facts)

    assert finding.status is CheckStatus.ERROR
    assert message in finding.message
    assert fix in str(finding.fix)


@pytest.mark.parametrize(
    ("check", "facts", "message"),
    [
        pytest.param("pooler", {"through_pooler": True}, "so workers poll", id="a pooler"),
        pytest.param("schema", {"schema_behind": True, "schema_problem": "behind"}, "behind", id="an older schema"),
        pytest.param(
            "schema", {"schema_behind": True, "schema_warnings": ["replaced"]}, "replaced", id="functions not of gw"
        ),
        pytest.param("upstream", {"schema_warnings": ["newer"]}, "newer", id="a newer schema"),
        pytest.param(
            "vacuum", {"tables": [table(vacuum_after=2_000_050)]}, "2,000,050 rows are dead", id="late vacuum"
        ),
        pytest.param(
            "vacuum",
            {"tables": [table(live_rows=10**7, index_cleanup=False)]},
            "leaves index entries of dead rows",
            id="index entries that vacuum leaves",
        ),
        pytest.param("workers", {"has_heartbeats": False}, "no heartbeats table", id="no heartbeats"),
        pytest.param(
            "rust",
            {"holders": [holder(oldest_lock_age=HOUR)], "known_to_rust": [RUST_WORKER]},
            "graphile_worker_rs gets no heartbeats from w",
            id="a worker that graphile_worker_rs does not know",
        ),
        pytest.param("workers", {"stale_workers": list("abcd")}, "a, b, c and 1 more", id="workers that went"),
        pytest.param(
            "backlog",
            {"due_tasks": [("mail", HOUR)], "pauses": [PAUSED]},
            "due for 1h, because task:mail is paused by ops since 2026-01-01 00:00:00Z: freeze",
            id="a paused task",
        ),
        pytest.param(
            "backlog",
            {"due_tasks": [("mail", HOUR)], "limits": [LIMITED]},
            "because its limit is reached: 2 of at most 2 jobs are locked",
            id="a full limit",
        ),
        pytest.param(
            "backlog",
            {"due_tasks": [("mail", HOUR)], "limits": [RATED]},
            "because its limit is reached: at most 10 start in 1m",
            id="a rate that is used up",
        ),
        pytest.param("failed", {"failed_tasks": [("c", 50)]}, "50 jobs of the task c", id="failed jobs"),
        pytest.param("locks", {"not_checked": [("locks", "it took too long")]}, "it took too long", id="not looked at"),
    ],
)
def test_what_may_be_meant_so_is_noted_and_healthy(check: str, facts: dict[str, Any], message: str) -> None:
    finding = of(check, **facts)

    assert finding.status is CheckStatus.WARNING
    assert message in finding.message
    assert is_healthy(diagnose(structs.replace(SOUND, **facts)))


def test_a_limit_without_its_index_is_not_called_full() -> None:
    limits = [TaskLimit(task="mail", running=2, field="tenant", has_index=False)]

    finding = of("backlog", due_tasks=[("mail", HOUR)], limits=limits)

    assert "because the index of tenant for its limit is missing" in finding.message
    assert of("limits", limits=limits).status is CheckStatus.ERROR


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        pytest.param("clock", {"clock_skew": 3 * MINUTE, "uncertainty": 3 * MINUTE}, id="a skew the network explains"),
        pytest.param(
            "locks",
            {"holders": [holder(oldest_lock_age=5 * HOUR, heartbeat_age=MINUTE)]},
            id="a long job of the living",
        ),
        pytest.param("locks", {"holders": [holder(oldest_lock_age=3 * HOUR)]}, id="a job of a worker without a heart"),
        pytest.param("vacuum", {"tables": [table(live_rows=10**6, dead_rows=10**6)]}, id="many rows, dead or alive"),
        pytest.param("vacuum", {"tables": [table(live_rows=10**6, index_cleanup=False)]}, id="few index entries left"),
        pytest.param("transactions", {"oldest_transaction": ("p", MINUTE)}, id="a young transaction"),
    ],
)
def test_what_is_usual_is_sound(check: str, facts: dict[str, Any]) -> None:
    assert of(check, **facts).status is CheckStatus.OK


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            {"known_to_rust": [WorkerInfo(id="w", heartbeat_age=MINUTE)]}, id="no worker of graphile_worker_rs"
        ),
        pytest.param({"known_to_rust": [structs.replace(RUST_WORKER, heartbeat_age=HOUR)]}, id="a dead one"),
        pytest.param(
            {"known_to_rust": [RUST_WORKER, WorkerInfo(id="w", heartbeat_age=MINUTE)]}, id="it knows the worker"
        ),
        pytest.param({"known_to_rust": [RUST_WORKER], "holders": [holder()]}, id="a short job"),
        pytest.param({"known_to_rust": [RUST_WORKER], "holders": [holder(jobs=0, queues=1)]}, id="no job is locked"),
    ],
)
def test_graphile_worker_rs_is_not_mentioned_without_a_reason(facts: dict[str, Any]) -> None:
    found = diagnose(structs.replace(SOUND, **{"holders": [holder(oldest_lock_age=HOUR)], **facts}))

    assert [each for each in found if each.check == "rust"] == []


def test_without_a_schema_nothing_more_is_said() -> None:
    findings = diagnose(structs.replace(SOUND, revision=None, schema_problem="no queue"))

    assert [each.check for each in findings] == ["server", "clock", "pooler", "schema"]


def test_a_dead_worker_with_locks_has_one_finding_and_one_fix() -> None:
    dead = structs.replace(SOUND, holders=[holder(id="dead", heartbeat_age=HOUR)], stale_workers=["dead", "gone"])

    found = [each for each in diagnose(dead) if each.status is not CheckStatus.OK]

    assert [(each.check, each.fix) for each in found] == [("locks", "gw sweep"), ("workers", "gw sweep")]
    assert [("dead" in each.message, "gone" in each.message) for each in found] == [(True, False), (False, True)]
