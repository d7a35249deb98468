"""A call with a timeout ends at it, also if the network swallows the answers; without one it may wait."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, TypeVar

import psycopg
import psycopg_pool
import pytest
from connections.test_async_client import SOURCES, Source, client_on
from support import profiles
from support.database_proxy import DatabaseProxy
from support.queue_fixture import in_time

from gw_core import AsyncClient, Client
from gw_core.errors import DatabaseUnavailableError, ResultTimeoutError
from gw_core.front_ends import Database

TIMEOUT = timedelta(seconds=0.5)
AT_MOST = 120.0
"""Seconds: a call ends a few seconds after its timeout; on a busy machine later, but not never."""

ARGUMENTS: Mapping[str, Any] = {"job_id": 1, "which": [1], "task": "work", "targets": "task:work", "running": 1}
"""What to pass to a parameter of that name."""

ENDED = (DatabaseUnavailableError, ResultTimeoutError)


@dataclass(frozen=True)
class Method:
    """A public method with a timeout: the name of its part, or "", and its own."""

    part: str
    name: str

    def call(self, client: Client | AsyncClient, timeout: timedelta = TIMEOUT) -> Any:
        method = getattr(getattr(client, self.part) if self.part else client, self.name)
        parameters = inspect.signature(method).parameters.values()
        # A task that may be left out, as of `result`, is a function for its type.
        known = [each for each in parameters if each.name in ARGUMENTS and (each.name, each.default) != ("task", None)]
        positional = [ARGUMENTS[each.name] for each in known if each.kind is not each.KEYWORD_ONLY]
        named = {each.name: ARGUMENTS[each.name] for each in known if each.kind is each.KEYWORD_ONLY}
        return method(*positional, **named, timeout=timeout)

    def __str__(self) -> str:
        return f"{self.part}.{self.name}".strip(".")


def methods_with_timeout(client: Client | AsyncClient) -> list[Method]:
    parts = [name for name, _ in inspect.getmembers(type(client), lambda value: isinstance(value, cached_property))]
    owners = {"": client, **{part: getattr(client, part) for part in parts if not part.startswith("_")}}
    return [Method(part, name) for part, owner in owners.items() for name in _with_timeout(type(owner))]


def _with_timeout(kind: type[Any]) -> Iterator[str]:
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and "timeout" in inspect.signature(function).parameters:
            yield name


REPRESENTATIVES = {"result", "jobs.cancel"}
"""One that asks again and again, and one that waits for workers."""

Kind = TypeVar("Kind")


def with_methods(kinds: Iterable[Kind], methods: list[Method]) -> Iterator[tuple[Kind, Method]]:
    """Yield the first kind with all methods and the others with representatives; nightly all with all."""
    for number, kind in enumerate(kinds):
        for method in methods:
            if number == 0 or str(method) in REPRESENTATIVES or profiles.IS_NIGHTLY:
                yield kind, method


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an answer be little later than its timeout."""
    for module in ("read.history", "read.job_queries", "read.read_only", "road.cancel_requests", "road.pauses"):
        monkeypatch.setattr(f"gw_core.postgres.{module}.ANSWER_GRACE", timedelta(seconds=0.2))


@pytest.fixture
def proxy(database_url: str) -> Iterator[DatabaseProxy]:
    proxy = DatabaseProxy(database_url)
    with Client(database_url) as client:
        client.add("work")
    yield proxy
    proxy.close()


def test_methods_with_a_timeout_are_found(database_url: str) -> None:
    with Client(database_url) as client:
        assert {"result", "jobs.cancel", "pauses.pause"} <= set(map(str, methods_with_timeout(client)))
        assert methods_with_timeout(AsyncClient(database_url)) == methods_with_timeout(client)


def test_a_timeout_may_be_longer_than_any_wait(database_url: str) -> None:
    with Client(database_url) as client:
        client.add("work")
        for method in methods_with_timeout(client):
            if str(method) != "result":  # which waits for the end of the job
                in_time(partial(method.call, client, timedelta(days=300_000_000)))


# -- threads ----------------------------------------------------------------------------------------------------------


def a_client(url: str, stack: ExitStack) -> Client:
    return stack.enter_context(Client(url))


def a_command(url: str, stack: ExitStack) -> Client:
    return stack.enter_context(Client(url, max_pool_size=1))


def a_client_with_a_pool(url: str, stack: ExitStack) -> Client:
    pool = stack.enter_context(psycopg_pool.ConnectionPool(url, min_size=0, max_size=2, timeout=5, open=True))
    return stack.enter_context(Client(pool=pool))


OPENED = (a_client, a_command, a_client_with_a_pool)


@pytest.mark.parametrize("has_connected", [True, False], ids=["connected", "not yet connected"])
def test_each_method_of_a_client_ends_at_its_timeout(
    database_url: str, proxy: DatabaseProxy, has_connected: bool
) -> None:
    with Client(database_url) as client:
        methods = methods_with_timeout(client)
    with ExitStack() as stack:
        clients = {(kind.__name__, method): kind(proxy.url, stack) for kind, method in with_methods(OPENED, methods)}
        threads = stack.enter_context(ThreadPoolExecutor(len(clients)))
        if has_connected:
            for client in clients.values():
                client.jobs.get(1)
        proxy.swallow()

        calls = {(kind, str(each)): threads.submit(_ends, each, client) for (kind, each), client in clients.items()}
        wait(calls.values(), AT_MOST)
        late = [name for name, call in calls.items() if not call.done()]
        proxy.cut()

    assert late == []
    assert [call.exception() for call in calls.values() if call.exception()] == []


def _ends(method: Method, client: Client) -> None:
    with pytest.raises(ENDED):
        method.call(client)


# -- event loops ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_connected", [True, False], ids=["connected", "not yet connected"])
def test_each_method_of_an_async_client_ends_at_its_timeout(proxy: DatabaseProxy, has_connected: bool) -> None:
    async def call(name: str, source: Source, method: Method) -> None:
        async with source(proxy.url) as opened, client_on(opened, proxy.url) as client:
            if has_connected:
                await client.jobs.get(1)
            ready.append(method)
            await is_swallowing.wait()
            with pytest.raises(ENDED):
                await method.call(client)
            late.remove((name, str(method)))
            await is_cut.wait()

    async def work() -> None:
        chosen = [*with_methods(SOURCES, methods_with_timeout(AsyncClient(proxy.url)))]
        late.extend((name, str(method)) for name, method in chosen)
        # Some calls need a thread: in the few of the loop they would wait for each other.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(late)))
        calls = [asyncio.ensure_future(call(name, SOURCES[name], method)) for name, method in chosen]
        await _until(lambda: len(ready) == len(calls))
        proxy.swallow()
        is_swallowing.set()
        with suppress(TimeoutError):
            await _until(lambda: not late)
        ended.append(list(late))
        proxy.cut()
        is_cut.set()
        await asyncio.gather(*calls)

    ready: list[Method] = []
    late: list[tuple[str, str]] = []
    ended: list[list[tuple[str, str]]] = []
    is_swallowing, is_cut = asyncio.Event(), asyncio.Event()
    asyncio.run(work())

    assert ended == [[]]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(AT_MOST):
        while not condition():
            await asyncio.sleep(0.01)


# -- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connections", [1, 10], ids=["a command", "a program"])
def test_a_result_without_an_answer_is_late_and_the_client_works_again(proxy: DatabaseProxy, connections: int) -> None:
    with Client(proxy.url, max_pool_size=connections) as client:
        client.jobs.get(1)
        proxy.swallow()
        with pytest.raises(ResultTimeoutError, match=r"did not answer within 0\.5 s whether job 1 has ended"):
            in_time(lambda: client.result(1, timeout=TIMEOUT))
        proxy.heal()
        with pytest.raises(ResultTimeoutError, match=r"job 1 did not end within 0\.5 s"):
            client.result(1, timeout=TIMEOUT)


def test_a_call_on_the_caller_s_connection_does_not_close_it(database_url: str) -> None:
    with Client(database_url) as client, Database(database_url).connect() as callers:
        with psycopg.connect(database_url) as other, ThreadPoolExecutor(1) as thread:
            client.pauses.pause("task:first", conn=other)  # which has not committed, so the next pause waits
            pausing = thread.submit(client.pauses.pause, "task:work", conn=callers)
            with suppress(TimeoutError):
                pausing.result(1)
            other.commit()
            paused = pausing.result(60)

        assert paused.changed == 1
        assert not callers.closed
