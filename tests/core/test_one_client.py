"""`Client` and `AsyncClient` have the same members, with the same parameters, defaults and results."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any, Final
from unittest.mock import create_autospec

import psycopg
import pytest

from gw_core import AsyncClient, AsyncShardedClient, Client, JobSpec, ShardedClient
from gw_core.errors import InvalidInputError

NOWHERE: Final = "postgres://localhost/none"

READ_ONLY: Final = {
    *("jobs.show", "jobs.list", "queues.list", "tasks.list", "tasks.statistics", "tasks.statistics_over_time"),
    *("workers.list", "history.list", "history.count", "history.status", "counts", "result", "check_schema"),
    *("doctor.findings", "doctor.health_check", "doctor.lock_waits", "cleanup.count", "grants.list"),
    *("grants.statements", "grants.revoke_statements", "migration_plan", "migration_script"),
}
"""Those that change nothing."""
OWN_TRANSACTIONS: Final = {
    "migrate": "each step is a transaction, so that it can be repeated",
    "cleanup.delete": "each batch is a transaction, so that workers never wait for long",
    "cleanup.delete_in_batches": "as cleanup.delete",
    "workers.sweep": "it recovers the jobs of each worker alone, and holds a lock of its session",
    "history.expire": "it drops partitions, each in a transaction with a short lock timeout",
    "history.record_others": "it makes a trigger with a short lock timeout",
    "grants.grant": "each policy locks its table against everyone, so each has a transaction",
    "grants.revoke": "as grants.grant",
    "jobs.cancel": "the worker that runs the job has to see the request",
}
"""Those that write in transactions of their own, and why."""


def public(kind: object) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def parts(client: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a client by name."""
    for name in public(type(client)):
        value = getattr(client, name)
        if type(value).__module__.startswith("gw_core.clients."):
            yield name, value


def methods(client: Any) -> dict[str, Any]:
    """Return every public method of a client and of its parts."""
    owners = [("", client), *((f"{name}.", part) for name, part in parts(client))]
    return {
        f"{prefix}{name}": getattr(owner, name)
        for prefix, owner in owners
        for name in public(owner)
        if inspect.isroutine(getattr(owner, name))
    }


def shape(function: Any) -> list[tuple[str, Any, Any, str]]:
    """Return names, kinds, defaults and annotations of the parameters, and the annotation of the result."""
    signature = inspect.signature(function)
    found = [(each.name, each.kind, each.default, str(each.annotation)) for each in signature.parameters.values()]
    returned = str(signature.return_annotation).replace("Async", "")
    return [*found, ("return", None, None, returned)]


def same(first: Any, second: Any) -> list[str]:
    """Return what differs between the methods of two objects."""
    assert set(first) == set(second)
    return [name for name in first if shape(first[name]) != shape(second[name])]


def test_a_double_of_a_client_is_awaited_where_the_client_is() -> None:
    client, double = AsyncClient(NOWHERE), create_autospec(AsyncClient, instance=True)
    own = [name for name in methods(client) if "." not in name]

    awaited = [name for name in own if inspect.iscoroutinefunction(getattr(client, name))]

    assert {"add", "try_add", "add_many", "counts", "migrate", "result"} <= set(awaited)
    assert [name for name in own if inspect.iscoroutinefunction(getattr(double, name))] == awaited
    assert inspect.signature(AsyncClient.add) == inspect.signature(Client.add)


def test_both_clients_have_the_same_members() -> None:
    on_threads, on_loop = Client(NOWHERE), AsyncClient(NOWHERE)

    assert public(on_threads) == public(on_loop)
    assert len(list(parts(on_threads))) == 12
    assert [(name, type(part)) for name, part in parts(on_threads)] == [
        (name, type(part)) for name, part in parts(on_loop)
    ]
    assert same(methods(on_threads), methods(on_loop)) == []


def test_both_clients_are_made_alike() -> None:
    def of(kind: Any) -> list[tuple[str, Any, Any]]:
        return [each[:3] for each in shape(kind.__init__)]

    assert of(Client) == of(AsyncClient)
    assert public(ShardedClient) == public(AsyncShardedClient)
    for name in ("add", "add_many", "close", "shard_for"):
        assert shape(getattr(ShardedClient, name)) == shape(getattr(AsyncShardedClient, name))


def test_every_method_that_writes_joins_the_caller_s_transaction() -> None:
    without = {
        name for name, method in methods(Client(NOWHERE)).items() if "conn" not in inspect.signature(method).parameters
    }

    assert without - {"close", "sharded", "jobs.in_batches"} == READ_ONLY | set(OWN_TRANSACTIONS)


def test_help_shows_what_a_method_returns() -> None:
    method = Client(NOWHERE).groups.cancel

    assert str(inspect.signature(method)) == (
        "(*ids: 'int', by: 'str | None' = None, conn: 'object | None' = None) -> 'tuple[int, ...]'"
    )
    assert (method.__doc__ or "").startswith("Drop these waiting jobs")


def test_methods_of_an_async_client_run_beside_its_loop(database_url: str) -> None:
    async def work() -> list[Any]:
        async with AsyncClient(database_url) as client:
            await client.add_many([JobSpec(task="mail", queue_name="q") for _ in range(5)])
            batches = [each.ids async for each in client.jobs.in_batches(2).complete("task:mail")]
            return [
                [len(each) for each in batches],
                (await client.jobs.list()).jobs,
                [each.name for each in await client.queues.list()],
                [each.name for each in await client.tasks.list()],
                [each async for each in client.cleanup.delete_in_batches("unused-queues")],
                [each.name for each in await client.queues.list()],
                (await client.migration_plan()).steps,
                (await client.counts()).total.value,
            ]

    assert asyncio.run(work()) == [[2, 2, 1], (), ["q"], ["mail"], [1], [], (), 0]


@pytest.mark.parametrize("commits", [True, False])
def test_what_a_part_changes_belongs_to_the_caller_s_transaction(database_url: str, commits: bool) -> None:
    def state(client: Client) -> list[Any]:
        return [
            [str(each.target) for each in client.pauses.list()],
            [each.task for each in client.limits.list()],
            client.jobs.count("state:failed").jobs,
        ]

    with Client(database_url) as client:
        job = client.add("mail")
        before = state(client)
        with psycopg.connect(database_url) as connection:
            client.pauses.pause("task:slow", conn=connection)
            client.limits.set("mail", running=3, conn=connection)
            client.jobs.fail("task:mail", conn=connection)
            assert client.jobs.count("state:failed", conn=connection).jobs == 1
            assert state(client) == before
            if not commits:
                connection.rollback()

        assert state(client) == ([["task:slow"], ["mail"], 1] if commits else before)
        assert client.jobs.get(job.id) is not None


def test_a_limit_by_field_cannot_be_set_in_the_caller_s_transaction(database_url: str) -> None:
    with (
        Client(database_url) as client,
        psycopg.connect(database_url) as connection,
        pytest.raises(InvalidInputError, match="leave conn out"),
    ):
        client.limits.set("mail", running=3, field="tenant", conn=connection)
