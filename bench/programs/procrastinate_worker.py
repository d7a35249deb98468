# mypy: disable-error-code="import-not-found, untyped-decorator"
# The peers live in an environment of their own.
"""Work procrastinate, at the address in libpq's variables: procrastinate_worker.py install | fill COUNT | drain."""

import os
import sys
from array import array
from pathlib import Path
from typing import Any

import uvloop
from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

CONNECTIONS = 5
CHUNK = 1_000
RAN = array("I")


def pool(**options: Any) -> AsyncConnectionPool:
    """Make a pool without the check of every connection it hands out, which is a round trip."""
    return AsyncConnectionPool(**{**options, "check": None})


# Autocommit spares two round trips a statement; both together are half its speed.
app = App(
    connector=PsycopgConnector(
        pool_factory=pool, kwargs={"autocommit": True}, min_size=CONNECTIONS, max_size=CONNECTIONS
    )
)


@app.task(name="noop")
async def noop(n: int) -> None:
    """Remember the job's number."""
    RAN.append(n)


async def main(verb: str, count: int) -> None:
    """Do one of the three things."""
    async with app.open_async():
        match verb:
            case "install":
                await app.schema_manager.apply_schema_async()
            case "fill":
                for first in range(0, count, CHUNK):
                    await noop.batch_defer_async(*({"n": n} for n in range(first, min(first + CHUNK, count))))
            case "drain":
                await app.run_worker_async(
                    wait=False, concurrency=CONNECTIONS, listen_notify=False, delete_jobs="always"
                )
                Path(os.environ["BENCH_RAN"], f"ran-{os.getpid()}").write_bytes(RAN.tobytes())


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
