"""What adding a job costs beside the bare SQL call on the same connection."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from connections.kinds import asyncpg_connection

from gw_core import AsyncClient

MOST = 1.3
ADDS = 200
ROUNDS = 15
TRIES = 3
"""Other programs on the machine make a single figure uncertain."""

BARE = "select * from graphile_worker.add_job($1, payload => $2::json)"

Add = Callable[[int], Awaitable[object]]


def test_an_add_on_asyncpg_costs_at_most_1_3_times_the_bare_call(database_url: str) -> None:
    """Both add the same payload, given as a dict, and return the job. `pytest -s` prints the figures."""
    pytest.importorskip("asyncpg")
    gc.freeze()  # what the tests before have left costs both sides time, at random
    for _ in range(TRIES):
        if (ratio := asyncio.run(_ratio(database_url))) <= MOST:
            break
    gc.unfreeze()
    print(f"\nasyncpg: {ratio:.2f} times the bare call, in CPU time")
    assert ratio <= MOST


async def _ratio(url: str) -> float:
    conn: Any = await asyncpg_connection(url)
    async with AsyncClient(url) as client:

        async def add(number: int) -> None:
            await client.add("mail", {"n": number}, conn=conn)

        async def call(number: int) -> None:
            await conn.fetchrow(BARE, "mail", json.dumps({"n": number}))

        ratios = [await _seconds(conn, add) / await _seconds(conn, call) for _ in range(ROUNDS)]
    await conn.close()
    return statistics.median(ratios)


async def _seconds(conn: Any, add: Add) -> float:
    """Return the CPU time of this process for a few hundred adds in a transaction that is rolled back."""
    transaction = conn.transaction()
    await transaction.start()
    began = time.process_time()
    for number in range(ADDS):
        await add(number)
    seconds = time.process_time() - began
    await transaction.rollback()
    return seconds
