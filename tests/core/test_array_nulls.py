"""A database may have `array_nulls = off`, which makes a text of every null in an array that is sent as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from support.queue_fixture import QueueFixture

from gw_core import JobSpec, RetryAfter


@pytest.fixture
def site_without_array_nulls(site: QueueFixture) -> Iterator[QueueFixture]:
    (row,) = site.run("select current_database() as name")
    site.run(f'alter database "{row["name"]}" set array_nulls = off')
    yield QueueFixture(site.url)
    site.run(f'alter database "{row["name"]}" reset array_nulls')


def test_failures_are_written(site_without_array_nulls: QueueFixture) -> None:
    def fails(payload: object) -> None:
        raise ValueError("no")

    def retries(payload: object) -> None:
        raise RetryAfter(timedelta(hours=1), "later")

    site = site_without_array_nulls
    site.add("fails")
    site.add("retries")

    assert site.run_once({"fails": fails, "retries": retries}).failed == 2
    assert [job["locked_by"] for job in site.jobs()] == [None, None]
    site.close()


def test_jobs_added_together_have_no_queue_and_no_key_called_null(site_without_array_nulls: QueueFixture) -> None:
    site = site_without_array_nulls
    site.client.add_many([JobSpec(task="one", queue_name="q", priority=3), JobSpec(task="two", flags=["slow"])])
    site.client.add_many([JobSpec(task="three", job_key="k", run_at=timedelta(hours=1)), JobSpec(task="four")])

    jobs = site.run("select task_identifier, queue_name, key, priority from jobs order by id")
    assert [tuple(job.values()) for job in jobs] == [
        ("one", "q", None, 3),
        ("two", None, None, 0),
        ("three", None, "k", 0),
        ("four", None, None, 0),
    ]
    site.close()
