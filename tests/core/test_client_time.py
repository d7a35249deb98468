"""A worker that goes by its own clock adds jobs by it too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from gw_core import Client, Job, JobContext, TaskRegistry
from gw_core.testing import drain

OURS = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)
GIVEN = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("run_at", "expected"),
    [
        pytest.param(None, OURS, id="now"),
        pytest.param(timedelta(minutes=5), OURS + timedelta(minutes=5), id="counted from now"),
        pytest.param(GIVEN, GIVEN, id="a moment"),
    ],
)
def test_now_is_what_the_clock_says(database_url: str, run_at: datetime | timedelta | None, expected: datetime) -> None:
    tasks, added = TaskRegistry(), []

    @tasks.task
    def parent(payload: object, context: JobContext) -> None:
        added.append(context.add("mail", {"n": 1}, run_at=run_at))

    with psycopg.connect(database_url) as connection, Client(database_url) as client:
        client.add("parent", conn=connection)
        drain(connection, tasks=tasks, now=OURS)

    assert [job.run_at for job in added if isinstance(job, Job)] == [expected]
