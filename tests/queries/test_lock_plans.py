"""What asks for locked jobs finds them by their index, whatever the planner knows of the table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from support.databases import Databases
from support.jobs_in_states import Queue
from support.plans import kept_plan, plan_for
from support.profiles import IS_NIGHTLY
from support.waiting import wait_until

from gw_core import Client
from gw_core.front_ends import Resolved
from gw_core.postgres.read.job_queries import OF_QUEUE
from gw_core.selection import parse

ROWS = 1_000_000 if IS_NIGHTLY else 200_000
BATCH: dict[str, Any] = {"after": 0, "through": ROWS, "limit": 1000, "with_payload": False}
WORKERS = {"workers": ["pool-1"], "inactive_seconds": [300.0]}
NOW = datetime.now(UTC)
DECISIONS: dict[str, Any] = {"ids": [], "run_ats": [], "attempts": [], "messages": [], "backoffs": []}
STATEMENTS: dict[str, dict[str, Any]] = {
    "list_worker_locks": {"resilient_flags": ["slow"]},
    "sweep_list_jobs": WORKERS,
    "sweep_recover_jobs": {**WORKERS, **DECISIONS, "skipped": [], "delay_seconds": 30.0, "message": "gone"},
    "sweep_release_queues": WORKERS,
    "sweep_delete": WORKERS,
    "orphaned_queue_list": {},
    "release_orphaned_queues": {},
    "release_expired_locks": {"older_than_seconds": 14400.0},
    "lock_jobs_of_workers": {"worker_ids": ["pool-1"]},
    "return_unknown_jobs": {
        "worker_id": "pool-1",
        "ids": [1],
        "claims": [NOW],
        "queue_ids": [1],
        "queue_claims": [NOW],
    },
}


@pytest.fixture(scope="module")
def backlog(databases: Databases, template: str) -> Iterator[Queue]:
    """Many jobs: workers hold one of 500, and a quarter has failed."""
    name = f"{databases.run.prefix}{databases.worker}_locks"
    databases.create(name, template=template)
    queue = Queue(databases.url(name))
    queue.rows("alter table _private_jobs set (autovacuum_enabled = off)")
    queue.rows("set synchronous_commit to off")
    held = "i % 500 = 1"
    queue.many(
        ROWS,
        "job_queue_id, attempts, run_at, locked_at, locked_by",
        "case when i % 10 < 3 then 1 + i % 200 end, case when i % 4 = 0 then 25 else 0 end, "
        "now() + (i % 1000) * interval '1 minute', "
        f"case when {held} then now() - i % 3600 * interval '1 second' end, "
        f"case when {held} then 'pool-' || i % 60 end",
    )
    yield queue
    queue.close()
    databases.drop(name)


@pytest.fixture(params=["missing", "fresh"], scope="module")
def known(request: pytest.FixtureRequest, backlog: Queue) -> Queue:
    """The jobs, with the planner knowing nothing of them, or everything."""
    if request.param == "fresh":
        backlog.run("analyze _private_jobs")
    else:  # a process of the run may take these tests after the others
        backlog.run("delete from pg_statistic where starelid = '_private_jobs'::regclass")
        backlog.run("update pg_class set relpages = 0, reltuples = 0 where oid = '_private_jobs'::regclass")
    return backlog


@pytest.mark.once
def test_maintenance_finds_locked_jobs_by_their_index(known: Queue) -> None:
    for name, values in STATEMENTS.items():
        plan = plan_of(known, name, values)
        assert "Seq Scan on _private_jobs" not in plan, f"{name}:\n{plan}"
        assert "jobs_gw_locked_index" in plan, f"{name}:\n{plan}"


@pytest.mark.once
def test_failed_jobs_are_cleared_away_in_the_order_of_their_index(known: Queue) -> None:
    plan = plan_of(known, "cleanup_failed_jobs", {"after": 0, "after_run_at": "-infinity", "limit": 1000})

    assert "jobs_gw_failed_index" in plan
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
def test_the_doctor_counts_failed_jobs_in_their_index(known: Queue) -> None:
    plan = plan_of(known, "doctor_failed", {"most": 10_000})

    assert "jobs_gw_failed_index" in plan
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "text", "index"),
    [
        ("job_page_of_locked", "state:running", "jobs_gw_locked_index"),
        ("job_page_of_failed", "state:failed", "jobs_gw_failed_index"),
        ("job_page_named", "id:5,6 state:ready", "jobs_pkey"),
        ("job_page_named", "job_key:a,b", "jobs_key_key"),
    ],
)
def test_pages_of_a_selection_are_read_from_an_index(known: Queue, name: str, text: str, index: str) -> None:
    after = {"after_id": 0, "after_run_at": "infinity" if "failed" in name else "-infinity", "after_priority": 0}
    due = {"with_due": True, "with_later": False, "queue_id": 5}
    if name == "job_page_of_failed":
        after["after_id"] = 2**63 - 1

    plan = plan_of(
        known, name, {**after, **due, "chunk_size": 1000, "limit": 50, "most": 10_001}, text=text, is_read=True
    )

    assert index in plan
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
@pytest.mark.parametrize(
    ("names", "index"),
    [
        pytest.param({}, "jobs_main_index", id="of all jobs"),
        pytest.param(OF_QUEUE, "jobs_gw_queue_heads_index", id="of a queue"),
    ],
)
def test_the_next_jobs_are_read_from_an_index_in_its_order(known: Queue, names: dict[str, str], index: str) -> None:
    values = {"with_due": True, "with_later": False, "queue_id": 5, "skip": 0, "limit": 1000}

    plan = plan_of(known, "job_page_next", values, is_read=True, **names)

    assert index in plan
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
def test_a_page_by_state_reads_an_index_for_each_state(known: Queue) -> None:
    plan = kept_plan(known.hands, "job_page_by_state", is_read=True)

    assert all(each in plan for each in ("jobs_main_index", "jobs_gw_locked_index", "jobs_gw_failed_index"))
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
@pytest.mark.parametrize(("text", "index"), [("id:5,6", "jobs_pkey"), ("job_key:a", "jobs_key_key")])
def test_actions_find_what_an_index_leads_to(known: Queue, text: str, index: str) -> None:
    assert index in plan_of(known, "count_selected_jobs", {}, text=text)
    assert index in plan_of(known, "lock_selected_jobs", BATCH, text=text)


@pytest.mark.once
@pytest.mark.parametrize("text", ["state:running", "worker:pool-1"])
def test_running_jobs_are_counted_in_their_index(known: Queue, text: str) -> None:
    plan = plan_of(known, "count_selected_jobs", {}, text=text, RUNNING="true")

    assert "jobs_gw_locked_index" in plan
    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
def test_a_count_of_running_jobs_reads_their_index(known: Queue) -> None:
    scans = "select idx_scan from pg_stat_user_indexes where indexrelname = 'jobs_gw_locked_index'"
    [[before]] = known.rows(scans)

    with Client(known.url) as client:
        assert client.jobs.count("state:running").jobs == ROWS // 500

    wait_until(lambda: known.rows(scans)[0][0] > before, what="the session to report its scan")


@pytest.mark.once
def test_an_action_walks_the_table_once_however_many_jobs_match(known: Queue) -> None:
    plan = plan_of(known, "lock_selected_jobs", BATCH, text="attempts:>3")

    assert "Seq Scan on _private_jobs" not in plan


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "index"),
    [
        pytest.param("snapshot_priorities", "jobs_main_index", id="the heads of a glance"),
        pytest.param("snapshot_locks", "jobs_gw_locked_index", id="the locks of a glance"),
        pytest.param("snapshot_failed", "jobs_gw_failed_index", id="the failures of a glance"),
        pytest.param("queue_list", "jobs_gw_queue_heads_index", id="a page of queues"),
        pytest.param("find_jobs", "jobs_pkey", id="some jobs"),
        pytest.param("queue_of_job", "jobs_gw_queue_heads_index", id="the jobs before one in its queue"),
    ],
)
def test_what_is_planned_once_for_all_values_walks_an_index(known: Queue, name: str, index: str) -> None:
    plan = kept_plan(known.hands, name, is_read=True)

    assert index in plan
    assert "Seq Scan on _private_jobs " not in plan


def plan_of(
    queue: Queue, name: str, values: dict[str, Any], *, text: str = "", is_read: bool = False, **names: str
) -> str:
    """The plan of a statement for a selection, in a session without limits, or with those of a reader."""
    known = Resolved(now=datetime.now(UTC), tasks={"mail": 1}, queues={"q": 5})
    fragment = parse(text).sql(known)
    values = {**values, **fragment.values}
    return plan_for(queue.hands, name, values, parts={"SELECTION": fragment.text, **names}, is_read=is_read)
