"""Tests that a team writes for its own tasks."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from gw_core import JobContext, TaskRegistry, task
from gw_core.testing import Queue, assert_enqueued, drain, enqueued, inline, perform, refute_enqueued


class Order(BaseModel):
    number: int


tasks = TaskRegistry()


@task("orders/ship", result=True)
def ship(payload: Order, context: JobContext) -> str:
    context.add(ship, payload)
    return "shipped"


tasks.register("orders/ship", ship)


@task("orders/prices")
async def prices(payload: dict[str, float], *, context: JobContext) -> list[float]:
    return list(payload.values())


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(create_engine("postgresql+psycopg:///test")) as made:
        yield made


def test_an_order_is_shipped(session: Session, gw: Queue) -> None:
    assert_enqueued(session, ship, Order(number=1), count=1)
    assert_enqueued(session, ship.job(Order(number=1)))
    assert_enqueued(session, "orders/ship", {"number": 1}, within=3)
    refute_enqueued(session, ship.job(Order(number=2), priority=1))
    gw.assert_enqueued(ship, Order(number=1))
    assert drain(session, tasks=tasks).completed[0].task == "orders/ship"
    assert gw.drain().failed == []
    assert [job.payload["number"] for job in enqueued(session, ship)] == [1]
    shipped: str = perform(ship, Order(number=1), attempt=2, conn=session)
    assert perform(prices, {"book": 1})[0] == 1.0
    assert shipped == perform("orders/ship", {"number": 1}, tasks=tasks)
    with inline(tasks) as attempts:
        gw.client.add(ship.job(Order(number=1)))
    assert attempts[0].value == "shipped"


def test_mistakes(session: Session, gw: Queue) -> None:
    assert_enqueued(session, 7)  # wrong
    assert_enqueued(session, ship, Order(number=1), counts=1)  # wrong
    assert_enqueued(session, ship.job({"number": 1}))  # wrong
    refute_enqueued(session, task=ship, priorty=1)  # wrong
    drain(session)  # wrong: no tasks
    perform(ship, Order(number=1), attempts=2)  # wrong
    gw.client.add(ship, {"number": 1})  # wrong
    perform(ship, {"number": 1})  # wrong
    perform(ship)  # wrong
    perform(prices, {"book": "one"})  # wrong
    number: int = perform(ship, Order(number=1))  # wrong
    gw.drained(number)  # wrong
