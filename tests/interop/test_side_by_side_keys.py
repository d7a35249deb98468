"""A job key is one name for both languages: what one side added the other replaces, merges, keeps or removes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from mixed_workers import NOTES, WAITS, Kind, MixedQueue, by_node, side_by_side
from support.node_worker import FIRST_VERSION_WITH_BATCHES, NEWEST
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

LATER = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
FAILS_THE_FOURTH = """
def run(payload):
    return [ValueError("no") if item["n"] == 4 else None for item in payload]
"""
NEWEST_KIND = Kind(NEWEST)
OLDER = pytest.param(Kind(FIRST_VERSION_WITH_BATCHES), marks=pytest.mark.slow)
VERSIONS = pytest.mark.parametrize("kind", [OLDER, NEWEST_KIND], ids=str)


@VERSIONS
def test_a_job_replaced_by_the_other_side_runs_once_with_the_last_payload(site: MixedQueue, kind: Kind) -> None:
    ours = site.client.add("note", {"from": "python"}, job_key="b", run_at=LATER)
    theirs = by_node(
        site,
        kind.node,
        """
        const inQueue = { jobKey: "a", runAt: new Date(input.later), queueName: "q" };
        const first = await utils.addJob("note", { from: "node" }, inQueue);
        const second = await utils.addJob("note", { from: "node" }, { jobKey: "b" });
        return [first, second];
        """,
        later=LATER,
    )
    replaced = site.client.add("note", {"from": "python"}, job_key="a")

    assert ours is not None
    assert replaced is not None
    assert [int(job["id"]) for job in theirs] == [replaced.id, ours.id]
    assert (replaced.revision, replaced.queue_name, theirs[1]["revision"]) == (1, None, 1)
    site.gw_run_once({"note": NOTES["python"]})
    ran = {entry["job_id"]: entry["payload"] for entry in site.ledger()}
    assert ran == {replaced.id: {"from": "python"}, ours.id: {"from": "node"}}
    assert len(site.ledger()) == 2


def test_debounced_adds_of_both_sides_keep_the_first_time(site: MixedQueue) -> None:
    site.gw("add", "note", "--job-key", "b", "--run-at", LATER.isoformat(), "--payload", '{"from": "gw"}')
    theirs = by_node(
        site,
        NEWEST_KIND.node,
        """
        await utils.addJob("note", { from: "node" }, { jobKey: "a", runAt: new Date(input.later) });
        return await utils.addJob("note", { from: "node" }, { jobKey: "b", jobKeyMode: "preserve_run_at" });
        """,
        later=LATER,
    )
    ours = site.client.add("note", {"from": "client"}, job_key="a", job_key_mode="preserve_run_at")

    assert ours is not None
    assert (ours.run_at, ours.payload, ours.revision) == (LATER, {"from": "client"}, 1)
    assert (theirs["run_at"], theirs["payload"]) == ("2099-01-02T03:04:05.000Z", {"from": "node"})
    assert len(site.jobs()) == 2


def test_arrays_of_both_sides_are_merged_into_one_batch_job(site: MixedQueue) -> None:
    node = NEWEST_KIND.node
    by_node(
        site,
        node,
        'await utils.addJob("note", [{ n: 1 }], { jobKey: "k", runAt: new Date(input.later) });',
        later=LATER,
    )
    site.client.add_batch("note", [{"n": 2}], job_key="k", job_key_mode="preserve_run_at")
    by_node(site, node, 'await utils.addJobs([{ identifier: "note", payload: [{ n: 3 }], jobKey: "k" }]);')
    site.gw("add", "note", "--job-key", "k", "--payload", '[{"n": 4}]')

    [job] = site.jobs()
    assert job["payload"] == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]
    output = node.run_once(site.url, {"note": "return payload.map(({ n }) => n % 2 ? null : Promise.reject(n));"})

    [job] = site.jobs()
    assert job["payload"] == [{"n": 2}, {"n": 4}]
    assert "Batch failures" in output
    site.client.jobs.reschedule([job["id"]], run_at=datetime.now(UTC))
    site.gw_run_once({"note": FAILS_THE_FOURTH})
    [job] = site.jobs()
    assert (job["payload"], job["attempts"]) == ([{"n": 4}], 2)


def test_either_side_leaves_a_job_alone_that_the_other_added_when_asked_to_dedupe(site: MixedQueue) -> None:
    site.client.add("note", {"from": "python"}, job_key="b")
    theirs = by_node(
        site,
        NEWEST_KIND.node,
        """
        const added = await utils.addJob("note", { from: "node" }, { jobKey: "a" });
        const kept = await utils.addJob("other", { from: "node" }, { jobKey: "b", jobKeyMode: "unsafe_dedupe" });
        return { added, kept };
        """,
    )
    kept = site.client.add("other", {"from": "python"}, job_key="a", job_key_mode="unsafe_dedupe")

    assert kept is not None
    assert (kept.id, kept.payload) == (int(theirs["added"]["id"]), {"from": "node"})
    assert theirs["kept"]["payload"] == {"from": "python"}
    assert [row["task_identifier"] for row in site.run("select task_identifier from jobs")] == ["note", "note"]


def test_either_side_removes_what_the_other_added(site: MixedQueue) -> None:
    site.client.add("note", job_key="ours")
    by_node(
        site,
        NEWEST_KIND.node,
        """
        await utils.addJob("note", {}, { jobKey: "theirs" });
        await utils.addJob("note", {}, { jobKey: "theirs too" });
        await utils.withPgClient((client) => client.query("select graphile_worker.remove_job('ours')"));
        """,
    )
    removed = site.client.remove("theirs")
    site.gw("remove", "theirs too")

    assert removed is not None
    assert site.jobs() == []


@VERSIONS
def test_a_running_job_superseded_by_the_other_side_never_comes_back(site: MixedQueue, kind: Kind) -> None:
    with (
        site.closed_gate() as gate,
        side_by_side(
            site,
            kind,
            node={"in_node": WAITS["node"]},
            python={"in_python": WAITS["python"]},
            poll="100",
            jobs=1,
        ) as (theirs, ours),
    ):
        for task in ("in_node", "in_python"):
            site.add(task, {"fails": True}, job_key=task)
        first = [entry["job_id"] for entry in site.wait_for(2, "begun is not null")]

        site.client.add("in_node", {"last": True}, job_key="in_node")
        by_node(site, kind.node, 'await utils.addJob("in_python", { last: true }, { jobKey: "in_python" });')
        gate.open()
        site.wait_for(2)
        site.wait_until_settled(left=first)
        for worker in (theirs, ours):
            wait_until(lambda worker=worker: "as the test asked" in worker.output, what="the failure in the log")

    last = {entry["task"]: entry["payload"] for entry in site.ledger("job_id <> all(%s)", first)}
    assert last == {"in_node": {"last": True}, "in_python": {"last": True}}
    assert len(site.ledger()) == 4
    for job in site.jobs():
        assert (job["key"], job["is_available"], job["locked_by"]) == (None, False, None)
        assert job["attempts"] == job["max_attempts"]
