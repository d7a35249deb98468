"""A worker that goes by its own clock adds jobs by it too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gw_core import Events, JobSpec
from gw_core.domain.plugins import Interceptors
from gw_core.operations import Database
from gw_core.postgres.connections import SharedConnection
from gw_core.postgres.enqueue import AddOperations, Enqueuer

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
    connection = SharedConnection(Database(database_url))
    adder = Enqueuer(connection, "graphile_worker", AddOperations(Interceptors(), Events(), clock=lambda: OURS))

    job = adder.add(JobSpec(task="mail", payload={"n": 1}, run_at=run_at), payload='{"n":1.0}')
    connection.close()

    assert job is not None
    assert (job.run_at, job.payload) == (expected, '{"n":1.0}')
