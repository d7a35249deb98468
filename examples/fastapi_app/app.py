"""FastAPI and SQLAlchemy: a request writes an order and adds its job in one transaction.

Run it with: uvicorn app:app, and beside it: gw run --tasks tasks
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gw_core import AsyncClient, Client

DATABASE_URL = os.environ["DATABASE_URL"]
engine = create_async_engine(make_url(DATABASE_URL).set(drivername="postgresql+asyncpg"))
new_session = async_sessionmaker(engine, expire_on_commit=False)
queue = AsyncClient(DATABASE_URL)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipt: Mapped[str | None]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    with Client(DATABASE_URL) as client:
        client.migrate()
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await queue.close()
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


async def session() -> AsyncIterator[AsyncSession]:
    async with new_session() as each, each.begin():
        yield each


@app.post("/orders/{item}", status_code=201)
async def create_order(item: str, db: Annotated[AsyncSession, Depends(session, scope="function")]) -> dict[str, int]:
    order = Order(item=item)
    db.add(order)
    await db.flush()
    await queue.add("send_receipt", {"order": order.id}, conn=db)
    if item == "sold-out":
        raise HTTPException(409, "sold out")  # the transaction rolls back, and the job with it
    return {"id": order.id}
