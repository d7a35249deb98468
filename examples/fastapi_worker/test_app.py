"""Tests of the application in one transaction: its requests, its jobs and its async tasks, on the loop of the test.

Run them with: pytest
"""

from collections.abc import AsyncIterator

import pytest
from app import Base, Order, app, engine, new_session, queue, tasks
from httpx import ASGITransport, AsyncClient
from sqlalchemy.ext.asyncio import AsyncSession

from gw_core.testing import AsyncQueue

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def session() -> AsyncIterator[AsyncSession]:
    """A session in a transaction that is rolled back; those of the application join it."""
    await queue.migrate()
    async with engine.connect() as connection, connection.begin() as transaction:
        await connection.run_sync(Base.metadata.create_all)
        new_session.configure(bind=connection, join_transaction_mode="create_savepoint")
        async with new_session() as each:
            yield each
        await transaction.rollback()
    await queue.close()
    await engine.dispose()


@pytest.fixture
async def browser() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as each:
        yield each


async def test_an_order_gets_its_receipt(session: AsyncSession, browser: AsyncClient) -> None:
    jobs = AsyncQueue(session, tasks=tasks)
    number = (await browser.post("/orders/book")).json()["id"]
    await jobs.assert_enqueued("send_receipt", {"order": number}, count=1)

    result = await jobs.drain()

    assert [job.task for job in result.completed] == ["send_receipt"]
    assert (await browser.get(f"/orders/{number}")).json() == {"item": "book", "receipt": "sent for book"}


async def test_an_order_that_fails_leaves_no_job(session: AsyncSession, browser: AsyncClient) -> None:
    assert (await browser.post("/orders/sold-out")).status_code == 409
    await AsyncQueue(session).refute_enqueued("send_receipt")


async def test_a_job_is_shown_until_it_has_ended(session: AsyncSession, browser: AsyncClient) -> None:
    number = (await browser.post("/orders/book")).json()["job"]
    waiting = (await browser.get(f"/jobs/{number}")).json()

    await AsyncQueue(session, tasks=tasks).drain()

    assert waiting.pop("run_at").endswith("Z")
    assert waiting == {"id": number, "task": "send_receipt", "attempts": 0, "last_error": None}
    assert (await browser.get(f"/jobs/{number}")).status_code == 404


async def test_a_receipt_names_the_item(session: AsyncSession) -> None:
    session.add(order := Order(item="pen"))
    await session.commit()

    await AsyncQueue(session, tasks=tasks).perform("send_receipt", {"order": order.id})

    await session.refresh(order)
    assert order.receipt == "sent for pen"
