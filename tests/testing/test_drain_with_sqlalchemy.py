"""Tasks that use the session of the test itself."""

from __future__ import annotations

from typing import Any

import pytest

from gw_core import Client, TaskRegistry
from gw_core.testing import drain

sqlalchemy = pytest.importorskip("sqlalchemy")
orm = pytest.importorskip("sqlalchemy.orm")


def test_a_failed_flush_in_the_session_of_the_test_raises_the_error_of_the_task(
    client: Client, database_url: str
) -> None:
    base = orm.declarative_base()

    class Item(base):  # type: ignore[misc, valid-type]
        __tablename__ = "items"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)

    tasks = TaskRegistry()
    engine = sqlalchemy.create_engine(database_url.replace("postgres:", "postgresql+psycopg:", 1))
    with engine.connect() as connection, orm.Session(connection, join_transaction_mode="create_savepoint") as session:
        base.metadata.create_all(connection)
        session.execute(sqlalchemy.insert(Item).values(id=1))

        @tasks.task("store")
        def store(payload: Any) -> None:
            session.add(Item(id=1))
            session.flush()

        client.add("store", conn=session)
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            drain(session, tasks=tasks)
        session.rollback()
    engine.dispose()
