"""Every command, and both clients, behind PgBouncer in transaction mode while other programs use the same pool.

Those have prepared statements under the names that psycopg would choose, on every connection of the pool to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.cli_program import CliProgram, every_command
from support.databases import ReusedDatabase
from support.jobs_in_states import Queue
from support.pgbouncer import PgBouncer, bouncer_program
from test_all_commands import CHANGING, ELSEWHERE, READING, filled, path_of

from gw_cli.commands import bench
from gw_core import AsyncClient, Client, JobSpec

# No version of Python would change any of this.
pytestmark = pytest.mark.once

MANY = 6_000
OTHER_CODES = {"doctor": 7, "cancel 1 --timeout 0s": 1, "groups cancel 1": 6}
"""The exit codes that are not 0 without a pooler either."""
WITH_A_DATABASE = ("bench --count 100",)
"""Those that test_all_commands.py does not try, but that connect."""


@pytest.fixture
def pooled(reused_database: ReusedDatabase, database_url: str) -> Iterator[str]:
    """The test's database through a pooler with three connections to the server, which other programs have used."""
    with PgBouncer(reused_database.url(), bouncer_program(), mode="transaction", pool_size=3) as bouncer:
        bouncer.prepare_for_others()
        yield bouncer.url


@pytest.fixture(autouse=True)
def _prepare_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver prepare at the first use of a statement what it otherwise would at the sixth."""
    for kind in (psycopg.Connection, psycopg.AsyncConnection):
        monkeypatch.setitem(kind.connect.__func__.__kwdefaults__, "prepare_threshold", 0)


def test_a_command_works_beside_the_statements_of_others(
    gw: CliProgram, queue: Queue, pooled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "LATENCY_SECONDS", 1.0)
    filled(queue, tmp_path)

    for line in (*READING, *CHANGING, *WITH_A_DATABASE):
        ended = gw(*line.split(), "-c", pooled)

        assert ended.code == OTHER_CODES.get(line, 0), (line, ended.err)


def test_every_command_that_connects_is_tried_here() -> None:
    tried = {path_of(line) for line in (*READING, *CHANGING, *WITH_A_DATABASE)}
    connecting = {
        name for name, command in every_command().items() for each in command.params if "--connection" in each.opts
    }

    # `gw dev` is `gw run` until it is stopped, and the other prints where it would connect.
    assert connecting - tried == {"gw dev", "gw config show"}
    assert connecting & set(ELSEWHERE) <= {"gw bench", "gw dev", "gw config show"}


def test_a_bulk_action_ends_with_all_jobs(gw: CliProgram, queue: Queue, pooled: str) -> None:
    queue.many(MANY, "attempts", "case when i % 2 = 0 then 25 else 0 end")
    half = MANY // 2

    for line, what in (
        ("reschedule state:ready --priority 2", f"Rescheduled {half:,} jobs"),
        ("retry state:failed", f"Retried {half:,} jobs"),
        ("fail state:ready priority:2", f"Failed {half:,} jobs"),
        ("complete --all", f"Completed {MANY:,} jobs"),
    ):
        ended = gw(*line.split(), "--yes", "-c", pooled)
        assert (ended.code, what in ended.err) == (0, True), ended.err


@pytest.mark.parametrize("connections", [1, 3])
def test_a_client_works_beside_the_statements_of_others(queue: Queue, pooled: str, connections: int) -> None:
    with Client(pooled, max_pool_size=connections) as client:
        for number in range(10):
            client.add("mail", {"number": number})
        client.add_many(JobSpec(task="mail") for _ in range(10))
        client.pauses.pause("task:mail")
        client.limits.set("mail", running=1)

        assert len(client.jobs.complete("task:mail").changed) == 20


def test_a_client_on_an_event_loop_works_beside_the_statements_of_others(queue: Queue, pooled: str) -> None:
    async def act() -> int:
        async with AsyncClient(pooled) as client:
            added = await asyncio.gather(*(client.add("mail", {"number": number}) for number in range(20)))
            return len((await client.jobs.complete([each.id for each in added if each])).changed)

    assert asyncio.run(act()) == 20
