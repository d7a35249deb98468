"""Builders for tests of the scheduler: a clock to set, a connection to cut, the jobs it added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gw_core import Event, Events
from gw_core.crontab import parse_crontab
from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import Database
from gw_core.maintenance.cron_scheduler import ItemSource, Scheduler
from gw_core.postgres.connection.connections import SharedConnection

START = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-21T{text}").replace(tzinfo=UTC)


class ManualClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += timedelta(**duration)


class CuttableConnection:
    """A connection that can be cut and restored."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.is_cut = False
        self.loans = 0
        self._one = SharedConnection(database, role="cron")

    @contextmanager
    def connection(self) -> Iterator[Any]:
        self.loans += 1
        if self.is_cut:
            raise DatabaseUnavailableError("the line is cut")
        with self._one.connection() as connection:
            yield connection

    def close(self) -> None:
        self._one.close()


@dataclass(frozen=True)
class AddedJob:
    """A job as the scheduler added it."""

    task: str
    due: str
    backfilled: bool
    payload: dict[str, Any]


class CronFixture:
    """One database and clock, and the schedulers that share them."""

    def __init__(self, database_url: str, clock: Callable[[], datetime] | None = None) -> None:
        self.url = database_url
        self.database = Database(database_url)
        self.clock = clock or ManualClock()
        self._lines: list[CuttableConnection] = []

    def line(self) -> CuttableConnection:
        self._lines.append(CuttableConnection(self.database))
        return self._lines[-1]

    def scheduler(
        self,
        items: ItemSource | str,
        *,
        line: CuttableConnection | None = None,
        recorded: list[Event] | None = None,
        **options: Any,
    ) -> Scheduler:
        events = Events()
        if recorded is not None:
            events.on("*", recorded.append)
        source = parse_crontab(items) if isinstance(items, str) else items
        return Scheduler(line or self.line(), source, events=events, clock=self.clock, **options)

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database.connect("test") as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def jobs(self) -> list[AddedJob]:
        """All jobs, in the order of their minutes."""
        rows = self.execute(
            """select tasks.identifier, jobs.payload::text, jobs.run_at
                 from graphile_worker._private_jobs as jobs
                 join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id
                order by jobs.run_at, jobs.id"""
        )
        return [_added(task, json.loads(payload), run_at) for task, payload, run_at in rows]

    def due(self) -> list[tuple[str, str]]:
        """The task and minute of every job."""
        return [(job.task, job.due) for job in self.jobs()]

    def know(self, identifier: str, *, since: datetime, last: datetime | None = None) -> None:
        self.execute("insert into graphile_worker._private_known_crontabs values (%s, %s, %s)", identifier, since, last)

    def known(self) -> dict[str, tuple[datetime, datetime | None]]:
        rows = self.execute("select * from graphile_worker._private_known_crontabs")
        return {row[0]: (row[1].astimezone(UTC), row[2] and row[2].astimezone(UTC)) for row in rows}

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self.database.close()


def _added(task: str, payload: dict[str, Any], run_at: datetime) -> AddedJob:
    cron = payload["_cron"]
    assert datetime.fromisoformat(cron["ts"]) == run_at
    return AddedJob(task, run_at.astimezone(UTC).strftime("%H:%M"), cron["backfilled"], payload)
