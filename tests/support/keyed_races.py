"""Races between an add under a key and another session that has not committed yet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from support.schema_fixture import Row, SchemaFixture, connected
from support.waiting import wait_until


@dataclass(frozen=True, slots=True)
class Race:
    """What another session is doing while we add a job under the key `k`."""

    name: str
    before: Callable[[SchemaFixture], object]
    concurrently: Callable[[SchemaFixture], object]

    def __str__(self) -> str:
        return self.name


def _add(schema: SchemaFixture) -> Row:
    return schema.add_job(job_key="k", payload={"from": "before"})


def _know_the_task(schema: SchemaFixture) -> None:
    """Or else the two sides would already meet over the task's row, and not over the key."""
    schema.run("insert into :S._private_tasks (identifier) values ('mail')")


def _add_and_claim(schema: SchemaFixture) -> None:
    schema.claim(_add(schema))


def _claim(schema: SchemaFixture) -> None:
    schema.claim(_holder(schema))


def _complete(schema: SchemaFixture) -> None:
    schema.run("delete from :S._private_jobs where key = 'k'")


def _fail(schema: SchemaFixture) -> None:
    schema.change(_holder(schema), locked_at=None, locked_by=None, last_error="broken")


def fail_permanently(schema: SchemaFixture) -> None:
    schema.change(_holder(schema), locked_at=None, locked_by=None, attempts="=max_attempts")


def _holder(schema: SchemaFixture) -> Row:
    return schema.run("select id from :S._private_jobs where key = 'k'")[0]


CLAIMED_CONCURRENTLY = Race("claimed concurrently", _add, _claim)
ADDED_AND_CLAIMED_CONCURRENTLY = Race("added and claimed concurrently", _know_the_task, _add_and_claim)
RACES = [
    CLAIMED_CONCURRENTLY,
    ADDED_AND_CLAIMED_CONCURRENTLY,
    Race("completed concurrently", _add_and_claim, _complete),
    Race("failed concurrently", _add_and_claim, _fail),
    Race("failed for good concurrently", _add_and_claim, fail_permanently),
    Race("added concurrently", _know_the_task, _add),
    Race("replaced concurrently", _add, _add),
    Race("removed concurrently", _add, lambda schema: schema.call("remove_job", job_key="k")),
    Race("retired concurrently", _add_and_claim, lambda schema: schema.call("remove_job", job_key="k")),
]


def add_against(race: Race, url: str, name: str = "graphile_worker", **arguments: Any) -> Row:
    """Add a job while the other side is in the middle of its part and commits only once the add waits for it."""
    with connected(url, name) as ours, connected(url, name) as theirs, ThreadPoolExecutor(1) as thread:
        race.before(theirs)
        with theirs.connection.transaction():
            race.concurrently(theirs)
            added = thread.submit(ours.add_job, "mail", job_key="k", **{"payload": {"from": "us"}, **arguments})
            wait_until(lambda: added.done() or _waits(theirs, ours), what="the add to wait for the other side")
        return added.result(timeout=60)


def _waits(theirs: SchemaFixture, ours: SchemaFixture) -> bool:
    waiting = theirs.run("select cardinality(pg_blocking_pids(%s)) > 0 as waits", ours.connection.info.backend_pid)
    return bool(waiting[0]["waits"])
