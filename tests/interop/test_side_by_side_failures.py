"""What one side leaves behind when it stops or dies, the other takes up; and neither takes what still runs."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from mixed_workers import BATCHES, LISTENING, NOTES, WAITS, Site, by_node, site as opened
from support.node_worker import FIRST_VERSION_WITH_BATCHES, NEWEST, ON_OUR_SCHEMA, node_worker
from support.waiting import wait_until

from gw_core import Runner, TaskRegistry, WorkerSettings

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

SOON = "100"
LONG = "interval '5 hours'"
NO_HURRY = {"gracefulShutdownAbortTimeout": 600_000}
SWEEPS = {"minResetLockedInterval": 50, "maxResetLockedInterval": 100}
VERSIONS = pytest.mark.parametrize("version", ON_OUR_SCHEMA)


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with opened(database_url) as site:
        yield site


def holder(site: Site) -> str:
    """Who holds the one job, and its queue."""
    [by] = {row["locked_by"] for row in site.locks()}
    return str(by)


# -- killed -----------------------------------------------------------------------------------------------------------


@VERSIONS
def test_a_job_of_ours_that_was_killed_comes_back_by_nodes_unlock(site: Site, version: str) -> None:
    node = node_worker(version)
    with site.closed_gate(), site.gw_running({"job": WAITS["python"]}) as ours:
        site.schema.add_job("job", queue_name="q")
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
    assert (site.schema.jobs(), site.locks()) == ([], [])


@VERSIONS
def test_a_job_of_node_that_was_killed_comes_back_by_our_unlock(site: Site, version: str) -> None:
    with site.closed_gate(), node_worker(version).running(site.url, {"job": WAITS["node"]}) as theirs:
        site.schema.add_job("job", queue_name="q")
        site.wait_for(1, "begun is not null")
        theirs.stop(signal.SIGKILL)
        dead = holder(site)

    site.client.workers.unlock([dead])
    site.gw_run_once({"job": WAITS["python"]})

    assert [(e["side"], e["attempt"], e["ended"] is None) for e in site.ledger()] == [
        ("node", 1, True),
        ("python", 2, False),
    ]
    assert (site.schema.jobs(), site.locks()) == ([], [])


# -- graceful shutdown ------------------------------------------------------------------------------------------------


@VERSIONS
def test_jobs_that_we_return_when_stopped_are_run_by_node(site: Site, version: str) -> None:
    node = node_worker(version)
    tasks = {"job": WAITS["python"]}
    with site.closed_gate() as gate, site.gw_running(tasks, "--jobs", "1", "--grace-period", "100ms") as ours:
        interrupted = site.schema.add_job("job", queue_name="q")["id"]
        follower = site.schema.add_job("job", queue_name="q")["id"]
        site.wait_for(1, "begun is not null")
        before = datetime.now(UTC)
        ours.stop()
        returned = site.schema.job(interrupted)
        gate.open()
    assert returned is not None
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


def test_what_node_gives_back_when_stopped_is_run_by_us(site: Site) -> None:
    node = node_worker(NEWEST)
    with (
        site.closed_gate() as gate,
        node.running(site.url, {"job": WAITS["node"]}, "--jobs", "1", preset={**BATCHES, **NO_HURRY}) as theirs,
    ):
        site.wait_until_node_listens()
        site.schema.add_jobs(*({"identifier": "job", "queue_name": queue} for queue in (None, "a", None, "b", None)))
        [begun] = site.wait_for(1, "begun is not null")
        assert len(site.run("select 1 from :S._private_jobs where locked_by is not null")) == 5
        theirs.process.send_signal(signal.SIGTERM)
        wait_until(
            lambda: len(site.run("select 1 from :S._private_jobs where locked_by is not null")) == 1,
            what="Node to give back what had not begun",
        )

        site.gw_run_once({"job": NOTES["python"]})
        assert len(site.ledger("side = 'python' and ended is not null and attempt = 1")) == 4
        gate.open()
        assert theirs.wait_until_ended() == -signal.SIGTERM

    assert [entry["job_id"] for entry in site.ledger("side = 'node' and ended is not null")] == [begun["job_id"]]
    assert (site.schema.jobs(), site.locks()) == ([], [])


# -- running for hours ------------------------------------------------------------------------------------------------


@VERSIONS
def test_nodes_sweep_frees_what_was_forgotten_and_leaves_our_long_job_alone(site: Site, version: str) -> None:
    may_end = threading.Event()
    tasks = TaskRegistry()
    tasks.register("job", lambda payload: may_end.wait(200))
    with running_here(site, tasks) as pool:
        for _ in range(2):
            site.schema.add_job("job", queue_name="q")
        wait_until(site.locks, what="the first job to begin")
        site.run(f"update :S._private_jobs set locked_at = locked_at - {LONG} where locked_by is not null")
        site.run(f"update :S._private_job_queues set locked_at = locked_at - {LONG} where locked_by is not null")
        wait_until(lambda: stale_locks(site) == 0, what="both locks to be renewed")
        forgotten = site.schema.add_job("nobodys")
        site.schema.claim(forgotten, by="gone", ago="5 hours")

        with node_worker(version).running(site.url, {"job": NOTES["node"]}, "--poll-interval", SOON, preset=SWEEPS):
            wait_until(lambda: stale_locks(site) == 0, what="the forgotten job to be freed")
            assert [row["locked_by"] for row in site.locks()] == [pool, pool]
            assert site.ledger() == []
            may_end.set()
            site.wait_until_settled(left=[forgotten["id"]])

    freed = site.schema.job(forgotten["id"])
    assert freed is not None
    assert (freed["locked_by"], freed["is_available"]) == (None, True)


@contextmanager
def running_here(site: Site, tasks: TaskRegistry) -> Iterator[str]:
    """Run jobs in this process, renewing locks all the time, which no option of the program asks for."""
    settings = WorkerSettings(lock_renewal_interval=timedelta(milliseconds=50), grace_period=timedelta(0))
    runner = Runner(site.url, tasks=tasks, settings=settings, handle_signals=False)
    runner.start()
    try:
        yield str(runner.worker_id)
    finally:
        runner.stop()
        runner.wait()


def stale_locks(site: Site) -> int:
    return len(
        site.run(
            "select 1 from :S._private_jobs where locked_at < now() - interval '4 hours'"
            " union all select 1 from :S._private_job_queues where locked_at < now() - interval '4 hours'"
        )
    )


# -- a schema that moves on -------------------------------------------------------------------------------------------


def test_a_breaking_migration_that_no_worker_here_knows_ends_every_worker_alike(site: Site) -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(site.gw_running({"job": NOTES["python"]}))
        theirs = [
            stack.enter_context(node_worker(version).running(site.url, {"job": NOTES["node"]}))
            for version in (FIRST_VERSION_WITH_BATCHES, NEWEST)
        ]
        site.wait_until_node_listens(2)
        ours.wait_until_ready(LISTENING)

        site.run("select pg_notify('worker:migrate', %s)", json.dumps({"migrationNumber": 21, "breaking": False}))
        site.schema.add_job("job")
        site.wait_for(1)
        # As a migration does: the revision and its notification arrive together.
        site.run(
            "with installed as (insert into :S.migrations (id, breaking) values (21, true) returning id) "
            "select pg_notify('worker:migrate', %s) from installed",
            json.dumps({"migrationNumber": 21, "breaking": True}),
        )

        assert [worker.wait_until_ended() for worker in (ours, *theirs)] == [57, 57, 57]
    assert "schema revision 21, which needs a newer version of gw" in ours.output


# -- Node's housekeeping ----------------------------------------------------------------------------------------------


def test_nodes_cleanup_works_on_our_schema_and_harms_none_of_our_jobs(site: Site) -> None:
    with site.gw_running({"job": NOTES["python"]}, "--poll-interval", SOON) as ours:
        ours.wait_until_ready(LISTENING)
        site.schema.fail_permanently(site.schema.add_job("broken", queue_name="with the broken one"))
        waiting = site.schema.add_job("job", queue_name="kept", run_at=datetime(2099, 1, 1, tzinfo=UTC))
        site.schema.add_job("job", queue_name="empty")
        site.wait_for(1)
        site.wait_until_settled(left=[job["id"] for job in site.schema.jobs()])

        everything = ("DELETE_PERMAFAILED_JOBS", "GC_TASK_IDENTIFIERS", "GC_JOB_QUEUES")
        output = node_worker(NEWEST).clean_up(site.url, {"note": ""}, *everything)

        assert "ERROR" not in output
        assert [job["id"] for job in site.schema.jobs()] == [waiting["id"]]
        assert [row["queue_name"] for row in site.run("select queue_name from :S._private_job_queues")] == ["kept"]
        # Node keeps the names of the tasks that it knows itself, had they been there.
        assert [row["identifier"] for row in site.run("select identifier from :S._private_tasks")] == ["job"]
        site.client.jobs.reschedule([waiting["id"]], run_at=datetime.now(UTC))
        site.wait_for(2)
        site.schema.add_job("job", queue_name="empty")
        site.wait_for(3)
    assert "ERROR" not in ours.output


def test_we_run_jobs_of_a_task_that_nodes_cleanup_forgot(site: Site) -> None:
    site.client.add("job")
    site.gw_run_once({"job": NOTES["python"]})
    node_worker(NEWEST).clean_up(site.url, {"note": ""}, "GC_TASK_IDENTIFIERS")
    assert site.run("select 1 from :S._private_tasks") == []

    site.client.add("job")
    site.gw_run_once({"job": NOTES["python"]})

    assert len(site.wait_for(2)) == 2
