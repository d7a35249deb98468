"""What tasks find of the project's database connection, with each way in which Django keeps connections."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connection
from settings import CONN_MAX_AGE, POOL
from shop import tasks
from shop.models import Order
from worker import URL, recorded_signals

from gw_core import RunResult, WorkerSettings, run_once
from gw_core.contrib.django.worker import registry

THREADS = 4


def run_jobs(threads: int = THREADS) -> RunResult:
    settings = WorkerSettings(concurrency=threads)
    return run_once(URL, tasks=registry(), settings=settings, migrate=False, handle_signals=False)


def backends() -> list[int]:
    """The sessions of the project's tasks, in the order of their runs."""
    return [int(pid) for pid in Order.objects.order_by("id").values_list("item", flat=True)]


def test_tasks_use_the_database_on_every_thread(jobs: Any) -> None:
    for _ in range(40):
        tasks.note_backend.enqueue()
    result = run_jobs()

    assert (result.completed, result.failed) == (40, 0)
    assert len(backends()) == 40


def test_a_session_lives_as_long_as_the_setting_says() -> None:
    for _ in range(10):
        tasks.note_backend.enqueue()
    run_jobs(threads=1)

    is_kept = bool(POOL) or CONN_MAX_AGE != 0
    assert (len(set(backends())) == 1) is is_kept


def test_a_pool_bounds_the_sessions_of_all_threads() -> None:
    for _ in range(60):
        tasks.note_backend.enqueue()
    run_jobs(threads=10)

    assert len(backends()) == 60
    if POOL:
        assert len(set(backends())) <= POOL["max_size"]


def test_a_session_that_the_server_ended_fails_no_other_task() -> None:
    tasks.note_backend.enqueue()
    tasks.end_other_sessions.enqueue()
    for _ in range(5):
        tasks.note_backend.enqueue()
    result = run_jobs(threads=1)

    assert (result.completed, result.failed) == (7, 0)


def test_an_enqueue_belongs_to_the_transaction_of_the_task() -> None:
    with recorded_signals() as signals:
        tasks.enqueue_and_roll_back.enqueue()
        result = run_jobs()

    assert result.completed == 2
    # Another thread may run the second task before the first has returned.
    assert {each.task.func.__name__ for name, _, each in signals if name == "finished"} == {
        "enqueue_and_roll_back",
        "note_backend",
    }


def test_no_session_is_left_in_a_transaction() -> None:
    for _ in range(10):
        tasks.note_backend.enqueue()
    run_jobs()

    with psycopg.connect(URL) as session:
        idle = "select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = %s"
        assert session.execute(idle, [connection.settings_dict["NAME"]]).fetchone() == (0,)
