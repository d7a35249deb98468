"""Steps: what a task has finished is not run again, and a stop between two steps is no failure."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, NEVER, QueueFixture
from support.shell import CliResult, Shell
from support.waiting import wait_until

from gw_core import JobContext, JobSpec, RetryAfter, TaskRegistry
from gw_core.errors import GraphileWorkerError, InvalidJobError
from gw_core.events import JobErrored, JobReturned, PoolStopping

NOW = RetryAfter(0)


class Calls:
    """The functions of steps: they count their calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> str:
        self.names.append(name)
        return f"{name} done"


@pytest.fixture
def calls() -> Calls:
    return Calls()


def steps(site: QueueFixture) -> list[tuple[str, Any, bool]]:
    rows = site.run("select name, value, finished from _private_gw_steps order by saved_at, name")
    return [(row["name"], row["value"], row["finished"]) for row in rows]


def errors_of(site: QueueFixture, task: Callable[..., object], **options: Any) -> list[str]:
    """Run one job, and return the messages of its failures."""
    site.client.add("work", max_attempts=1)
    with site.running({"work": task}, **options) as running:
        return [str(each.error) for each in running.recorded.wait_for(JobErrored)]


# -- results -------------------------------------------------------------------------------------------------------


def test_a_step_runs_once_and_returns_what_it_kept(site: QueueFixture, calls: Calls) -> None:
    returned: list[str] = []

    def work(payload: object, context: JobContext) -> None:
        returned.append(context.step("charge", calls, "charge"))
        returned.append(context.step("mail", calls, "mail"))
        if context.job.attempts < 3:
            raise NOW

    site.client.add("work")
    assert site.run_once({"work": work}).completed == 1
    assert calls.names == ["charge", "mail"]
    assert returned == ["charge done", "mail done"] * 3


def test_a_step_that_fails_runs_again_and_the_one_before_it_does_not(site: QueueFixture, calls: Calls) -> None:
    def ship() -> None:
        calls("ship")
        if calls.names.count("ship") == 1:
            raise NOW

    def work(payload: object, context: JobContext) -> None:
        context.step("charge", calls, "charge")
        context.step("ship", ship)

    site.client.add("work")
    site.run_once({"work": work})
    assert calls.names == ["charge", "ship", "ship"]


@dataclass
class Receipt:
    number: int
    lines: tuple[str, ...]


def test_a_result_is_the_same_in_the_first_run_and_in_later_ones(site: QueueFixture) -> None:
    found: list[object] = []

    def charge() -> Receipt:
        return Receipt(7, ("a", "b"))

    def work(payload: object, context: JobContext) -> None:
        found.append((context.step("charge", charge), context.step("plain", lambda: ("x", 1))))
        if context.job.attempts == 1:
            raise NOW

    site.client.add("work")
    site.run_once({"work": work})
    assert found == [(Receipt(7, ("a", "b")), ["x", 1])] * 2


def test_steps_of_other_jobs_and_of_an_id_that_came_again_are_not_taken(site: QueueFixture, calls: Calls) -> None:
    def work(payload: object, context: JobContext) -> None:
        context.step("charge", calls, str(context.job.id))
        if context.job.attempts == 1:
            raise RetryAfter(timedelta(hours=1))

    def next_id() -> int:
        return site.client.add("work").id

    first, second = next_id(), next_id()
    site.run_once({"work": work})
    site.run("truncate _private_jobs restart identity")
    site.run(f"alter table _private_jobs alter id restart with {first}")
    assert next_id() == first
    site.run_once({"work": work})
    assert (sorted(calls.names[:2]), calls.names[2:]) == (sorted([str(first), str(second)]), [str(first)])


# -- jobs that change while they wait -------------------------------------------------------------------------------


def add_again(site: QueueFixture, **options: Any) -> None:
    site.client.add("work", {"amount": 10}, job_key="k", **options)


REPLACEMENTS: dict[str, Callable[[QueueFixture], object]] = {
    "add": add_again,
    "add, keeping the time": lambda site: add_again(site, job_key_mode="preserve_run_at"),
    "add with a dependency": lambda site: add_again(site, after=[site.client.add("other")]),
    "add_many": lambda site: site.client.add_many([JobSpec(task="work", payload={"amount": 10}, job_key="k")]),
    "SQL": lambda site: site.run("select add_job('work', '{\"amount\": 10}', job_key => 'k')"),
    "twice": lambda site: (add_again(site), add_again(site, job_key_mode="unsafe_dedupe")),
}
CHANGES: dict[str, Callable[[QueueFixture, int], object]] = {
    "nothing": lambda site, job_id: None,
    "dedupe": lambda site, job_id: add_again(site, job_key_mode="unsafe_dedupe"),
    "unique": lambda site, job_id: add_again(site, unique_for=timedelta(hours=1)),
    "retry": lambda site, job_id: site.client.jobs.retry([job_id]),
    "retry of a failure": lambda site, job_id: (site.client.jobs.fail([job_id]), site.client.jobs.retry([job_id])),
    "reschedule": lambda site, job_id: site.client.jobs.reschedule([job_id], attempts=0, priority=3),
    "the key was removed": lambda site, job_id: site.run("update _private_jobs set key = null"),
}


class Charging:
    """A task that charges what the payload names and then fails, until it may end."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.ends = False

    def __call__(self, payload: Any, context: JobContext) -> None:
        context.step("charge", self.charge, payload["amount"])
        if not self.ends:
            raise RetryAfter(timedelta(hours=1))

    def charge(self, amount: int) -> int:
        self.charged.append(amount)
        return amount


def charge_until_the_end(site: QueueFixture, change: Callable[[int], object]) -> list[int]:
    """Run a job that charges 5 and fails, change it, and run it again; return what was charged."""
    charging = Charging()
    job = site.client.add("work", {"amount": 5}, job_key="k", unique_for=timedelta(hours=1))
    site.run_once({"work": charging})
    change(job.id)
    charging.ends = True
    site.run("update _private_jobs set run_at = now() where run_at < 'infinity'")
    site.run_once({"work": charging, "other": lambda: None})
    assert site.client.jobs.count().jobs == 0
    return charging.charged


@pytest.mark.parametrize("way", REPLACEMENTS)
def test_a_job_that_is_replaced_starts_over(site: QueueFixture, way: str) -> None:
    def replace(job_id: int) -> None:
        REPLACEMENTS[way](site)
        assert site.client.jobs.get(job_id).payload == {"amount": 10}
        assert list(site.client.jobs.steps(job_id)) == []

    assert charge_until_the_end(site, replace) == [5, 10]


@pytest.mark.parametrize("way", CHANGES)
def test_a_job_that_is_changed_in_another_way_goes_on(site: QueueFixture, way: str) -> None:
    assert charge_until_the_end(site, lambda job_id: CHANGES[way](site, job_id)) == [5]


def test_the_flag_of_a_job_with_steps_is_gws_own(site: QueueFixture) -> None:
    seen: list[tuple[str, ...]] = []

    def work(payload: object, context: JobContext) -> None:
        context.step("one", lambda: 1)
        seen.append(context.job.flags)
        if context.job.attempts == 1:
            raise NOW

    site.client.add("work", job_key="k", flags=["mine"])
    site.run_once({"work": work})
    assert seen == [("mine",), ("mine",)]
    with pytest.raises(InvalidJobError, match="the flag gw:steps is gw's own"):
        site.client.add("work", flags=["gw:steps"])


# -- what cannot be kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "message"),
    [
        pytest.param(
            lambda context: [context.step("a", int), context.step("a", int)],
            "step 'a' has already run in this attempt; give each step of a job its own name",
            id="a name twice",
        ),
        pytest.param(
            lambda context: context.step("a", object),
            "the value of step 'a' cannot be written as JSON: Encoding objects of type object is unsupported",
            id="no JSON",
        ),
        pytest.param(
            lambda context: context.step("a", lambda: "x" * 10_000_000),
            "the value of step 'a' is 10,000,002 bytes long and at most 10,000,000 are allowed; "
            "store large values elsewhere and return a reference",
            id="10 MB",
        ),
        pytest.param(
            lambda context: context.step("", int),
            "the name of a step is a text of 1 to 200 characters, not ''",
            id="no name",
        ),
    ],
)
def test_what_cannot_be_kept_gets_one_sentence(
    site: QueueFixture, use: Callable[[JobContext], object], message: str
) -> None:
    assert errors_of(site, lambda payload, context: use(context)) == [message]


def test_a_result_is_no_cursor(site: QueueFixture) -> None:
    def work(payload: object, context: JobContext) -> None:
        if context.job.attempts == 1:
            context.step("rows", int)
            raise NOW
        with context.step("rows"):
            pass

    site.client.add("work", max_attempts=2)
    site.run_once({"work": work})
    [job] = site.run("select last_error from _private_jobs")
    assert "step 'rows' has kept a result, so it has no cursor" in job["last_error"]


def test_a_step_of_a_lost_claim_cannot_be_kept(site: QueueFixture, calls: Calls) -> None:
    def charge() -> None:
        calls("charge")
        site.run("update _private_jobs set locked_at = locked_at + interval '1 second', locked_by = 'another'")

    [error] = errors_of(site, lambda payload, context: context.step("charge", charge))
    assert error == "step 'charge' was not kept: this attempt has lost its job, which may run elsewhere by now"
    assert (calls.names, steps(site)) == (["charge"], [])


@pytest.mark.parametrize("commits", [True, False])
def test_a_step_belongs_to_the_callers_transaction(site: QueueFixture, commits: bool) -> None:
    site.run("create table if not exists public.charges (id int); truncate public.charges")

    def work(payload: object, context: JobContext) -> None:
        with psycopg.connect(site.url) as connection:

            def charge() -> None:
                connection.execute("insert into public.charges values (1)")

            context.step("charge", charge, conn=connection)
            if not commits:
                connection.rollback()
        raise RetryAfter(timedelta(hours=1))

    site.client.add("work")
    site.run_once({"work": work})
    assert [name for name, _, _ in steps(site)] == ["charge"] * commits
    assert site.value("select count(*) from public.charges") == int(commits)


# -- cursors -------------------------------------------------------------------------------------------------------


def test_a_cursor_continues_where_the_last_attempt_stopped(site: QueueFixture) -> None:
    seen: list[int] = []

    def work(payload: object, context: JobContext) -> None:
        with context.step("rows") as step:
            for number in range(step.cursor or 0, 6):
                seen.append(number)
                step.save(number + 1)
                if number % 2 and context.job.attempts <= 2:
                    raise NOW

    site.client.add("work")
    site.run_once({"work": work})
    assert seen == [0, 1, 2, 3, 4, 5]


def test_coroutines_have_steps_and_cursors_that_do_not_block_the_loop(site: QueueFixture, calls: Calls) -> None:
    async def charge(name: str) -> str:
        await asyncio.sleep(0)
        return calls(name)

    async def work(payload: object, context: JobContext) -> None:
        async with await psycopg.AsyncConnection.connect(site.url) as connection:
            assert await context.step("charge", charge, "charge", conn=connection) == "charge done"
        assert await context.step("mail", charge, "mail") == "mail done"
        async with context.step("rows") as step:
            assert step.cursor == (None if context.job.attempts == 1 else [1])
            await step.save([1])
        if context.job.attempts == 1:
            raise NOW

    site.client.add("work")
    assert site.run_once({"work": work}).completed == 1
    assert calls.names == ["charge", "mail"]


# -- how long they are kept ----------------------------------------------------------------------------------------


def check_all(site: QueueFixture) -> None:
    """Check for jobs that others have ended, as a worker does once a minute."""
    with site.running({"other": lambda payload: None}, poll_interval=NEVER):
        wait_until(lambda: steps(site) == [], what="the steps of the ended job to go")


def keep_a_step(payload: object, context: JobContext) -> None:
    context.step("charge", str, "paid")
    if payload == {"fails": True}:
        raise RetryAfter(timedelta(hours=1))


def test_steps_go_with_their_job(site: QueueFixture) -> None:
    site.client.add("work")
    assert site.run_once({"work": keep_a_step}).completed == 1
    assert steps(site) == []


@pytest.mark.parametrize(
    "end", ["delete from _private_jobs", "select complete_jobs(array(select id from _private_jobs))"]
)
def test_steps_go_with_a_job_that_others_end(site: QueueFixture, end: str) -> None:
    job = site.client.add("work", {"fails": True})
    site.run_once({"work": keep_a_step})
    assert [each.value for each in site.client.jobs.steps(job.id)] == ["paid"]
    site.run(end)
    assert site.client.jobs.steps(job.id) == []
    check_all(site)


@pytest.fixture
def shell(site: QueueFixture, tmp_path: Path) -> Callable[..., CliResult]:
    return Shell(tmp_path, database=site.url).gw


def test_history_keeps_steps_as_long_as_their_job(site: QueueFixture, shell: Callable[..., CliResult]) -> None:
    job = site.client.add("work")
    site.run_once({"work": keep_a_step}, history=timedelta(days=1))
    [step] = site.client.jobs.steps(job.id)
    assert (step.name, step.value, step.finished, step.attempt) == ("charge", "paid", True, 1)
    shown = json.loads(shell("show", str(job.id), "--json").out)
    assert [(each["name"], each["value"]) for each in shown["steps"]] == [("charge", "paid")]
    assert "charge (finished by attempt 1" in shell("show", str(job.id)).out

    site.run("update _private_gw_steps set kept_until = now() - interval '1 second'")
    assert site.client.jobs.steps(job.id) == []
    check_all(site)


def test_a_job_in_the_queue_shows_its_steps(site: QueueFixture, shell: Callable[..., CliResult]) -> None:
    job = site.client.add("work", {"fails": True})
    site.run_once({"work": keep_a_step})
    shown = json.loads(shell("show", str(job.id), "--json").out)
    assert [(each["name"], each["value"], each["finished"]) for each in shown["steps"]] == [("charge", "paid", True)]
    hidden = json.loads(shell("show", str(job.id), "--no-payload", "--json").out)
    assert [(each["name"], each["value"]) for each in hidden["steps"]] == [("charge", None)]


# -- round trips and lost connections ------------------------------------------------------------------------------


@pytest.mark.direct("it counts statements of one session")
def test_a_step_costs_one_round_trip_and_its_job_one_more(site: QueueFixture) -> None:
    proxy = DatabaseProxy(site.url)
    recorded = proxy.record()

    def work(payload: object, context: JobContext) -> None:
        for number in range(20):
            context.step(str(number), int)

    site.fill(3)
    site.run_once({"work": work}, url=proxy.url, concurrency=1)
    proxy.close()
    sent = [text for name, text in recorded if name == "gw:task"]
    assert sum("_private_gw_steps" in text for text in sent) == 3 * 21
    assert len(sent) <= 3 * 21 + 6  # the settings of the session


@pytest.mark.direct("it ends a session of the server")
def test_a_step_outlives_the_connection_that_it_would_be_kept_with(site: QueueFixture, calls: Calls) -> None:
    def charge() -> str:
        assert site.kill_connections("gw:task") > 0
        return calls("charge")

    def work(payload: object, context: JobContext) -> None:
        context.step("charge", charge)

    site.client.add("work", max_attempts=1)
    assert site.run_once({"work": work}).completed == 1
    assert calls.names == ["charge"]


# -- interruption --------------------------------------------------------------------------------------------------


class Long:
    """A task of many rows: it waits in one of them until the test lets it go on."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.at_two = threading.Event()
        self.goes_on = threading.Event()

    def row(self, number: int) -> None:
        self.seen.append(number)
        if number == 2:
            self.at_two.set()
            assert self.goes_on.wait(DEADLINE)

    def __call__(self, payload: object, context: JobContext) -> None:
        with context.step("rows") as step:
            for number in range(step.cursor or 0, 5):
                self.row(number)
                step.save(number + 1)

    async def on_loop(self, payload: object, context: JobContext) -> None:
        async with context.step("rows") as step:
            for number in range(step.cursor or 0, 5):
                await asyncio.to_thread(self.row, number)
                await step.save(number + 1)

    def in_parts(self, payload: object, context: JobContext) -> None:
        for number in range(5):
            context.step(str(number), self.row, number)
            context.checkpoint()

    async def in_a_group(self, payload: object, context: JobContext) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.on_loop(payload, context))

    def as_a_batch(self, payload: list[int], context: JobContext) -> list[object]:
        return [self.in_parts(None, context)]


@pytest.mark.parametrize("form", ["__call__", "on_loop", "in_parts", "in_a_group", "as_a_batch"])
def test_a_stop_between_steps_returns_the_job_without_counting_and_it_continues(site: QueueFixture, form: str) -> None:
    long = Long()
    task = getattr(long, form)
    site.client.add_batch("work", [1]) if form == "as_a_batch" else site.client.add("work")
    with site.running({"work": task}, history=timedelta(days=1)) as running:
        assert long.at_two.wait(DEADLINE)
        running.request_stop()
        running.recorded.wait_for(PoolStopping)
        long.goes_on.set()
        running.end()
        assert [each.job.attempts for each in running.recorded.of(JobReturned)] == [1]
    [job] = site.run("select attempts, last_error, run_at <= now() as is_due, locked_by from _private_jobs")
    assert (job["attempts"], job["last_error"], job["is_due"], job["locked_by"]) == (0, None, True, None)
    assert site.run("select * from _private_gw_history") == []

    assert site.run_once({"work": task}).completed == 1
    assert long.seen == [0, 1, 2, 3, 4]


def test_a_task_that_catches_every_exception_is_interrupted_all_the_same(site: QueueFixture) -> None:
    started, stopping = threading.Event(), threading.Event()

    def work(payload: object, context: JobContext) -> None:
        started.set()
        assert stopping.wait(DEADLINE)
        try:
            context.checkpoint()
        except Exception:
            pytest.fail("a task must not take its interruption for a failure")

    site.client.add("work")
    with site.running({"work": work}) as running:
        assert started.wait(DEADLINE)
        running.request_stop()
        running.recorded.wait_for(PoolStopping)
        stopping.set()
        running.end()
        assert running.recorded.of(JobReturned)[0].reason == "interrupted between steps: the worker is stopping"


def test_a_cancelled_job_ends_at_its_next_step_as_failed(site: QueueFixture) -> None:
    started = threading.Event()

    def work(payload: object, context: JobContext) -> None:
        started.set()
        context.should_stop.wait(DEADLINE)
        context.step("never", pytest.fail, "a cancelled job ran a step")

    job = site.client.add("work")
    with site.running({"work": work}):
        assert started.wait(DEADLINE)
        [cancelled] = site.client.jobs.cancel([job.id], timeout=timedelta(seconds=DEADLINE))
        assert cancelled.result == "cancelled"


def test_steps_are_errors_of_gw(site: QueueFixture) -> None:
    def work(payload: object, context: JobContext) -> None:
        with pytest.raises(GraphileWorkerError):
            context.step("a", object)
        assert context.step("a", int) == 0  # a step that failed has not used its name

    site.client.add("work")
    tasks = TaskRegistry()
    tasks.register("work", work)
    assert site.run_once(tasks).completed == 1
