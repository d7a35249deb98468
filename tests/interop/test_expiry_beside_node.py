"""Jobs that expire, beside a worker of Node.js, which knows nothing of that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from mixed_workers import NOTES, Kind, MixedQueue
from support.node_worker import NEWEST
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

PAST, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2096, 1, 1, tzinfo=UTC)


def test_node_runs_its_jobs_whatever_their_time_and_gw_only_those_in_time(site: MixedQueue) -> None:
    for task in ("by_node", "by_python"):
        for expires_at in (PAST, LATER):
            site.client.add(task, {"n": expires_at.year}, expires_at=expires_at)
    node = Kind(NEWEST).node
    with node.running(site.url, {"by_node": NOTES["node"]}, "--poll-interval", "50"):
        site.wait_for(2)
        wait_until(lambda: site.client.jobs.count("task:by_node").jobs == 0, what="Node to settle its jobs")
    with site.gw_running({"by_python": NOTES["python"]}):
        site.wait_for(3)
        wait_until(
            lambda: [each.job.expires_at for each in site.client.jobs.list("state:failed").jobs] == [PAST],
            what="the expired job to fail",
        )
        wait_until(lambda: site.client.jobs.count("").jobs == 1, what="the other to end")
    assert sorted(each["side"] for each in site.ledger()) == ["node", "node", "python"]
