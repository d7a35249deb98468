"""A named queue counted to the end, and a job read without its payload."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.plans import plan_for

from gw_core.front_ends import Count, FrontEnd
from gw_core.postgres.read import job_queries


@pytest.fixture(autouse=True)
def leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the bound of counting, which a machine that stands still for seconds would meet."""
    monkeypatch.setattr(job_queries, "COUNTING_TIMEOUT", timedelta(minutes=2))


@pytest.fixture(params=["with our indexes", "without them"])
def either(request: pytest.FixtureRequest, queue: Queue) -> Queue:
    """A queue with and without what leads to the jobs of a named queue."""
    if request.param == "without them":
        queue.rows("drop index jobs_gw_queue_heads_index")
    return queue


def test_a_queue_is_counted_beyond_the_bound_of_the_list(either: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queries, "MAX_UNCLAIMED", 2)
    for _ in range(3):
        either.ready(queue_name="letters")
    either.scheduled(queue_name="letters")
    either.running(queue_name="letters")
    either.failed(queue_name="letters")
    either.ready(queue_name="others")

    assert FrontEnd(either.client).count_queue("letters") == (Count(4), Count(3))


def test_a_queue_that_is_unknown_has_no_locks(queue: Queue) -> None:
    assert queue.front_end.count_queue("letters") == (Count(0), Count(0))


def test_counting_reads_nothing_but_the_queue(queue: Queue) -> None:
    queue.many(20_000, "job_queue_id", "null")
    for _ in range(3):
        queue.ready(queue_name="letters")
    queue.rows("analyze _private_jobs")

    plan = plan_for(queue.hands, "queue_count", {"name": "letters"})

    assert "Seq Scan on _private_jobs" not in plan
    assert "jobs_gw_queue" in plan


def test_a_job_can_be_read_without_its_payload(queue: Queue) -> None:
    job = queue.ready(payload={"secret": "s3cr3t"}, job_key="k")

    for report in (
        queue.client.jobs.show(job, with_payload=False),
        queue.client.jobs.show(job_key="k", with_payload=False),
    ):
        assert report is not None
        assert (report.job.id, report.job.payload_json) == (job, "")
    shown = queue.client.jobs.show(job)
    assert shown is not None
    assert shown.job.payload_json == '{"secret":"s3cr3t"}'


def test_gw_show_leaves_the_payload_out_when_asked_to(gw: CliProgram, queue: Queue) -> None:
    job = queue.ready(payload={"secret": "s3cr3t"})

    assert gw("show", str(job), "--json", "--no-payload").json["payload"] is None
    assert "s3cr3t" not in gw("show", str(job), "--no-payload").out
    assert "s3cr3t" in gw("show", str(job)).out
