"""Groups whose members, and whose last job, a worker of Node.js runs."""

from __future__ import annotations

import pytest
from mixed_workers import NOTES, Kind, MixedQueue
from support.node_worker import NEWEST
from support.waiting import wait_until

from gw_core import JobSpec

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

A_MINUTE_LATER = "update _private_gw_waiting set checked_at = checked_at - interval '1 minute'"


def tasks_of(site: MixedQueue) -> set[str]:
    return {row["task_identifier"] for row in site.run("select task_identifier from jobs")}


def test_members_that_node_ends_end_the_group(site: MixedQueue) -> None:
    node = Kind(NEWEST).node
    with node.running(site.url, {"by_node": NOTES["node"]}, "--poll-interval", "50", "--jobs", "4"):
        site.wait_until_node_listens()
        group = site.client.groups.add([JobSpec(task="by_node")] * 40, then=JobSpec(task="last"))
        site.wait_for(40)
        site.wait_until_settled([group.id])

    # Node knows nothing of groups: a worker of ours checks those that were not checked for 45 seconds.
    assert [(each.id, each.open) for each in site.client.groups.list()] == [(group.id, 0)]
    site.run(A_MINUTE_LATER)
    with site.gw_running({"last": NOTES["python"]}):
        site.wait_for(41)
        site.wait_until_settled()
    entries = site.ledger()
    assert [(each["task"], each["side"]) for each in entries[40:]] == [("last", "python")]
    assert site.client.groups.list() == []


def test_node_runs_the_last_job_of_a_group_whose_members_both_run(site: MixedQueue) -> None:
    node = Kind(NEWEST).node
    tasks = {"member": NOTES["node"], "last": NOTES["node"]}
    with node.running(site.url, tasks, "--poll-interval", "50", "--jobs", "4"):
        site.wait_until_node_listens()
        with site.gw_running({"member": NOTES["python"]}, "--poll-interval", "50"):
            site.client.groups.add([JobSpec(task="member")] * 200, then=JobSpec(task="last"))
            site.wait_for(200, "task = 'member' and ended is not null")
        wait_until(lambda: "member" not in tasks_of(site), what="every member to be settled")
        if site.client.groups.list():  # Node ended the last member
            site.run(A_MINUTE_LATER)
            with site.gw_running({"member": NOTES["python"]}):
                wait_until(lambda: not site.client.groups.list(), what="the group to be checked")
        site.wait_for(1, "task = 'last' and ended is not null")
        site.wait_until_settled()
    assert [each["side"] for each in site.ledger("task = 'last'")] == ["node"]
