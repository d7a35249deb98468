"""Defects of Graphile Worker's statements that ours do not have: the same story for both, side by side.

The third story, of a keyed add that races with a worker, is in test_keyed_add_beside_node.py.
"""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from mixed_workers import BATCHES, LISTENING, WAITS, MixedQueue
from support.node_worker import NEWEST, node_worker
from support.waiting import wait_until

from gw_core import JobSpec, Runner, TaskRegistry, WorkerSettings
from gw_core.front_ends import FrontEnd

pytestmark = [pytest.mark.interop, pytest.mark.once]

OTHER_POOL = "pool-of-somebody-else"


def _taken_by_another_pool(site: MixedQueue) -> None:
    """The worker was presumed dead, its job returned, and claimed by another pool, which runs it now."""
    site.run("update _private_jobs set locked_by = %s, locked_at = now(), attempts = attempts + 1", OTHER_POOL)


# -- the zombie: a late result after having been presumed dead --------------------------------------------------------


def test_a_zombie_of_node_ends_the_run_of_another_process(site: MixedQueue) -> None:
    with site.closed_gate() as gate, node_worker(NEWEST).running(site.url, {"job": WAITS["node"]}) as node:
        site.wait_until_node_listens()
        site.add("job", {})
        site.wait_for(1, "begun is not null")
        _taken_by_another_pool(site)
        gate.open()
        wait_until(lambda: "Completed task" in node.output)
        wait_until(lambda: site.jobs() == [])


def test_a_zombie_of_ours_changes_nothing_and_says_that_it_lost_the_job(site: MixedQueue) -> None:
    with site.closed_gate() as gate, site.gw_running({"job": WAITS["python"]}) as ours:
        ours.wait_until_ready(LISTENING)
        site.add("job", {})
        site.wait_for(1, "begun is not null")
        _taken_by_another_pool(site)
        gate.open()
        wait_until(lambda: "Lost job" in ours.output)

    [job] = site.jobs()
    assert (job["locked_by"], job["attempts"], job["last_error"]) == (OTHER_POOL, 2, None)


# -- the retired job: removed while a worker held it ------------------------------------------------------------------


def _retire(site: MixedQueue, job_key: str) -> None:
    [job] = site.run("select * from remove_job(%s)", job_key)
    assert job["attempts"] == job["max_attempts"]


def test_a_job_removed_while_node_held_it_comes_back_to_life(site: MixedQueue) -> None:
    node = node_worker(NEWEST)
    tasks = {"job": WAITS["node"]}
    jobs = site.jobs
    with site.closed_gate() as gate, node.running(site.url, tasks, "--jobs", "1", preset=BATCHES) as running:
        site.wait_until_node_listens()
        site.client.add_many([JobSpec(task="job", payload={}), JobSpec(task="job", payload={}, job_key="k")])
        site.wait_for(1, "begun is not null")
        wait_until(lambda: len(site.locks()) == 2)
        _retire(site, "k")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any(job["is_available"] and job["attempts"] < job["max_attempts"] for job in jobs()))
        gate.open()


def test_a_job_removed_while_we_held_it_stays_removed(site: MixedQueue) -> None:
    registry = TaskRegistry()
    gate = site.closed_gate()
    registry.register("quick", lambda payload: None)
    registry.register("job", lambda payload, context: context.query("select public.pass_gate()"))
    settings = WorkerSettings(concurrency=1, prefetch=timedelta(minutes=10), grace_period=timedelta(0))
    with gate:
        runner = Runner(site.url, tasks=registry, settings=settings, handle_signals=False)
        runner.start()
        site.fill(5, task="quick")
        site.wait_until_settled()
        site.client.add_many([JobSpec(task="job", payload={}), JobSpec(task="job", payload={}, job_key="k")])
        wait_until(lambda: len(site.locks()) == 2)
        _retire(site, "k")
        runner.stop()
        runner.wait()

    [returned, retired] = sorted(site.jobs(), key=lambda job: int(job["attempts"]))
    assert (returned["attempts"], returned["is_available"]) == (0, True)
    assert (retired["attempts"], retired["is_available"]) == (retired["max_attempts"], False)


# -- a local queue that runs several jobs of one named queue ----------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "batch_size", "reported"),
    [pytest.param("0.17.3", 10, ["serial"], id="0.17"), pytest.param(NEWEST, 1, [], id="newest")],
)
def test_the_doctor_reports_a_local_queue_that_does_not_keep_named_queues_serial(
    site: MixedQueue, version: str, batch_size: int, reported: list[str]
) -> None:
    for _ in range(10):
        site.add("job", {}, queue_name="serial")
    local_queue = {"localQueue": {"size": 20}, "concurrentJobs": 10}
    worker = node_worker(version)
    with site.closed_gate() as gate, worker.running(site.url, {"job": WAITS["node"]}, preset=local_queue):
        site.wait_for(batch_size, "begun is not null")
        facts = FrontEnd(site.client).examine()
        gate.open()

    assert facts.parallel_queues == reported
