"""A real server stops before a minute begins and comes back after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cron_fixture import CronFixture, at
from support.databases import install_schema

from gw_core import Event
from gw_core.embedded import EmbeddedServer, start_or_attach


class Server:
    """A PostgreSQL of this test's own, to be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self._address = f"embedded://{folder}"
        self._use: EmbeddedServer = start_or_attach(self._address)
        self.url = self._use.conninfo

    def stop(self) -> None:
        self._use.close()

    def start(self) -> None:
        self._use = start_or_attach(self._address)


@pytest.fixture
def own_server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="gw-cron-") as place:
        server = Server(Path(place, "postgres"))
        try:
            yield server
        finally:
            server.stop()


def test_a_server_stopped_across_a_minute_boundary_costs_no_minute(own_server: Server) -> None:
    install_schema(own_server.url)
    recorded: list[Event] = []
    world = CronFixture(own_server.url)
    scheduler = world.scheduler("* * * * * tick", recorded=recorded)
    scheduler.step()
    world.clock.now = at("12:01:01")
    scheduler.step()
    own_server.stop()
    world.clock.now = at("12:02:01")
    scheduler.step()
    world.clock.now = at("12:03:01")
    scheduler.step()
    own_server.start()
    world.clock.now = at("12:03:20")
    scheduler.step()

    assert [(job.due, job.backfilled) for job in world.jobs()] == [
        ("12:01", False),
        ("12:02", True),
        ("12:03", True),
    ]
    assert [event.name for event in recorded if event.name in ("cron:error", "cron:restored")] == [
        "cron:error",
        "cron:restored",
    ]
    world.close()
