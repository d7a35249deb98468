"""Measure the commands that look on ten million jobs: `python tests/looking/ten_million.py postgres://…`.

It creates a database of its own, fills it by one insert … select, prints the medians of whole processes, warm, on a
schema as npm leaves it and with our own indexes, and how often the table of jobs was read sequentially; then it drops
the database. It takes some five minutes and 5 GB.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from databases import with_database

NAME = "gw_ten_million"
ROUNDS = 7
JOBS = 10_000_000
PROGRAM = Path(sys.executable).with_name("gw")
OUR_INDEXES = ("jobs_gw_queued_index", "jobs_gw_queue_heads_index")

# What survives is old: the first quarter has failed. Then ready, scheduled and waiting for a retry, in turns; all that
# is ready has the same moment, as after one bulk insert.
FILL = f"""
set search_path to graphile_worker;
set synchronous_commit to off;
insert into _private_tasks (identifier) select 'task_' || i from generate_series(1, 20) as i;
insert into _private_job_queues (queue_name) select 'queue_' || i from generate_series(1, 200) as i;
insert into _private_jobs (job_queue_id, task_id, payload, priority, run_at, attempts, last_error, key, flags)
select case when i % 10 < 3 then 1 + i / 10 % 200 end,
       1 + i * 7 % 20,
       json_build_object('id', i, 'text', 'hello'),
       i % 5 - 2,
       case when i <= {JOBS // 4} or i % 8 < 4 then now() - interval '1 minute'
            else now() + make_interval(hours => 1, secs => i % 100000) end,
       case when i <= {JOBS // 4} then 25 when i % 8 = 7 then 3 else 0 end,
       case when i <= {JOBS // 4} or i % 8 = 7 then 'connection refused by host ' || i % 1000 end,
       case when i % 1000 = 0 then 'key-' || i end,
       case when i % 50 = 0 then '{{"slow": true}}'::jsonb end
  from generate_series(1, {JOBS}) as i;
update _private_jobs set locked_at = now(), locked_by = 'pool-' || id % 60, attempts = 1
 where id in (select {JOBS // 2} + 1000 * i from generate_series(1, 2000) as i);
update _private_job_queues set locked_at = now(), locked_by = 'pool-1' where id <= 20;
"""

COMMANDS = (
    ("--version",),
    ("list",),
    ("list", "--after", "9000000"),
    ("list", "--state", "ready"),
    ("list", "--state", "ready", "--after", "DEEP"),
    ("list", "--state", "scheduled"),
    ("list", "--state", "running"),
    ("list", "--state", "failed"),
    ("list", "--queue", "queue_100", "--state", "ready"),
    ("list", "--task", "task_7", "--flag", "slow"),
    ("list", "--error", "host 999"),
    ("show", "5000000"),
    ("show", "--job-key", "key-5000000"),
    ("stats", "--tasks"),
    ("queues",),
    ("tasks",),
    ("workers",),
)


def main(server: str) -> None:
    """Make the database, measure, drop it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {NAME} template template0 encoding 'UTF8'")
        try:
            measure(with_database(server, NAME))
        finally:
            connection.execute(f"drop database {NAME} with (force)")


def measure(url: str) -> None:
    """Fill the database and time every command on both kinds of schema."""
    gw(url, "migrate")
    with psycopg.connect(url, autocommit=True) as connection:
        definitions = [index_definition(connection, name) for name in OUR_INDEXES]
        for name in OUR_INDEXES:
            connection.execute(f"drop index graphile_worker.{name}".encode())
        connection.execute(FILL.encode())
        connection.execute("vacuum analyze")
        print("## A schema as npm leaves it\n")
        report(connection, url)
        for definition in definitions:
            connection.execute(definition.encode())
        print("\n## With our own indexes\n")
        report(connection, url)


def report(connection: psycopg.Connection, url: str) -> None:
    """Print a line for each command."""
    deep = deep_mark(connection)
    print("| command | median ms | best ms | sequential scans of the jobs |\n|---|---|---|---|")
    for command in COMMANDS:
        arguments = [deep if each == "DEEP" else each for each in command]
        before = scans(connection)
        times = [gw(url, *arguments) for _ in range(ROUNDS + 1)][1:]
        median, best = (f"{1000 * each:.0f}" for each in (statistics.median(times), min(times)))
        print(f"| gw {' '.join(command)} | {median} | {best} | {scans(connection) - before} |")


def gw(url: str, *arguments: str) -> float:
    """Run the program and return the seconds it took."""
    environment = {**os.environ, "DATABASE_URL": url}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
    began = perf_counter()
    subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, check=True)
    return perf_counter() - began


def index_definition(connection: psycopg.Connection, name: str) -> str:
    """Return the statement that makes an index."""
    row = connection.execute(
        "select indexdef from pg_indexes where schemaname = 'graphile_worker' and indexname = %s", (name,)
    ).fetchone()
    assert row is not None
    return str(row[0])


def deep_mark(connection: psycopg.Connection) -> str:
    """Return the mark of a page deep among the jobs that share a priority and a moment."""
    row = connection.execute(
        "select (run_at at time zone 'UTC')::text, ctid::text from graphile_worker._private_jobs "
        "where is_available and priority = 0 order by priority, run_at offset 700000 limit 1"
    ).fetchone()
    assert row is not None
    return f"turn/0/{row[0].replace(' ', '_')}/{row[1].strip('()')}"


def scans(connection: psycopg.Connection) -> int:
    """Return how often the table of jobs has been read sequentially."""
    connection.execute("select pg_sleep(0.05)")  # the counters of a session that ended arrive a moment later
    row = connection.execute(
        "select seq_scan from pg_stat_all_tables where schemaname = 'graphile_worker' and relname = '_private_jobs'"
    ).fetchone()
    assert row is not None
    return int(row[0])


if __name__ == "__main__":
    main(sys.argv[1])
