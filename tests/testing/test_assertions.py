"""`assert_enqueued`, `refute_enqueued` and `enqueued`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import psycopg
import pydantic
import pytest

from gw_core import Client, task
from gw_core.errors import InvalidInputError
from gw_core.testing import assert_enqueued, enqueued, refute_enqueued

Connection = psycopg.Connection[Any]


class Order(pydantic.BaseModel):
    number: int
    note: str | None = None


def test_part_of_a_payload_is_enough(client: Client, conn: Connection) -> None:
    client.add("mail", {"to": "ann", "body": {"lines": [1, 2], "at": "now"}}, conn=conn, job_key="k", priority=3)
    [job] = assert_enqueued(conn, "mail", {"to": "ann", "body": {"lines": [1, 2]}}, job_key="k", priority=3)
    assert job.payload["body"]["at"] == "now"
    assert_enqueued(conn, "mail", {"to": ANY})
    refute_enqueued(conn, "mail", {"body": {"lines": [1]}})
    refute_enqueued(conn, "mail", queue_name="q")


def test_values_are_compared_as_json_stores_them(client: Client, conn: Connection) -> None:
    number, when = UUID(int=5), datetime(2020, 2, 29, tzinfo=UTC)
    client.add("mail", {"id": number, "at": when, "pair": (1, 2)}, conn=conn)
    assert_enqueued(conn, "mail", {"id": number, "at": when, "pair": (1, 2)})


def test_the_time_is_checked_within_a_window(client: Client, conn: Connection) -> None:
    when = datetime(2100, 1, 1, tzinfo=UTC)
    client.add("mail", {"n": 1}, conn=conn, run_at=when)
    client.add("mail", {"n": 2}, conn=conn, run_at=timedelta(hours=1))
    assert_enqueued(conn, "mail", {"n": 1}, run_at=when)
    assert_enqueued(conn, "mail", {"n": 1}, run_at=when + timedelta(minutes=5), within=timedelta(minutes=6))
    assert_enqueued(conn, "mail", {"n": 1}, run_at=(when - timedelta(days=1), when))
    assert_enqueued(conn, "mail", {"n": 1}, run_at=timedelta(days=1), now=when - timedelta(days=1))
    assert_enqueued(conn, "mail", {"n": 2}, run_at=timedelta(hours=1))
    refute_enqueued(conn, "mail", {"n": 2}, run_at=timedelta(0))


def test_a_failure_lists_the_nearest_jobs_first(client: Client, conn: Connection) -> None:
    client.add("other", {"to": "ann"}, conn=conn)
    client.add("mail", {"to": "bob", "copy": 1}, conn=conn, queue_name="q")
    client.add("mail", {"to": "bob", "copy": 2}, conn=conn)
    with pytest.raises(AssertionError) as failure:
        assert_enqueued(conn, "mail", {"to": "ann", "copy": 2})
    lines = str(failure.value).splitlines()
    assert lines[0] == (
        "expected a waiting job of the task 'mail' with payload={'to': 'ann', 'copy': 2}, but there is none"
    )
    assert lines[1] == "the nearest of 3 waiting jobs:"
    assert '"copy":2' in lines[2]
    assert lines[2].endswith("<- differs in payload.to")
    assert lines[3].endswith("<- differs in payload.to, payload.copy")
    assert "differs in task" in lines[4]


def test_a_failure_without_jobs_says_so(conn: Connection) -> None:
    with pytest.raises(AssertionError, match="no job is waiting"):
        assert_enqueued(conn, "mail")


def test_the_number_of_jobs_is_checked(client: Client, conn: Connection) -> None:
    for _ in range(2):
        client.add("mail", conn=conn)
    assert len(assert_enqueued(conn, "mail", count=2)) == 2
    with pytest.raises(AssertionError, match=r"expected 3 waiting jobs .* but there are 2"):
        assert_enqueued(conn, "mail", count=3)


def test_a_refutation_lists_what_it_found(client: Client, conn: Connection) -> None:
    client.add("mail", {"to": "ann"}, conn=conn)
    with pytest.raises(AssertionError, match=r"expected no waiting job .* but there are 1:\n  \d+: mail .*ann"):
        refute_enqueued(conn, "mail")


def test_enqueued_returns_jobs_in_the_order_of_a_worker(client: Client, conn: Connection) -> None:
    for priority in (5, -5, 0):
        client.add("mail", conn=conn, priority=priority)
    client.add("other", conn=conn)
    assert [job.priority for job in enqueued(conn, "mail")] == [-5, 0, 5]
    assert len(enqueued(conn)) == 4


def test_any_connection_can_be_asked(client: Client, database_url: str) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    conn = psycopg2.connect(database_url)
    client.add("mail", {"to": "ann"}, conn=conn)
    assert_enqueued(conn, "mail", {"to": "ann"})
    conn.close()


class Line(pydantic.BaseModel):
    sku: str
    count: int = 1


@task("orders/pack", queue_name="packing")
def pack(payload: list[Line]) -> None: ...


@task("orders/ship")
def ship(payload: Line) -> None: ...


def test_tasks_specs_and_models_are_conditions(client: Client, conn: Connection) -> None:
    client.add(ship.job(Line(sku="a"), priority=3), conn=conn)
    client.add(pack, [Line(sku="a"), Line(sku="b")], conn=conn)

    assert_enqueued(conn, ship, Line(sku="a"))
    assert_enqueued(conn, ship.job(Line(sku="a"), priority=3), count=1)
    assert_enqueued(conn, pack.job([Line(sku="a"), Line(sku="b")]))
    assert_enqueued(conn, "orders/pack", [{"sku": "a"}, Line(sku="b")], queue_name="packing")
    assert [job.task for job in enqueued(conn, pack)] == ["orders/pack"]
    refute_enqueued(conn, ship, Line(sku="b"))
    refute_enqueued(conn, ship.job(Line(sku="a"), priority=4))
    refute_enqueued(conn, ship.job(Line(sku="a")), queue_name="packing")


@pytest.mark.parametrize("task", [ship, "orders/ship", ship.job(Line(sku="a"))], ids=["task", "text", "spec"])
def test_no_refutation_passes_although_the_job_waits(client: Client, conn: Connection, task: Any) -> None:
    client.add("orders/ship", Line(sku="a"), conn=conn)

    with pytest.raises(AssertionError, match="expected no waiting job"):
        refute_enqueued(conn, task)
    with pytest.raises(AssertionError, match="expected no waiting job"):
        refute_enqueued(conn, task, Line(sku="a"))


def test_models_inside_a_payload_are_compared_as_they_are_stored(client: Client, conn: Connection) -> None:
    client.add("mail", {"orders": [Order(number=7), Order(number=8, note="fast")]}, conn=conn)

    assert_enqueued(conn, "mail", {"orders": [Order(number=7), {"number": 8}]})
    refute_enqueued(conn, "mail", {"orders": [Order(number=7), Order(number=8)]})


def test_what_is_no_task_is_rejected(conn: Connection) -> None:
    for check in (assert_enqueued, refute_enqueued):
        with pytest.raises(InvalidInputError, match="is not a task; decorate it with @task"):
            check(conn, lambda payload: None)
        with pytest.raises(InvalidInputError, match="a task is an identifier, a function or a JobSpec, not int"):
            check(conn, 42)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="an assertion has no condition 'que'"):
            check(conn, "mail", que="till")  # type: ignore[call-arg]
