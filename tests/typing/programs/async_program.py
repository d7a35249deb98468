"""A service on an event loop: FastAPI's way, with SQLAlchemy and asyncpg."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from gw_core import AsyncClient, JobContext, TaskRegistry
from gw_core.errors import JobRejectedError, ResultTimeoutError

tasks = TaskRegistry()
engine: AsyncEngine = create_async_engine("postgresql+asyncpg:///shop")
queue = AsyncClient(pool=engine)


@tasks.task("orders/confirm", result=True)
async def confirm(payload: dict[str, int], context: JobContext) -> str:
    context.logger.info("confirming %s", payload["order"])
    return "confirmed"


@asynccontextmanager
async def lifespan() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("postgres:///shop", max_pool_size=4) as client:
        await client.check_schema()
        yield client


async def order(session: AsyncSession, number: int) -> int:
    job = await queue.add(confirm, {"order": number}, conn=session)
    await queue.add_many([confirm.job({"order": each}) for each in range(3)], conn=session)
    await queue.groups.add([confirm.job({"order": 1})], then=confirm.job({"order": 2}), conn=session)
    return job.id


async def status(connection: asyncpg.Connection, job_id: int) -> str:
    try:
        return await queue.result(job_id, confirm, timeout=1)
    except ResultTimeoutError:
        found = await queue.jobs.get(job_id, conn=connection)
        return "unknown" if found is None else found.task
    except JobRejectedError as error:
        return str(error)


async def mistakes(session: AsyncSession) -> None:
    print(queue.add(confirm, {"order": 1}).id)  # wrong: not awaited
    await queue.add(confirm, {"order": "one"}, conn=session)  # wrong
    await queue.add(confirm.job({"order": None}))  # wrong
    await queue.add_many(confirm)  # wrong
    await queue.jobs.retry([1], con=session)  # wrong
    answer: int = await queue.result(1, confirm)  # wrong
    for page in queue.jobs.in_batches().retry("state:failed"):  # wrong: an asynchronous iterator
        print(page, answer)
    async with queue.jobs:  # wrong
        pass
