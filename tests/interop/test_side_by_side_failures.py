"""What one side leaves behind when it stops or dies, the other takes up; and neither takes what still runs."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from mixed_workers import BATCHES, LISTENING, NOTES, WAITS, MixedQueue, by_node
from support.node_worker import FIRST_VERSION_WITH_BATCHES, NEWEST, ON_OUR_SCHEMA, node_worker
from support.waiting import wait_until

from gw_core import JobSpec, Runner, TaskRegistry, WorkerSettings

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

SOON = "100"
LONG = "interval '5 hours'"
NO_HURRY = {"gracefulShutdownAbortTimeout": 600_000}
SWEEPS = {"minResetLockedInterval": 50, "maxResetLockedInterval": 100}
VERSIONS = pytest.mark.parametrize("version", ON_OUR_SCHEMA)


def holder(site: MixedQueue) -> str:
    """Who holds the one job, and its queue."""
    [by] = {row["locked_by"] for row in site.locks()}
    return str(by)


# -- killed -----------------------------------------------------------------------------------------------------------


@VERSIONS
def test_a_job_of_ours_that_was_killed_comes_back_by_nodes_unlock(site: MixedQueue, version: str) -> None:
    node = node_worker(version)
    with site.closed_gate(), site.gw_running({"job": WAITS["python"]}) as ours:
        site.add("job", {}, queue_name="q")
        site.wait_for(1, "begun is not null")
        ours.stop(signal.SIGKILL)
        dead = holder(site)
    assert dead.startswith("gw-")

    by_node(site, node, "await utils.forceUnlockWorkers([input.dead]);", dead=dead)
    node.run_once(site.url, {"job": WAITS["node"]})

    assert [(e["side"], e["attempt"], e["ended"] is None) for e in site.ledger()] == [
        ("python", 1, True),
        ("node", 2, False),
    ]
    assert (site.jobs(), site.locks()) == ([], [])


@VERSIONS
def test_a_job_of_node_that_was_killed_comes_back_by_our_unlock(site: MixedQueue, version: str) -> None:
    with site.closed_gate(), node_worker(version).running(site.url, {"job": WAITS["node"]}) as theirs:
        site.add("job", {}, queue_name="q")
        site.wait_for(1, "begun is not null")
        theirs.stop(signal.SIGKILL)
        dead = holder(site)

    site.client.workers.unlock([dead])
    site.gw_run_once({"job": WAITS["python"]})

    assert [(e["side"], e["attempt"], e["ended"] is None) for e in site.ledger()] == [
        ("node", 1, True),
        ("python", 2, False),
    ]
    assert (site.jobs(), site.locks()) == ([], [])


# -- graceful shutdown ------------------------------------------------------------------------------------------------


@VERSIONS
def test_jobs_that_we_return_when_stopped_are_run_by_node(site: MixedQueue, version: str) -> None:
    node = node_worker(version)
    tasks = {"job": WAITS["python"]}
    with site.closed_gate() as gate, site.gw_running(tasks, "--jobs", "1", "--grace-period", "100ms") as ours:
        interrupted = site.add("job", {}, queue_name="q")
        follower = site.add("job", {}, queue_name="q")
        site.wait_for(1, "begun is not null")
        before = site.now()
        ours.stop()
        returned = site.job(interrupted)
        gate.open()
    assert (returned["attempts"], returned["is_available"]) == (0, True)
    assert returned["run_at"] >= before + WorkerSettings().interrupted_delay
    assert site.locks() == []

    site.client.jobs.reschedule([interrupted], run_at=before + timedelta(days=1))
    with node.running(site.url, {"job": WAITS["node"]}, "--poll-interval", SOON):
        # Its successor need not wait for it.
        site.wait_for(1, "job_id = %s and ended is not null", follower)
        by_node(
            site,
            node,
            "await utils.rescheduleJobs([input.id], { runAt: new Date(input.now) });",
            id=str(interrupted),
            now=datetime.now(UTC) - timedelta(seconds=1),
        )
        site.wait_for(1, "job_id = %s and ended is not null", interrupted)
        site.wait_until_settled()

    assert [(e["job_id"], e["side"], e["attempt"]) for e in site.ledger()] == [
        (interrupted, "python", 1),
        (follower, "node", 1),
        (interrupted, "node", 1),
    ]


def test_what_node_gives_back_when_stopped_is_run_by_us(site: MixedQueue) -> None:
    node = node_worker(NEWEST)
    with (
        site.closed_gate() as gate,
        node.running(site.url, {"job": WAITS["node"]}, "--jobs", "1", preset={**BATCHES, **NO_HURRY}) as theirs,
    ):
        site.wait_until_node_listens()
        site.client.add_many(
            [JobSpec(task="job", payload={}, queue_name=queue) for queue in (None, "a", None, "b", None)]
        )
        [begun] = site.wait_for(1, "begun is not null")
        assert len(site.run("select 1 from _private_jobs where locked_by is not null")) == 5
        theirs.process.send_signal(signal.SIGTERM)
        wait_until(
            lambda: len(site.run("select 1 from _private_jobs where locked_by is not null")) == 1,
            what="Node to give back what had not begun",
        )

        site.gw_run_once({"job": NOTES["python"]})
        assert len(site.ledger("side = 'python' and ended is not null and attempt = 1")) == 4
        gate.open()
        assert theirs.wait_until_ended() == -signal.SIGTERM

    assert [entry["job_id"] for entry in site.ledger("side = 'node' and ended is not null")] == [begun["job_id"]]
    assert (site.jobs(), site.locks()) == ([], [])


# -- running for hours ------------------------------------------------------------------------------------------------


@VERSIONS
def test_nodes_sweep_frees_what_was_forgotten_and_leaves_our_long_job_alone(site: MixedQueue, version: str) -> None:
    may_end = threading.Event()
    tasks = TaskRegistry()
    tasks.register("job", lambda payload: may_end.wait(200))
    with running_here(site, tasks) as pool:
        for _ in range(2):
            site.add("job", {}, queue_name="q")
        wait_until(site.locks, what="the first job to begin")
        site.run(f"update _private_jobs set locked_at = locked_at - {LONG} where locked_by is not null")
        site.run(f"update _private_job_queues set locked_at = locked_at - {LONG} where locked_by is not null")
        wait_until(lambda: stale_locks(site) == 0, what="both locks to be renewed")
        forgotten = site.add("nobodys")
        site.change(forgotten, locked_by="gone", locked_at=f"=now() - {LONG}", attempts=1)

        with node_worker(version).running(site.url, {"job": NOTES["node"]}, "--poll-interval", SOON, preset=SWEEPS):
            wait_until(lambda: stale_locks(site) == 0, what="the forgotten job to be freed")
            assert [row["locked_by"] for row in site.locks()] == [pool, pool]
            assert site.ledger() == []
            may_end.set()
            site.wait_until_settled(left=[forgotten])

    freed = site.job(forgotten)
    assert (freed["locked_by"], freed["is_available"]) == (None, True)


@contextmanager
def running_here(site: MixedQueue, tasks: TaskRegistry) -> Iterator[str]:
    """Run jobs in this process, renewing locks all the time, which no option of the program asks for."""
    settings = WorkerSettings(lock_renewal_interval=timedelta(milliseconds=50), grace_period=timedelta(0))
    runner = Runner(site.url, tasks=tasks, settings=settings, handle_signals=False)
    runner.start()
    try:
        yield str(runner.worker_id)
    finally:
        runner.stop()
        runner.wait()


def stale_locks(site: MixedQueue) -> int:
    return len(
        site.run(
            "select 1 from _private_jobs where locked_at < now() - interval '4 hours'"
            " union all select 1 from _private_job_queues where locked_at < now() - interval '4 hours'"
        )
    )


# -- a schema that moves on -------------------------------------------------------------------------------------------


def test_a_breaking_migration_that_no_worker_here_knows_ends_every_worker_alike(site: MixedQueue) -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(site.gw_running({"job": NOTES["python"]}))
        theirs = [
            stack.enter_context(node_worker(version).running(site.url, {"job": NOTES["node"]}))
            for version in (FIRST_VERSION_WITH_BATCHES, NEWEST)
        ]
        site.wait_until_node_listens(2)
        ours.wait_until_ready(LISTENING)

        site.run("select pg_notify('worker:migrate', %s)", json.dumps({"migrationNumber": 21, "breaking": False}))
        site.add("job", {})
        site.wait_for(1)
        # As a migration does: the revision and its notification arrive together.
        site.run(
            "with installed as (insert into migrations (id, breaking) values (21, true) returning id) "
            "select pg_notify('worker:migrate', %s) from installed",
            json.dumps({"migrationNumber": 21, "breaking": True}),
        )

        assert [worker.wait_until_ended() for worker in (ours, *theirs)] == [57, 57, 57]
    assert "schema revision 21, which needs a newer version of gw" in ours.output


# -- Node's housekeeping ----------------------------------------------------------------------------------------------


def test_nodes_cleanup_works_on_our_schema_and_harms_none_of_our_jobs(site: MixedQueue) -> None:
    with site.gw_running({"job": NOTES["python"]}, "--poll-interval", SOON) as ours:
        ours.wait_until_ready(LISTENING)
        site.change(site.add("broken", {}, queue_name="with the broken one"), attempts="=max_attempts")
        waiting = site.add("job", {}, queue_name="kept", run_at=datetime(2099, 1, 1, tzinfo=UTC))
        site.add("job", {}, queue_name="empty")
        site.wait_for(1)
        site.wait_until_settled(left=site.ids())

        everything = ("DELETE_PERMAFAILED_JOBS", "GC_TASK_IDENTIFIERS", "GC_JOB_QUEUES")
        output = node_worker(NEWEST).clean_up(site.url, {"note": ""}, *everything)

        assert "ERROR" not in output
        assert site.ids() == [waiting]
        assert [row["queue_name"] for row in site.run("select queue_name from _private_job_queues")] == ["kept"]
        # Node keeps the names of the tasks that it knows itself, had they been there.
        assert [row["identifier"] for row in site.run("select identifier from _private_tasks")] == ["job"]
        site.client.jobs.reschedule([waiting], run_at=datetime.now(UTC))
        site.wait_for(2)
        site.add("job", {}, queue_name="empty")
        site.wait_for(3)
    assert "ERROR" not in ours.output


def test_we_run_jobs_of_a_task_that_nodes_cleanup_forgot(site: MixedQueue) -> None:
    site.client.add("job")
    site.gw_run_once({"job": NOTES["python"]})
    node_worker(NEWEST).clean_up(site.url, {"note": ""}, "GC_TASK_IDENTIFIERS")
    assert site.run("select 1 from _private_tasks") == []

    site.client.add("job")
    site.gw_run_once({"job": NOTES["python"]})

    assert len(site.wait_for(2)) == 2
