"""FastAPI with a worker inside: requests and async tasks share one event loop and one engine.

Run it with: uvicorn app:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gw_core import AsyncClient, Job, Runner, TaskRegistry, WorkerSettings

DATABASE_URL = os.environ["DATABASE_URL"]
engine = create_async_engine(make_url(DATABASE_URL).set(drivername="postgresql+asyncpg"))
new_session = async_sessionmaker(engine, expire_on_commit=False)
queue = AsyncClient(pool=engine)
tasks = TaskRegistry()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipt: Mapped[str | None]


@tasks.task
async def send_receipt(payload: dict[str, int]) -> None:
    async with new_session() as db, db.begin():
        order = await db.get_one(Order, payload["order"])
        order.receipt = f"sent for {order.item}"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with Runner(DATABASE_URL, tasks=tasks, settings=WorkerSettings(concurrency=20)):
        yield
    await queue.close()
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


async def session() -> AsyncIterator[AsyncSession]:
    async with new_session() as each, each.begin():
        yield each


Database = Annotated[AsyncSession, Depends(session, scope="function")]


@app.post("/orders/{item}", status_code=201)
async def create_order(item: str, db: Database) -> dict[str, int]:
    order = Order(item=item)
    db.add(order)
    await db.flush()
    job = await queue.add(send_receipt, {"order": order.id}, conn=db)
    if item == "sold-out":
        raise HTTPException(409, "sold out")  # the transaction rolls back, and the job with it
    return {"id": order.id, "job": job.id}


@app.get("/orders/{number}")
async def read_order(number: int, db: Database) -> dict[str, str | None]:
    order = await db.get_one(Order, number)
    return {"item": order.item, "receipt": order.receipt}


class JobStatus(BaseModel):
    """What the API shows of a job."""

    id: int
    task: str
    attempts: int
    run_at: datetime
    last_error: str | None


@app.get("/jobs/{number}", response_model=JobStatus)
async def read_job(number: int, db: Database) -> Job:
    job = await queue.jobs.get(number, conn=db)
    if job is None:
        raise HTTPException(404, "the job has ended, or there was none")
    return job
