"""What `gw doctor` and `gw show` report of jobs that only a worker of Node.js runs, which sends no heartbeats."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta

import pytest
from mixed_workers import NOTES, WAITS, Kind, MixedQueue
from support.node_worker import NEWEST
from support.waiting import wait_until

from gw_core.operations import Finding

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]


def backlog(site: MixedQueue) -> list[Finding]:
    return [each for each in site.client.doctor.findings() if each.check == "backlog"]


@pytest.mark.parametrize("with_ours", [False, True], ids=["alone", "beside-ours"])
def test_due_jobs_of_a_task_of_node_are_no_error_while_it_works(site: MixedQueue, with_ours: bool) -> None:
    node = Kind(NEWEST).node
    # The gate opens first, so that the worker of Node, which waits for its job, ends.
    with node.running(site.url, {"by_node": WAITS["node"]}, "--poll-interval", "50", "--jobs", "1"), site.closed_gate():
        site.wait_until_node_listens()
        for _ in range(2):
            waiting = site.client.add("by_node", {}, run_at=site.now() - timedelta(minutes=5))
        site.run("update _private_jobs set created_at = run_at")
        site.wait_for(1, "begun is not null")
        with site.gw_running({"by_python": NOTES["python"]}) if with_ours else nullcontext():
            wait_until(lambda: len(site.client.workers.list()) == 1 + with_ours, what="the workers to be known")

            assert [each.status for each in backlog(site)] == ["ok"]

            report = site.client.jobs.show(waiting.id)
            assert report is not None
            assert "workers in other languages send none" in report.reasons[-1].message
            site.run("update _private_jobs set run_at = now() - interval '2 hours'")
            site.run("update _private_jobs set created_at = run_at")
            [late] = backlog(site)
            assert late.message.endswith("no worker claimed it")
