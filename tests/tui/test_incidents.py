"""Three incidents, played in a real terminal on a prepared database, with few keys.

The guide's section "Three incidents" has the same keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tmux import Pane

from gw_core import Client

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

LOOPING, UNKNOWN, DUE = 1_500, 1_397, 714
DEAD = "gw-app-3-977-760e1f"
# A cursor is on the row that it counts from when all three alerts are there.
LOOPS = "sync_crm keeps failing: 1,500 jobs in 10 min"
WAITS = "legacy_import: 1,397 ready, no live worker knows it"
BLOCKED = "714 due jobs in 8 queues wait: worker gw-app-3"
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 34), id="120x34")]

# Together: a task whose every attempt fails, one that no worker knows, and a dead worker that has locked eight queues;
# around them a queue that works.
INCIDENTS = f"""
insert into _private_tasks (identifier) values ('mail'), ('report'), ('sync_crm'), ('legacy_import');
insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata) values
  ('{DEAD}', now() - interval '1 day', now() - interval '20 minutes', 'app-3', 977, '1', '{{}}'),
  ('gw-app-1-12-aa01', now() - interval '1 day', now(), 'app-1', 12, '1',
   '{{"tasks": ["mail", "report", "sync_crm"]}}');
insert into _private_job_queues (queue_name) select 'shop-' || n from generate_series(1, 40) n;
insert into _private_jobs (task_id, run_at, payload)
select 1 + n % 2, now() + n * interval '1 second', '{{}}' from generate_series(1, 5000) n;
insert into _private_jobs (task_id, attempts, last_error, created_at, updated_at, run_at, payload)
select 3, 9, 'ConnectionRefusedError: crm.example.com', now() - interval '46 minutes',
       now() - n % 60 * interval '5 seconds', now() + interval '1 hour', '{{}}'
  from generate_series(1, {LOOPING}) n;
insert into _private_jobs (task_id, created_at, run_at, payload)
select 4, now() - interval '15 minutes', now() - interval '15 minutes', '{{}}' from generate_series(1, {UNKNOWN});
update _private_job_queues set locked_by = '{DEAD}', locked_at = now() - interval '20 minutes' where id <= 8;
insert into _private_jobs (job_queue_id, task_id, created_at, run_at, payload)
select 1 + n % 8, 1, now() - interval '4 minutes', now() - interval '4 minutes', '{{}}'
  from generate_series(1, {DUE}) n;
insert into _private_jobs (job_queue_id, task_id, attempts, locked_by, locked_at, created_at, run_at, payload)
select n, 1, 1, '{DEAD}', now() - interval '20 minutes', now() - interval '30 minutes', now() - interval '30 minutes',
       '{{}}'
  from generate_series(1, 8) n;
analyze;
"""

Play = Callable[[tuple[int, int]], Pane]


@pytest.fixture
def url(database_url: str) -> str:
    with Client(database_url) as client:
        client.migrate()
    with psycopg.connect(database_url, autocommit=True, options="-c search_path=graphile_worker") as connection:
        connection.execute(INCIDENTS.encode())
    return database_url


@pytest.fixture
def play(url: str, tmp_path: Path) -> Iterator[Play]:
    panes: list[Pane] = []

    def playing(size: tuple[int, int]) -> Pane:
        panes.append(Pane(["--connection", url], size=size, state=tmp_path))
        return panes[-1]

    yield playing
    for pane in panes:
        pane.close()


def becomes(url: str, statement: str, expected: int) -> None:
    """Wait until the query returns the expected number."""
    end = time.monotonic() + 60
    with psycopg.connect(url, autocommit=True, options="-c search_path=graphile_worker") as connection:
        while (found := connection.execute(statement.encode()).fetchone()) != (expected,):
            assert time.monotonic() < end, (statement, found)
            time.sleep(0.1)


@pytest.mark.parametrize("size", SIZES)
def test_a_failing_loop_is_found_and_stopped_in_six_keys(play: Play, url: str, size: tuple[int, int]) -> None:
    pane = play(size)
    pane.shows(LOOPS, WAITS, BLOCKED)

    pane.press("Enter")
    pane.shows("task:sync_crm", "ConnectionRefused")
    pane.press("C-a")
    pane.shows("1,500 marked")
    pane.press("f")
    pane.shows("Fail permanently?", "1,500  sync_crm")
    pane.press("Tab", "Enter")

    still = "from _private_jobs join _private_tasks as tasks on tasks.id = task_id where identifier = 'sync_crm'"
    becomes(url, f"select count(*) {still} and attempts < max_attempts", 0)
    becomes(url, f"select count(*) {still} and attempts = max_attempts", LOOPING)
    becomes(url, "select count(*) from _private_jobs where attempts = max_attempts", LOOPING)
    assert pane.keys <= 6


@pytest.mark.parametrize("size", SIZES)
def test_an_unknown_task_is_diagnosed_in_two_keys(play: Play, size: tuple[int, int]) -> None:
    pane = play(size)
    pane.shows(LOOPS, WAITS, BLOCKED)

    pane.press("8")

    line = next(each for each in pane.shows("no worker", "legacy_import").splitlines() if "legacy_import" in each)
    assert "1,397" in line or "1.40k" in line
    assert pane.keys <= 2


@pytest.mark.parametrize("size", SIZES)
def test_queues_behind_a_dead_worker_are_freed_in_five_keys(play: Play, url: str, size: tuple[int, int]) -> None:
    pane = play(size)
    pane.shows(LOOPS, WAITS, BLOCKED)

    pane.press("Down", "Enter")
    pane.shows("stale", DEAD)
    pane.press("u")
    pane.shows("All locks are released", "8 jobs and 8")
    pane.press("Tab", "Enter")

    becomes(url, "select count(*) from _private_job_queues where locked_at is not null", 0)
    becomes(url, "select count(*) from _private_jobs where locked_at is not null", 0)
    becomes(url, f"select count(*) from _private_job_queues where locked_by = '{DEAD}'", 0)
    assert pane.keys <= 5
