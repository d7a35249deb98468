"""A service as a team writes it from the manual: orders are charged by a worker on the loop of the application."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gw_core import AsyncClient, GiveUp, Job, JobContext, Plugin, Runner, TaskRegistry, WorkerSettings, cron
from gw_core.errors import JobFailedError, ResultTimeoutError, ResultUnavailableError
from gw_core.types import RunTask

DATABASE_URL = os.environ["DATABASE_URL"]
engine = create_async_engine(make_url(DATABASE_URL).set(drivername="postgresql+asyncpg"))
new_session = async_sessionmaker(engine, expire_on_commit=False)
queue = AsyncClient(pool=engine)
tasks = TaskRegistry()
log = logging.getLogger("shop")


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "service_orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    status: Mapped[str] = mapped_column(default="new")


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Line(Model):
    sku_code: str
    unit_price: Decimal


class Charge(Model):
    order_id: int
    lines: list[Line]


class Receipt(Model):
    order_id: int
    total: Decimal


@tasks.task
def mail(payload: dict[str, str], context: JobContext) -> None:
    context.logger.info("mail to %s", payload["to"])


@tasks.task(result=True, max_attempts=3, queue_name="billing", retry={ConnectionError: 0, PermissionError: GiveUp})
async def charge(payload: Charge, context: JobContext) -> Receipt:
    log.info("charging")
    async with new_session() as db, db.begin():
        order = await db.get_one(Order, payload.order_id)
        if order.item == "stolen":
            raise PermissionError("stolen card")
        if order.item == "slow" and context.job.attempts == 1:
            raise ConnectionError("no answer")
        order.status = "charged"
        await queue.add(mail, {"to": f"{order.id}@example.com"}, conn=db)
    return Receipt(order_id=payload.order_id, total=sum((each.unit_price for each in payload.lines), Decimal(0)))


@tasks.task(result=True)
async def resize(photo: int) -> int:
    return photo * 10


@tasks.task(result=True)
def publish(payload: dict[str, str], context: JobContext) -> list[int]:
    return [int(each) for each in context.results()]


@cron("0 4 * * *", tz="Europe/Paris")
@tasks.task
async def clean_up() -> None: ...


class Recorder(Plugin):
    """Opens what tasks need on their loop, and sees every run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_start(self) -> None:
        self.seen.append("start")

    async def on_stop(self) -> None:
        self.seen.append("stop")

    async def around_run(self, job: Job, context: JobContext, run: RunTask) -> object:
        self.seen.append(job.task)
        return run()


recorder = Recorder()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    await queue.migrate()
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with Runner(DATABASE_URL, tasks=tasks, plugins=[recorder], settings=WorkerSettings(concurrency=20)):
        yield
    await queue.close()
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


async def session() -> AsyncIterator[AsyncSession]:
    async with new_session() as each, each.begin():
        yield each


Database = Annotated[AsyncSession, Depends(session, scope="function")]


class JobStatus(BaseModel):
    id: int
    task: str
    attempts: int
    run_at: datetime
    last_error: str | None


@app.post("/orders/{item}", status_code=201)
async def create(item: str, lines: list[Line], db: Database) -> dict[str, int]:
    db.add(order := Order(item=item))
    await db.flush()
    job = await queue.add(charge, Charge(order_id=order.id, lines=lines), conn=db, job_key=f"charge:{order.id}")
    return {"id": order.id, "job": job.id}


@app.get("/receipts/{job}")
async def receipt(job: int) -> Receipt:
    try:
        return await queue.result(job, charge, timeout=60)
    except ResultTimeoutError:
        raise HTTPException(504) from None
    except JobFailedError as error:
        raise HTTPException(422, error.error) from None
    except ResultUnavailableError as error:
        raise HTTPException(404, error.reason) from None


@app.get("/failed", response_model=list[JobStatus])
async def failed() -> list[Job]:
    page = await queue.jobs.list("state:failed task:charge", limit=10)
    return [each.job for each in page.jobs]


@app.post("/jobs/{job}/retry")
async def retry(job: int) -> list[int]:
    return list((await queue.jobs.retry([job])).ids)


@app.get("/jobs/{job}/attempts")
async def attempts(job: int) -> list[str]:
    return [each.state.value for each in await queue.history.attempts(job)]


@app.post("/albums")
async def album() -> list[int]:
    last = await queue.add(publish, {"album": "summer"}, after=[await queue.add(resize, n) for n in range(3)])
    return await queue.result(last.id, publish, timeout=60)


@app.post("/reminders")
async def remind() -> int:
    return (await queue.add(mail, {"to": "ann@example.com"}, run_at=timedelta(hours=1))).id


@app.delete("/reminders/{job}")
async def forget(job: int, db: Database) -> int:
    return len((await queue.jobs.complete([job], conn=db)).ids)


@app.get("/scheduled")
async def scheduled() -> int:
    return (await queue.counts(exact=True)).states["scheduled"].value
