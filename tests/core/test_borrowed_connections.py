"""A job added over the caller's connection belongs to the caller's transaction, whatever connection that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row
from support.queue_fixture import QueueFixture

from gw_core import JobContext, JobSpec, TaskRegistry, run_once

BULK = 50
"""How many jobs one statement adds in these tests; tests/core/test_bulk_adds.py adds as many as it does otherwise."""
MANY = BULK + 10

SET_IN_SESSION = "select name, setting from pg_settings where source = 'session' order by name"

Begin = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _small_bulks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.postgres.road.add_calls.BULK", BULK)


@contextmanager
def after_a_statement(conn: psycopg.Connection[Any]) -> Iterator[None]:
    conn.execute("select 1")
    yield


FACTORIES = [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor]

WAYS = [
    pytest.param(lambda conn: nullcontext(), id="fresh connection"),
    pytest.param(after_a_statement, id="after a statement"),
    pytest.param(lambda conn: conn.pipeline(), id="pipeline"),
]

SPECS = [
    pytest.param([JobSpec(task="work")], id="1 job"),
    pytest.param([JobSpec(task="work") for _ in range(MANY)], id="several statements"),
    pytest.param([JobSpec(task="work", job_key=key) for key in ("a", "b", "a", "c")], id="job keys"),
]


def broken(specs: list[JobSpec]) -> list[JobSpec]:
    """The last job cannot be stored, and only the database knows: its payload is not JSON."""
    return [*specs, JobSpec(task="work", job_key="broken", payload=msgspec.Raw(b"no JSON"))]


def added(site: QueueFixture) -> int:
    (row,) = site.run("select count(*) from _private_jobs")
    return int(row["count"])


def expected(specs: list[JobSpec]) -> int:
    return len({spec.job_key or place for place, spec in enumerate(specs)})


def settings(conn: psycopg.Connection[Any]) -> tuple[Any, ...]:
    return (
        conn.autocommit,
        conn.isolation_level,
        conn.row_factory,
        conn.cursor_factory,
        conn.prepare_threshold,
        conn.execute(SET_IN_SESSION).fetchall(),
    )


@pytest.fixture
def conn(site: QueueFixture) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(site.url) as conn:
        yield conn


@pytest.mark.parametrize("begin", WAYS)
@pytest.mark.parametrize("specs", SPECS)
def test_a_bulk_is_invisible_before_the_callers_commit_and_there_after_it(
    site: QueueFixture, conn: psycopg.Connection[Any], begin: Begin, specs: list[JobSpec]
) -> None:
    before = settings(conn)
    conn.rollback()
    with begin(conn):
        ids = site.client.add_many(specs, conn=conn)
        assert added(site) == 0
        conn.commit()
        assert added(site) == expected(specs) == len(set(ids))

    assert settings(conn) == before


@pytest.mark.parametrize("begin", WAYS)
@pytest.mark.parametrize("specs", SPECS)
def test_a_bulk_is_gone_after_the_callers_rollback(
    site: QueueFixture, conn: psycopg.Connection[Any], begin: Begin, specs: list[JobSpec]
) -> None:
    before = settings(conn)
    conn.rollback()
    with begin(conn):
        site.client.add_many(specs, conn=conn)
        conn.rollback()

    assert added(site) == 0
    assert settings(conn) == before


@pytest.mark.parametrize("begin", WAYS)
@pytest.mark.parametrize("specs", SPECS)
def test_a_bulk_that_fails_in_the_middle_leaves_nothing_and_the_transaction_goes_on(
    site: QueueFixture, conn: psycopg.Connection[Any], begin: Begin, specs: list[JobSpec]
) -> None:
    before = settings(conn)
    conn.rollback()
    with begin(conn):
        with pytest.raises(Exception, match="type json"):
            site.client.add_many(broken(specs), conn=conn)
        site.client.add("work", job_key="after", conn=conn)
        conn.commit()

    assert [job["key"] for job in site.jobs()] == ["after"]
    assert settings(conn) == before


@pytest.mark.parametrize("specs", SPECS)
@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
@pytest.mark.parametrize("pipeline", [False, True], ids=["no pipeline", "pipeline"])
def test_a_bulk_inside_a_transaction_block_ends_with_the_block(
    site: QueueFixture, conn: psycopg.Connection[Any], autocommit: bool, pipeline: bool, specs: list[JobSpec]
) -> None:
    conn.autocommit = autocommit
    with conn.pipeline() if pipeline else nullcontext():
        with conn.transaction(force_rollback=True):
            site.client.add_many(specs, conn=conn)
        assert added(site) == 0
        with conn.transaction():
            with pytest.raises(Exception, match="type json"):
                site.client.add_many(broken(specs), conn=conn)
            site.client.add_many(specs, conn=conn)
            assert added(site) == 0
        assert added(site) == expected(specs)


@pytest.mark.parametrize("specs", SPECS)
@pytest.mark.parametrize("pipeline", [False, True], ids=["no pipeline", "pipeline"])
def test_a_bulk_in_autocommit_mode_is_added_whole_or_not_at_all_and_no_rollback_takes_it_back(
    site: QueueFixture, conn: psycopg.Connection[Any], pipeline: bool, specs: list[JobSpec]
) -> None:
    conn.autocommit = True
    before = settings(conn)
    with conn.pipeline() if pipeline else nullcontext():
        with pytest.raises(Exception, match="type json"):
            site.client.add_many(broken(specs), conn=conn)
        assert added(site) == 0
        site.client.add_many(specs, conn=conn)
    conn.rollback()

    assert added(site) == expected(specs)
    assert settings(conn) == before


@pytest.mark.parametrize("specs", SPECS)
def test_jobs_a_task_adds_over_its_own_connection_belong_to_its_transaction(
    site: QueueFixture, specs: list[JobSpec]
) -> None:
    tasks = TaskRegistry()

    @tasks.task("parent")
    def parent(payload: object, context: JobContext) -> None:
        with psycopg.connect(site.url) as conn:
            context.add_many(specs, conn=conn)
            conn.rollback()

    site.client.add("parent")
    run_once(site.url, tasks=tasks)

    assert added(site) == 0


# -- any psycopg connection ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cursors", FACTORIES)
@pytest.mark.parametrize("rows", [psycopg.rows.tuple_row, dict_row])
def test_a_connection_with_other_cursors_and_rows_will_do(site: QueueFixture, cursors: Any, rows: Any) -> None:
    with psycopg.connect(site.url, cursor_factory=cursors, row_factory=rows) as conn:
        before = settings(conn)
        job = site.client.add("work", {"n": 1}, job_key="k", flags=["f"], conn=conn)
        site.client.add_many([JobSpec(task="work", flags=["f"], job_key="m"), JobSpec(task="work")], conn=conn)
        site.client.add_many([JobSpec(task="work") for _ in range(MANY)], conn=conn)
        removed = site.client.remove("k", conn=conn)
        assert added(site) == 0
        assert settings(conn) == before
        conn.commit()

    assert job is not None
    assert removed is not None
    assert removed.job == job
    assert added(site) == MANY + 2
