"""Jobs that are unique for a time, and jobs with steps, that Node.js ends, fails or replaces."""

from __future__ import annotations

from datetime import timedelta

import pytest
from mixed_workers import MixedQueue, by_node
from support.node_worker import NEWEST, node_worker

from gw_core import JobContext, TaskRegistry

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

HOUR = timedelta(hours=1)


def test_a_unique_job_that_node_ended_still_counts(site: MixedQueue) -> None:
    node = node_worker(NEWEST)
    by_worker, by_utils = (site.client.add("by_node", {"n": n}, unique_for=HOUR).id for n in range(2))
    by_node(site, node, "await utils.completeJobs([input.job]);", job=str(by_utils))
    node.run_once(site.url, {"by_node": ""})
    site.wait_until_settled()

    again = [site.client.add("by_node", {"n": n}, unique_for=HOUR).id for n in range(2)]

    assert again == [by_worker, by_utils]
    assert site.client.jobs.count("").jobs == 0


@pytest.mark.parametrize(
    ("act", "is_new"),
    [
        ("await utils.rescheduleJobs([input.job], { runAt: new Date(), priority: 3 });", False),
        ("await utils.addJob('work', { n: 2 }, { jobKey: 'k', jobKeyMode: 'unsafe_dedupe' });", False),
        ("await utils.addJob('work', { n: 2 }, { jobKey: 'k' });", True),
    ],
    ids=["reschedule", "dedupe", "replace"],
)
def test_steps_stay_unless_node_replaces_the_job(site: MixedQueue, act: str, is_new: bool) -> None:
    node, ran, tasks = node_worker(NEWEST), list[str](), TaskRegistry()

    @tasks.task("work")
    def work(payload: object, context: JobContext) -> None:
        context.step("first", ran.append, "first")
        if len(ran) == 1:
            raise RuntimeError("as the test asked")

    def again() -> None:
        by_node(site, node, "await utils.rescheduleJobs([input.job], { runAt: new Date() });", job=str(job.id))

    job = site.client.add("work", {"n": 1}, job_key="k")
    site.run_once(tasks)
    by_node(site, node, act, job=str(job.id))
    again()
    node.run_once(site.url, {"work": "throw new Error('as the test asked');"})
    again()
    ran.append("second attempt")
    site.run_once(tasks)

    assert ran == ["first", "second attempt", *["first"] * is_new]
    site.wait_until_settled()
