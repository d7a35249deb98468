"""Limits of tasks beside Node.js, which ignores them: what it holds counts, and its cleanup can take an index away."""

from __future__ import annotations

import pytest
from mixed_workers import NOTES, WAITS, MixedQueue
from support.node_worker import NEWEST, node_worker
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

OFTEN = ("--poll-interval", "100")


def test_a_job_that_node_holds_counts_until_it_ends_or_is_swept(site: MixedQueue) -> None:
    site.client.limits.set("limited", running=1)
    python = {"limited": NOTES["python"], "free": NOTES["python"]}
    with site.closed_gate(), node_worker(NEWEST).running(site.url, {"limited": WAITS["node"]}, *OFTEN) as theirs:
        held = site.client.add("limited", {})
        site.wait_for(1, "begun is not null")
        theirs.process.kill()
        waiting = site.client.add("limited", {})
        with site.gw_running(python, *OFTEN):
            site.client.add("free")
            site.wait_for(1, "task = 'free' and ended is not null")
            report = site.client.jobs.show(waiting.id)
            assert report is not None
            assert report.reasons[0].code == "limited"

            site.run(
                "update _private_jobs set locked_at = locked_at - interval '11 minutes' where locked_at is not null"
            )
            site.gw("sweep", "--orphans-after", "10m", "--recovery-delay", "0s")
            site.wait_until_settled()
    assert [(each["job_id"], each["attempt"]) for each in site.ledger("side = 'node'")] == [(held.id, 1)]
    assert {each["job_id"] for each in site.ledger("side = 'python'")} > {held.id, waiting.id}


def test_a_limit_by_field_is_set_again_after_nodes_cleanup(site: MixedQueue) -> None:
    site.client.limits.set("limited", running=1, field="tenant")
    node_worker(NEWEST).clean_up(site.url, {"other": ""}, "GC_TASK_IDENTIFIERS")
    site.client.add("limited", {"tenant": 1})

    [found] = [each for each in site.client.doctor.findings() if each.check == "limits"]
    assert (found.status, found.fix) == ("error", "set the limit again with gw limit")
    with site.gw_running({"limited": NOTES["python"]}, *OFTEN) as ours:
        wait_until(lambda: "set the limit again with gw limit" in ours.output, what="the worker to report it")
        assert site.ledger() == []
        site.client.limits.set("limited", running=1, field="tenant")
        site.wait_for(1)
        site.wait_until_settled()
    task_id = site.value("select id from _private_tasks where identifier = 'limited'")
    (index,) = site.rows("select relname::text from pg_class where relname like 'jobs_gw_field_%'")
    assert index[0].startswith(f"jobs_gw_field_{task_id}_")
