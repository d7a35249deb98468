"""A connection that swallows its first statement blocks no command."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hollow_server import HollowServer
from support.queue_fixture import in_time, ms

from gw_core import Client
from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import FrontEnd
from gw_core.postgres.connection import database


@pytest.fixture
def hollow() -> Iterator[HollowServer]:
    server = HollowServer()
    yield server
    server.close()


def test_the_deadline_of_a_first_statement_is_shorter_than_a_probe_waits() -> None:
    assert (
        database.FIRST_RESPONSE_TIMEOUT.total_seconds() + int(str(database.CONNECTION_TIMEOUTS["connect_timeout"]))
        <= 30
    )


@pytest.mark.parametrize("max_connections", [1, 10], ids=["a command", "a program"])
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda client: client.doctor.health_check(), id="health"),
        pytest.param(lambda client: FrontEnd(client).examine(), id="doctor"),
        pytest.param(lambda client: client.check_schema(), id="whatever changes something"),
        pytest.param(lambda client: client.migrate(), id="migrate"),
        pytest.param(lambda client: client.workers.list(), id="workers"),
        pytest.param(lambda client: client.workers.sweep(), id="sweep"),
        pytest.param(lambda client: client.jobs.get(1), id="show"),
        pytest.param(lambda client: client.add("work"), id="add"),
        pytest.param(lambda client: FrontEnd(client).listen(), id="listen"),
    ],
)
def test_a_client_without_an_answer_to_its_first_statement_gives_up(
    hollow: HollowServer, monkeypatch: pytest.MonkeyPatch, act: Callable[[Client], object], max_connections: int
) -> None:
    monkeypatch.setattr(database, "FIRST_RESPONSE_TIMEOUT", ms(50))

    with (
        Client(hollow.url, max_pool_size=max_connections) as client,
        pytest.raises(DatabaseUnavailableError, match=r"has not answered for 0\.05 s"),
    ):
        in_time(lambda: act(client))
