"""Client.result and AsyncClient.result: a value, or an error with the fate of the job."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import pydantic
import pytest
from support.queue_fixture import DEADLINE, QueueFixture
from support.waiting import wait_until

from gw_core import AsyncClient, Client, GiveUp, TaskRegistry, run_once, task
from gw_core.errors import JobFailedError, PayloadError, ResultError, ResultTimeoutError, ResultUnavailableError
from gw_core.events import JobCompleted, JobFailed

DAY = timedelta(days=1)

Ask = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, site: QueueFixture) -> Ask:
    """Ask for a result, in each of the two ways."""

    async def asynchronously(job_id: int, **options: Any) -> Any:
        async with AsyncClient(site.url) as client:
            return await client.result(job_id, **options)

    if request.param == "sync":
        return site.client.result
    return lambda job_id, **options: asyncio.run(asynchronously(job_id, **options))


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers ask again after an hour only, so that they get a result in time by a notification alone."""
    monkeypatch.setattr("gw_core.postgres.read.job_results.FIRST_PAUSE", 3600.0)
    monkeypatch.setattr("gw_core.postgres.read.job_results.MAX_PAUSE", 3600.0)


def listening(site: QueueFixture) -> list[int]:
    """Return the sessions of callers that wait for results."""
    return [pid for (pid,) in site.rows(LISTENING)]


LISTENING = """
select pid from pg_stat_activity
 where datname = current_database() and application_name = 'gw:results' and state = 'idle' and query ilike 'listen%'
"""


def until_listening(site: QueueFixture) -> None:
    wait_until(lambda: listening(site), what="a caller to listen")


def tasks(before: Callable[[], object] = lambda: None, **options: Any) -> TaskRegistry:
    """Return a task that fails or answers as its payload asks, after `before`."""
    registry = TaskRegistry()

    @registry.task("work", **{"keep": DAY, "result": True, **options})
    def work(payload: Any) -> Any:
        before()
        if "error" in payload:
            raise GiveUp(payload["error"])
        return payload.get("answer")

    return registry


def ended(site: QueueFixture, payload: dict[str, Any], **options: Any) -> int:
    """Run one job to its end."""
    job_id = site.add(payload=payload)
    with site.running(tasks(**options)) as running:
        running.recorded.wait_for(JobFailed if "error" in payload else JobCompleted)
    return job_id


@pytest.mark.parametrize("answer", [None, 42, {"a": [1, 2]}], ids=repr)
def test_the_result_of_a_job_that_has_completed(site: QueueFixture, ask: Ask, answer: Any) -> None:
    assert ask(ended(site, {"answer": answer}), timeout=0) == answer


def test_a_waiting_caller_gets_the_result_when_the_job_ends(site: QueueFixture, ask: Ask) -> None:
    with site.running(tasks(partial(until_listening, site))):
        job_id = site.add(payload={"answer": "done"})
        assert ask(job_id, timeout=DEADLINE) == "done"


@pytest.mark.usefixtures("no_polling")
def test_a_notification_ends_the_wait(site: QueueFixture, ask: Ask) -> None:
    with site.running(tasks(partial(until_listening, site))):
        assert ask(site.add(payload={"answer": 1}), timeout=DEADLINE) == 1


def test_without_notifications_the_caller_asks(site: QueueFixture, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.postgres.read.job_results.CHANNEL", "gw:elsewhere")
    with site.running(tasks(partial(until_listening, site))):
        assert ask(site.add(payload={"answer": 2}), timeout=DEADLINE) == 2


def test_a_job_that_does_not_end_in_time(site: QueueFixture, ask: Ask) -> None:
    job_id = site.add()

    with pytest.raises(ResultTimeoutError, match=rf"job {job_id} did not end within 0\.2 s") as caught:
        ask(job_id, timeout=timedelta(milliseconds=200))

    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(ResultTimeoutError):
        ask(job_id, timeout=0)


def test_a_caller_waits_on_behind_a_locked_table(site: QueueFixture, ask: Ask) -> None:
    job_id = site.add(payload={"answer": 3})
    with psycopg.connect(site.url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("lock table graphile_worker._private_jobs in access exclusive mode")
        with pytest.raises(ResultTimeoutError, match="did not answer within 0 s whether job"):
            ask(job_id, timeout=0)
        found = pool.submit(site.client.result, job_id, timeout=3 * DEADLINE)
        until_listening(site)  # its first question has reached the lock timeout of reads
        other.rollback()
        with site.running(tasks()):
            assert found.result(DEADLINE) == 3


def test_a_caller_whose_connection_is_lost_asks_again(site: QueueFixture) -> None:
    job_id = site.add(payload={"answer": 4})

    async def ask() -> Any:
        async with AsyncClient(site.url) as client:
            return await client.result(job_id, timeout=3 * DEADLINE)

    with psycopg.connect(site.url) as other, ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, ask())
        until_listening(site)  # it has had an answer
        other.execute("lock table graphile_worker._private_jobs in access exclusive mode")
        wait_until(lambda: site.rows(ASKING), what="a question that waits for the lock")
        site.kill_connections("gw:async")
        other.rollback()
        with site.running(tasks()):
            assert found.result(DEADLINE) == 4


ASKING = """
select pid from pg_stat_activity
 where datname = current_database() and application_name = 'gw:async' and wait_event_type = 'Lock'
"""


def test_a_job_that_failed_permanently(site: QueueFixture, ask: Ask) -> None:
    job_id = ended(site, {"error": "no money"})

    with pytest.raises(JobFailedError, match=f"job {job_id} failed permanently: no money") as caught:
        ask(job_id)

    assert (caught.value.job_id, caught.value.attempts) == (job_id, 1)


@pytest.mark.usefixtures("no_polling")
def test_a_job_that_fails_while_a_caller_waits_wakes_it(site: QueueFixture, ask: Ask) -> None:
    job_id = site.add(payload={"error": "no money"})
    with site.running(tasks(partial(until_listening, site))), pytest.raises(JobFailedError):
        ask(job_id, timeout=DEADLINE)


def test_a_failed_job_that_was_removed_is_still_known_as_failed(site: QueueFixture, ask: Ask) -> None:
    job_id = ended(site, {"error": "no money"})
    site.run("delete from _private_jobs")

    with pytest.raises(JobFailedError, match="no money"):
        ask(job_id)


def test_the_end_of_a_job_that_another_program_ended_is_unknown(site: QueueFixture, ask: Ask) -> None:
    """After an attempt that history has, a worker of Node.js can complete the job, and SQL can delete it."""
    registry = TaskRegistry()

    @registry.task("work", keep=DAY, result=True)
    def work(payload: Any) -> None:
        raise RuntimeError("not yet")

    job_id = site.add()
    assert site.run_once(registry).failed == 1
    site.run("select complete_jobs(array[%s])", job_id)

    with pytest.raises(ResultUnavailableError, match=f"the end of job {job_id} is unknown") as caught:
        ask(job_id)
    assert caught.value.reason == "expired"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("unknown", "unknown"),
        ("expired", "expired"),
        ("rolled back", "expired"),
        ("not kept", "not kept"),
        ("big", "rejected"),
    ],
)
def test_a_result_that_is_not_there_says_why(site: QueueFixture, ask: Ask, case: str, reason: str) -> None:
    match case:
        case "unknown":
            job_id = 10**12
        case "expired":
            job_id = ended(site, {"answer": 1})
            site.run("update _private_gw_history set expires_at = now()")
        case "rolled back":
            with psycopg.connect(site.url) as connection, Client(site.url) as client:
                job_id = client.add("work", conn=connection).id
                connection.rollback()
        case "not kept":
            job_id = ended(site, {"answer": 1}, result=False)
        case _:
            job_id = ended(site, {"answer": "x" * 1_100_000})

    with pytest.raises(ResultUnavailableError) as caught:
        ask(job_id)

    assert isinstance(caught.value, ResultError)
    assert (caught.value.reason, caught.value.job_id) == (reason, job_id)


def test_many_waiting_threads_share_one_connection_that_listens(site: QueueFixture) -> None:
    found: list[Any] = []
    gate = threading.Event()
    registry = TaskRegistry()
    registry.task("work", result=True)(lambda payload: gate.wait(DEADLINE) and payload["n"])
    with Client(site.url) as client, site.running(registry, concurrency=20):
        ids = [site.add(payload={"n": n}) for n in range(20)]
        threads = [threading.Thread(target=lambda each=each: found.append(client.result(each))) for each in ids]
        for thread in threads:
            thread.start()
        wait_until(lambda: site.connections("gw:results") != [])
        assert len(site.connections("gw:results")) == 1
        gate.set()
        for thread in threads:
            thread.join(DEADLINE)
    assert sorted(found) == list(range(20))
    wait_until(lambda: site.connections("gw:results") == [])


def test_cancelled_callers_do_not_go_on_waiting(site: QueueFixture) -> None:
    async def cancel_all() -> None:
        async with AsyncClient(site.url) as client:
            job_id = (await client.add("work", run_at=DAY)).id
            for _ in range(5):
                waiting = [asyncio.create_task(client.result(job_id)) for _ in range(50)]
                await asyncio.wait(waiting, timeout=0.1)  # until some are given connections by others
                for each in waiting:
                    each.cancel()
                _, going_on = await asyncio.wait(waiting, timeout=DEADLINE)
                assert not going_on

    asyncio.run(cancel_all())


@pytest.mark.usefixtures("no_polling")
def test_a_program_with_thousands_of_descriptors_is_notified(site: QueueFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    job_id = site.add(payload={"answer": 6})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(site.client.result(job_id, timeout=DEADLINE)))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        thread.start()
        until_listening(site)
        with site.running(tasks()):
            thread.join(DEADLINE)
    assert found == [6]


@pytest.mark.usefixtures("no_polling")
def test_a_listening_connection_that_breaks_is_made_again(site: QueueFixture) -> None:
    job_id = site.add(payload={"answer": 5})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(site.client.result(job_id, timeout=2 * DEADLINE)))
    thread.start()
    until_listening(site)
    first = listening(site)
    site.kill_connections("gw:results")
    wait_until(lambda: set(listening(site)) - set(first), what="another session that listens")
    with site.running(tasks()):
        thread.join(DEADLINE)
    assert found == [5]


def test_notifications_of_strangers_are_ignored(site: QueueFixture, ask: Ask) -> None:
    job_id = site.add()
    with psycopg.connect(site.url, autocommit=True) as stranger:
        noise = threading.Timer(
            0.2, lambda: [stranger.execute("select pg_notify('gw:done', %s)", (each,)) for each in NOISE]
        )
        noise.start()
        with pytest.raises(ResultTimeoutError):
            ask(job_id, timeout=0.6)
        noise.join()


NOISE = ["", "x", "1,,2", "9" * 50, "{}", "-1", "é", "1" + "0" * 7000]


def test_a_pool_of_the_callers_is_asked(site: QueueFixture) -> None:
    psycopg_pool = pytest.importorskip("psycopg_pool")

    async def ask_in_pool() -> Any:
        async with psycopg_pool.AsyncConnectionPool(site.url, open=False) as pool:
            client = AsyncClient(pool=pool)
            job_id = (await client.add("work", {"answer": 9})).id
            return await client.result(job_id, timeout=DEADLINE)

    with site.running(tasks()):
        assert asyncio.run(ask_in_pool()) == 9


def test_asyncpg_is_asked(site: QueueFixture) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask_in_pool() -> Any:
        async with asyncpg.create_pool(site.url) as pool:
            client = AsyncClient(pool=pool)
            job_id = (await client.add("work", {"answer": [3]})).id
            return await client.result(job_id, timeout=DEADLINE)

    with site.running(tasks()):
        assert asyncio.run(ask_in_pool()) == [3]


class Receipt(pydantic.BaseModel):
    paid_at: datetime
    lines: list[Decimal]


RECEIPT = Receipt(paid_at=datetime(2026, 1, 2, tzinfo=UTC), lines=[Decimal("1.50")])


@task("pay", result=True)
def pay() -> Receipt:
    return RECEIPT


@task("pay_later", result=True)
async def pay_later() -> dict[str, Receipt]:
    return {"receipt": RECEIPT}


@task("pay", result=True)
def pay_in_parts() -> list[Receipt]:
    return []


def test_a_result_is_what_the_task_is_annotated_to_return(site: QueueFixture, ask: Ask) -> None:
    registry = TaskRegistry()
    for each in (pay, pay_later):
        registry.register(each.identifier, each)
    jobs = site.client.add(pay), site.client.add(pay_later)
    run_once(site.url, tasks=registry, migrate=False)

    assert ask(jobs[0].id, task=pay) == RECEIPT
    assert ask(jobs[1].id, task=pay_later) == {"receipt": RECEIPT}
    assert ask(jobs[0].id)["lines"] == ["1.50"]
    with pytest.raises(PayloadError, match="the result does not fit list"):
        ask(jobs[0].id, task=pay_in_parts)
