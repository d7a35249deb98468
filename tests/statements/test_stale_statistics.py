"""Statistics from before a large transaction: no statement compares each of its rows with each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from gw_core import JobSpec
from statements.statement_fixture import Queue

COUNT = 400
NAMES = "graphile_worker._private_jobs, graphile_worker._private_job_queues, graphile_worker._private_gw_unique"


@pytest.fixture
def stale(queue: Queue) -> Iterator[Queue]:
    """A queue in which each of 400 jobs has a queue, and as many are unique, as the planner does not know."""
    with queue.hands.transaction(), psycopg.connect(queue.url, autocommit=True) as other:
        specs = [JobSpec(task="mail", queue_name=f"q{n}", job_key=f"k{n}") for n in range(COUNT)]
        queue.client.add_many(specs, conn=queue.hands)
        add_unique(queue.hands, "before")
        other.execute(f"vacuum analyze {NAMES}")
    yield queue
    queue.run(f"analyze {NAMES}")


def add_unique(connection: psycopg.Connection[Any], name: str) -> None:
    jobs = [{"job": {"task": "mail"}, "unique_key": f"{name}{n}", "period_seconds": 3600} for n in range(COUNT)]
    connection.execute("select count(*) from graphile_worker._private_gw_add_unique(%s::json)", [json.dumps(jobs)])


@contextmanager
def comparing_nothing(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let the server report each plan of the session with what it did."""
    try:
        connection.execute("load 'auto_explain'")
    except psycopg.errors.UndefinedFile:
        pytest.skip("this server has no auto_explain")
    plans: list[str] = []
    connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
    for setting in ("log_analyze", "log_nested_statements"):
        connection.execute(f"set auto_explain.{setting} = on".encode())
    connection.execute("set auto_explain.log_min_duration = 0")
    connection.execute("set client_min_messages = log")
    yield
    assert plans
    compared = re.compile(r"(Join Filter: .*)\n *Rows Removed by Join Filter: (\d+)")
    found = [(each[1], int(each[2])) for plan in plans for each in compared.finditer(plan)]
    assert [each for each in found if each[1] > COUNT] == []


def test_unique_jobs_are_added(stale: Queue) -> None:
    with psycopg.connect(stale.url, autocommit=True) as connection, comparing_nothing(connection):
        add_unique(connection, "after")


def test_jobs_of_queues_are_claimed_and_completed(stale: Queue) -> None:
    with comparing_nothing(stale.store.connection):
        jobs = [job for job in stale.claim(limit=COUNT // 4) if job.queue_id is not None]
        assert jobs
        stale.complete(*jobs, release=jobs)


def test_jobs_of_queues_behind_the_first_ones_are_claimed(stale: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.postgres.road.claims.SCAN_LIMIT", COUNT // 8)
    for _ in range(4):
        stale.claim(worker_id="other", limit=COUNT // 8)
    with comparing_nothing(stale.store.connection):
        assert stale.claim_ids(limit=COUNT // 10, per_queue=1)
