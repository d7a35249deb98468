"""Add jobs one by one on an asyncpg connection and print the CPU microseconds of each: asyncpg_add.py URL COUNT SIDE.

SIDE is `gw` for `AsyncClient.add`, or `sql` for a bare call of `add_job()`. Both add a dict and return the job.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable

import asyncpg

from gw_core import AsyncClient

BARE = "select * from graphile_worker.add_job($1, payload => $2::json)"
WARM_UP = 200

Add = Callable[[int], Awaitable[object]]


async def main(url: str, count: int, side: str) -> None:
    """Only this process is measured, so the server and its disk have no part in the figure."""
    conn = await asyncpg.connect(url)
    async with AsyncClient(url) as client:

        async def by_client(number: int) -> object:
            return await client.add("noop", {"n": number}, conn=conn)

        async def by_sql(number: int) -> object:
            return await conn.fetchrow(BARE, "noop", json.dumps({"n": number}))

        add: Add = by_client if side == "gw" else by_sql
        await _add_all(conn, add, WARM_UP)
        gc.collect()
        began = time.process_time()
        await _add_all(conn, add, count)
        print(1e6 * (time.process_time() - began) / count)
    await conn.close()


async def _add_all(conn: asyncpg.Connection[asyncpg.Record], add: Add, count: int) -> None:
    async with conn.transaction():
        for number in range(count):
            await add(number)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
