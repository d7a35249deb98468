"""A named queue that is paused stays closed for a worker of Node.js beside us."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from mixed_workers import NOTES, WAITS, Kind, MixedQueue
from support.node_worker import NEWEST
from support.waiting import wait_until

from gw_core import JobSpec

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]


def holder(site: MixedQueue) -> str | None:
    [row] = site.run("select locked_by from _private_job_queues where queue_name = 'slow'")
    holder: str | None = row["locked_by"]
    return holder


def test_a_paused_queue_stays_closed_for_node(site: MixedQueue) -> None:
    node = Kind(NEWEST).node
    with node.running(site.url, {"noted": NOTES["node"]}, "--poll-interval", "50", "--jobs", "4"):
        site.wait_until_node_listens()
        site.client.add_many([JobSpec(task="noted", queue_name="slow")] * 20_000)  # more than Node runs until the pause
        site.wait_for(3)
        site.client.pauses.pause("queue:slow")
        site.client.add("noted")
        site.wait_for(1, "queue is null and ended is not null")
        wait_until(
            lambda: not site.run("select 1 as found from _private_jobs where locked_at is not null"),
            what="Node to rest",
        )
        before = len(site.ledger("queue = 'slow'"))
        time.sleep(0.5)  # ten polls of Node's
        assert len(site.ledger("queue = 'slow'")) == before < 20_000
        assert holder(site) == "gw-pause:slow"

        site.client.pauses.resume("queue:slow")
        site.wait_for(before + 50, "queue = 'slow' and ended is not null")
        site.run("delete from _private_jobs where locked_at is null")
        site.wait_until_settled()
    assert holder(site) is None


def test_a_pause_that_no_worker_of_ours_ends_stays_listed(site: MixedQueue) -> None:
    """Node does not know when the pause ends, so the queue stays closed."""
    node = Kind(NEWEST).node
    with node.running(site.url, {"noted": NOTES["node"]}, "--poll-interval", "50"):
        site.wait_until_node_listens()
        site.client.pauses.pause("queue:slow", "task:other", until=timedelta(milliseconds=1))
        job = site.client.add("noted", queue_name="slow")
        site.client.add("noted")
        site.wait_for(1)

        assert [str(each.target) for each in site.client.pauses.list()] == ["queue:slow"]
        report = site.client.jobs.show(job.id)
        assert report is not None
        assert report.reasons[0].code == "paused"
        [found] = [each for each in site.client.doctor.findings() if each.check == "pauses"]
        assert (found.status, found.fix) == ("warning", "gw resume queue:slow")

        assert site.client.pauses.resume("queue:slow").changed == 1
        site.wait_for(2)
        site.wait_until_settled()
    assert site.client.pauses.list() == []


def test_a_job_that_node_runs_through_a_pause_keeps_its_queue_serial(site: MixedQueue) -> None:
    node = Kind(NEWEST).node
    with (
        site.closed_gate() as gate,
        node.running(site.url, {"waits": WAITS["node"]}, "--poll-interval", "50", "--jobs", "4"),
    ):
        site.wait_until_node_listens()
        for _ in range(2):
            site.client.add("waits", {}, queue_name="slow")
        site.wait_for(1, "begun is not null")
        site.client.pauses.pause("queue:slow")
        site.client.pauses.resume("queue:slow")
        assert holder(site) not in (None, "gw-pause:slow")
        time.sleep(0.3)
        assert len(site.ledger()) == 1

        gate.open()
        site.wait_for(2)
        site.wait_until_settled()
    entries = site.ledger()
    assert entries[1]["begun"] >= entries[0]["ended"]
    assert holder(site) is None
