"""`python -m bench.history_rows [ROWS]`: how large history is, and how long reading and expiring it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Final

from bench.server import Server, ask
from gw_core import Client
from gw_core.front_ends import Database
from gw_core.postgres.schema.history_partitions import HistoryPartitions

DAYS: Final = 7
ROWS: Final = 10_000_000
TABLE: Final = "graphile_worker._private_gw_history"
FILL: Final = f"""
insert into {TABLE} (job_id, attempt, max_attempts, task, state, final, worker_id,
                     created_at, started_at, finished_at, expires_at)
select n, 1, 25, 'task-' || n %% 100, case when n %% 1000 = 0 then 'failed' else 'completed' end, true, 'gw-bench',
       ended, ended, ended, ended + make_interval(days => {DAYS})
  from (select n, now() - n * make_interval(secs => {DAYS} * 86400.0 / %s) as ended
          from generate_series(1, %s) as n) as jobs
 where ended + make_interval(days => {DAYS}) > now()
"""
LARGEST: Final = f"""
select inhrelid::regclass::text from pg_inherits
 where inhparent = '{TABLE}'::regclass order by pg_relation_size(inhrelid) desc limit 1
"""
SIZE: Final = (
    f"select sum(pg_total_relation_size(inhrelid))::bigint from pg_inherits where inhparent = '{TABLE}'::regclass"
)


def main(rows: int) -> None:
    """Fill the history of a week, and print its size and the times."""
    with Server() as server, server.database() as url, Client(url) as client:
        client.migrate()
        with closing(Database(url).connect("bench")) as connection:
            HistoryPartitions(connection, "graphile_worker").make([timedelta(days=day) for day in range(DAYS + 1)])
        ask(url, FILL, rows, rows)
        ask(url, f"vacuum (analyze) {TABLE}")
        print(f"{rows:,} rows: {ask(url, SIZE) / rows:.0f} bytes each with their indexes")
        print(f"the latest jobs of a task: {fastest(lambda: client.history.list('task:task-7')):.1f} ms")
        print(f"the latest failed jobs: {fastest(lambda: client.history.list('state:failed')):.1f} ms")
        day = ask(url, LARGEST)
        count = ask(url, f"select count(*) from {day}")
        print(f"drop a day of {count:,} rows: {milliseconds(lambda: ask(url, f'drop table {day}')):.0f} ms")


def fastest(function: Callable[[], object]) -> float:
    """Return the shortest of three calls, in milliseconds; the first one connects."""
    return min(milliseconds(function) for _ in range(3))


def milliseconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    function()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
