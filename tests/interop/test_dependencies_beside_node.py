"""Jobs that wait for jobs which Node.js ends: its workers, its WorkerUtils, and the functions that both share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from mixed_workers import NOTES, MixedQueue, by_node
from support.node_worker import NEWEST, NodeWorker, node_worker
from support.waiting import wait_until

from gw_core import JobContext, TaskRegistry
from gw_core.errors import ResultUnavailableError

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

A_MINUTE_LATER = "update _private_gw_waiting set checked_at = checked_at - interval '1 minute'"
FAILS = "throw new Error('as the test asked');"


@pytest.fixture
def node() -> NodeWorker:
    return node_worker(NEWEST)


def ran(site: MixedQueue) -> list[str]:
    return sorted(each["payload"]["n"] for each in site.ledger())


def until_checked(site: MixedQueue) -> None:
    """Let a worker of ours check what waits, as each does about once a minute."""
    site.run(A_MINUTE_LATER)
    late = "select 1 from _private_gw_waiting where released_at is null and checked_at < now() - interval '45 seconds'"
    with site.gw_running({"other": NOTES["python"]}):
        wait_until(lambda: not site.run(late), what="the waiting jobs to be checked")


def test_a_single_run_starts_what_waited_for_jobs_that_node_ended(site: MixedQueue, node: NodeWorker) -> None:
    done, failed = site.client.add("by_node"), site.client.add("fails_in_node", max_attempts=1)
    site.client.add("by_python", {"n": "after"}, after=[done])
    site.client.add("by_python", {"n": "run"}, after=[failed], on_failure="run")
    held = site.client.add("by_python", {"n": "held"}, after=[failed])
    site.client.add("by_python", {"n": "cancel"}, after=[failed], on_failure="cancel")
    node.run_once(site.url, {"by_node": "", "fails_in_node": FAILS})

    site.gw_run_once({"by_python": NOTES["python"]})

    assert ran(site) == ["after", "run"]
    assert site.client.jobs.count("").jobs == 2
    assert [each.id for each in site.client.groups.list()] == [held.id]


def test_what_waits_follows_its_rule_whatever_node_does_to_the_job_that_it_waits_for(
    site: MixedQueue, node: NodeWorker
) -> None:
    acts: dict[str, list[int]] = {}
    for act in ("complete", "fail", "reschedule", "remove", "replace"):
        for rule in ("hold", "cancel", "run"):
            job = site.client.add("first", job_key=f"{act} {rule}")
            acts.setdefault(act, []).append(job.id)
            site.client.add("second", {"n": f"{act} {rule}"}, after=[job], on_failure=rule)
    by_node(
        site,
        node,
        """
        await utils.completeJobs(input.complete);
        await utils.permanentlyFailJobs(input.fail, "by node");
        await utils.rescheduleJobs(input.reschedule, { runAt: new Date("2099-01-01"), attempts: 3 });
        const removal = "select graphile_worker.remove_job($1)";
        const remove = (key) => utils.withPgClient((client) => client.query(removal, [key]));
        for (const rule of ["hold", "cancel", "run"]) {
            await remove(`remove ${rule}`);
            await utils.addJob("first", {}, { jobKey: `replace ${rule}`, runAt: new Date("2099-01-01") });
        }
        """,
        **{act: [str(each) for each in ids] for act, ids in acts.items()},
    )

    until_checked(site)
    node.run_once(site.url, {"second": NOTES["node"]})

    ended = [f"{act} {rule}" for act in ("complete", "remove") for rule in ("cancel", "hold", "run")]
    assert ran(site) == sorted([*ended, "fail run"])
    left = {each["payload"]["n"] for each in site.run("select payload from _private_jobs where run_at = 'infinity'")}
    waits_on = {f"{act} {rule}" for act in ("reschedule", "replace") for rule in ("hold", "cancel", "run")}
    assert left == {"fail hold", *waits_on}


def test_what_node_does_to_a_waiting_job_starts_it_early_only_as_documented(site: MixedQueue, node: NodeWorker) -> None:
    first = site.client.add("first")
    ids = {
        act: site.client.add("second", {"n": act}, job_key=act, after=[first]).id
        for act in ("complete", "fail", "priority", "time", "preserve", "dedupe", "replace", "remove")
    }
    for act, number in ids.items():
        site.client.add("second", {"n": f"after {act}"}, after=[number])
    by_node(
        site,
        node,
        """
        await utils.completeJobs([input.complete]);
        await utils.permanentlyFailJobs([input.fail], "by node");
        await utils.rescheduleJobs([input.priority], { priority: 7, attempts: 2, maxAttempts: 4 });
        await utils.rescheduleJobs([input.time], { runAt: new Date() });
        await utils.addJob("second", { n: "preserve" }, { jobKey: "preserve", jobKeyMode: "preserve_run_at" });
        await utils.addJob("second", { n: "dedupe" }, { jobKey: "dedupe", jobKeyMode: "unsafe_dedupe" });
        await utils.addJob("second", { n: "replace" }, { jobKey: "replace" });
        await utils.withPgClient((client) => client.query("select graphile_worker.remove_job('remove')"));
        """,
        **{act: str(number) for act, number in ids.items()},
    )

    node.run_once(site.url, {"second": NOTES["node"]})
    assert ran(site) == ["replace", "time"]
    until_checked(site)
    node.run_once(site.url, {"second": NOTES["node"]})
    early = ["complete", "remove", "replace", "time"]
    assert ran(site) == sorted(["replace", "time", *(f"after {act}" for act in early)])

    node.run_once(site.url, {"first": ""})
    for _ in range(2):
        until_checked(site)
        node.run_once(site.url, {"second": NOTES["node"]})
    assert ran(site) == sorted({*ids, *(f"after {act}" for act in ids)} - {"complete", "fail", "remove", "after fail"})
    # The one that Node failed holds the one that waits for it, and both can still be seen and retried.
    assert [each.job.id for each in site.client.jobs.list("state:failed").jobs] == [ids["fail"]]
    site.client.jobs.retry([ids["fail"]])
    node.run_once(site.url, {"second": NOTES["node"]})
    until_checked(site)
    node.run_once(site.url, {"second": NOTES["node"]})
    assert {"fail", "after fail"} < set(ran(site))
    site.wait_until_settled()


def test_a_job_that_others_failed_has_none_as_its_result(site: MixedQueue, node: NodeWorker) -> None:
    """A worker of Node.js, its WorkerUtils or `gw fail`. The result of a completed job is unknown."""
    jobs = [site.client.add("by_node", {"fails": n < 1}, max_attempts=1) for n in range(2)]
    jobs += [site.client.add("never_runs", run_at=timedelta(days=1)) for _ in range(2)]
    by_worker, done, by_utils, by_gw = jobs
    answers: dict[str, Any] = {}
    tasks = TaskRegistry()

    @tasks.task("asks")
    def asks(payload: dict[str, str], context: JobContext) -> None:
        try:
            answers[payload["of"]] = context.results()
        except ResultUnavailableError as error:
            answers[payload["of"]] = error.reason

    site.client.add("asks", {"of": "failed"}, after=[by_worker, by_utils, by_gw], on_failure="run")
    site.client.add("asks", {"of": "done"}, after=[done])
    node.run_once(site.url, {"by_node": "if (payload.fails) throw new Error('as the test asked');"})
    by_node(site, node, "await utils.permanentlyFailJobs([input.job], 'by node');", job=str(by_utils.id))
    site.client.jobs.fail([by_gw.id], "by gw")

    site.run_once(tasks)

    assert answers == {"failed": [None, None, None], "done": "not kept"}
