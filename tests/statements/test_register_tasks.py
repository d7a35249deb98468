"""register_tasks.sql: task identifiers and their ids."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
from support.waiting import wait_until

from statements.statement_fixture import Queue


def test_missing_tasks_are_made_and_all_ids_answered(queue: Queue) -> None:
    queue.add("known")

    ids = queue.store.register_tasks(["new", "known"])

    assert sorted(ids.values()) == ["known", "new"]
    assert ids == {row["id"]: row["identifier"] for row in queue.run("select * from _private_tasks")}


def test_registering_again_uses_up_no_ids(queue: Queue) -> None:
    before = queue.store.register_tasks(["a", "b"])
    for _ in range(5):
        queue.store.register_tasks(["a", "b"])

    (newest,) = set(queue.store.register_tasks(["a", "b", "c"])) - set(before)
    assert newest == max(before) + 1


def test_a_task_another_session_makes_at_the_same_time_is_answered_as_well(queue: Queue) -> None:
    waits = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'"
    with psycopg.connect(queue.url) as other, ThreadPoolExecutor(1) as thread:
        other.execute("insert into graphile_worker._private_tasks (identifier) values ('mail')")
        registered = thread.submit(queue.store.register_tasks, ["mail", "other"])
        wait_until(lambda: queue.run(waits), what="our insert to wait for theirs")
        other.commit()

        assert sorted(registered.result(60).values()) == ["mail", "other"]


def test_no_tasks_are_no_tasks(queue: Queue) -> None:
    assert queue.store.register_tasks([]) == {}
