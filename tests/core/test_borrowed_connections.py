"""Adding jobs leaves a caller's connection as it was; tests/connections has the transactions of every kind of it."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product
from typing import Any, Final

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row, tuple_row
from support.queue_fixture import QueueFixture

from gw_core import JobContext, JobSpec, TaskRegistry, run_once

BULK: Final = 50
"""How many jobs one statement adds in these tests; tests/core/test_bulk_adds.py adds as many as it does otherwise."""

SPECS: Final = (
    [JobSpec(task="work", flags=["f"])],
    [JobSpec(task="work") for _ in range(BULK + 10)],
    [JobSpec(task="work", job_key=key) for key in ("a", "b", "a", "c")],
)
BROKEN: Final = JobSpec(task="work", job_key="broken", payload=msgspec.Raw(b"no JSON"))
"""It cannot be stored, and only the database knows."""

SET_IN_SESSION: Final = "select name, setting from pg_settings where source = 'session' order by name"


@pytest.fixture(autouse=True)
def _small_bulks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.postgres.road.add_calls.BULK", BULK)


def added(site: QueueFixture) -> int:
    return int(site.value("select count(*) from _private_jobs"))


def settings(conn: psycopg.Connection[Any]) -> tuple[Any, ...]:
    names = ("autocommit", "isolation_level", "row_factory", "cursor_factory", "prepare_threshold")
    return (*(getattr(conn, name) for name in names), conn.execute(SET_IN_SESSION).fetchall())


@pytest.mark.parametrize("cursors", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_a_connection_is_afterwards_what_it_was(site: QueueFixture, cursors: Any) -> None:
    for rows, autocommit in product((tuple_row, dict_row), (False, True)):
        with psycopg.connect(site.url, cursor_factory=cursors, row_factory=rows, autocommit=autocommit) as conn:
            before = settings(conn)
            for specs in SPECS:
                job = site.client.add("work", {"n": 1}, job_key="k", flags=["f"], conn=conn)
                site.client.add_many(specs, conn=conn)
                with pytest.raises(Exception, match="type json"):
                    site.client.add_many([*specs, BROKEN], conn=conn)
                removed = site.client.remove("k", conn=conn)
                assert (removed and removed.job) == job
            assert settings(conn) == before
            conn.rollback()


@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
@pytest.mark.parametrize("pipeline", [False, True], ids=["no pipeline", "pipeline"])
def test_a_bulk_ends_with_the_callers_block_and_without_one_it_is_added_whole_or_not_at_all(
    site: QueueFixture, autocommit: bool, pipeline: bool
) -> None:
    for specs in SPECS:
        expected = len({spec.job_key or place for place, spec in enumerate(specs)})
        with (
            psycopg.connect(site.url, autocommit=autocommit) as conn,
            conn.pipeline() if pipeline else nullcontext(),
        ):
            with conn.transaction(force_rollback=True):
                site.client.add_many(specs, conn=conn)
            assert added(site) == 0
            with conn.transaction():
                with pytest.raises(Exception, match="type json"):
                    site.client.add_many([*specs, BROKEN], conn=conn)
                site.client.add_many(specs, conn=conn)
                assert added(site) == 0
            assert added(site) == expected
            site.empty()
            with pytest.raises(Exception, match="type json"):
                site.client.add_many([*specs, BROKEN], conn=conn)
            assert added(site) == 0
            site.client.add_many(specs, conn=conn)
            conn.rollback()
            assert added(site) == (expected if autocommit else 0)
        site.empty()


def test_jobs_a_task_adds_over_its_own_connection_belong_to_its_transaction(site: QueueFixture) -> None:
    tasks = TaskRegistry()

    @tasks.task("parent")
    def parent(payload: object, context: JobContext) -> None:
        with psycopg.connect(site.url) as conn:
            for specs in SPECS:
                context.add_many(specs, conn=conn)
            conn.rollback()

    site.client.add("parent")
    run_once(site.url, tasks=tasks)

    assert added(site) == 0
