"""How settling statements find their rows: by the ids, whatever the statistics say about locked jobs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.plans import kept_plan

from gw_core import Job
from gw_core.front_ends import Database
from gw_core.postgres.road.job_store import SETTLE_PLAN
from statements.statement_fixture import OURS, Queue

JOBS = 300

FAILURE: dict[str, Any] = {"messages": "x", "delays": None, "finals": False, "payloads": None}
RETURN: dict[str, Any] = {"attempts": 1, "keys": None, "delays": 0.0}
COLUMNS: dict[str, dict[str, Any]] = {
    "complete_jobs": {},
    "fail_jobs": FAILURE,
    "return_jobs": RETURN,
}


def comparisons(queue: Queue, name: str, jobs: list[Job], *, releases: str) -> int:
    """Run the statement as the settling session does, and return how many pairs of rows its joins threw away.

    It is prepared, because EXPLAIN of a statement with values shows a plan for these values.
    """
    columns = {column: [value] * len(jobs) for column, value in COLUMNS[name].items()}
    claims = {"ids": [job.id for job in jobs], "claims": [job.locked_at for job in jobs]}
    values = {"worker_id": OURS, "queue_ids": [], "unstarted": claims["ids"], **claims, **columns}
    parts = {"RELEASES": releases, "UNSTARTED": "true"}
    with Database(queue.url).connect("settle", SETTLE_PLAN) as connection:
        plan = kept_plan(connection, name, values, parts=parts, options="analyze, costs off")
    return sum(int(removed) for removed in re.findall(r"Rows Removed by Join Filter: (\d+)", plan))


@pytest.mark.parametrize("statistics", ["none", "of a table in which no job was locked"])
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("releases", ["true", "false"])
def test_settling_compares_no_outcome_with_every_locked_job(
    queue: Queue, name: str, releases: str, statistics: str
) -> None:
    queue.run("delete from _private_jobs")
    queue.run("select add_job('mail') from generate_series(1, %s)", 10 * JOBS)
    if statistics != "none":
        queue.run("analyze _private_jobs")
    jobs = queue.claim(limit=JOBS)
    assert len(jobs) == JOBS

    assert comparisons(queue, name, jobs, releases=releases) < 10 * JOBS
    assert queue.run("select from _private_jobs where locked_by = %s", OURS) == []
