"""The console on a real queue: how it takes failure, how little it takes, and that its actions are done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from console_fixture import Console, Scenario, play as play_on, queue_source
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.database_proxy import DatabaseProxy
from support.waiting import wait_until

from gw_core import Client, Job, JobSpec, Runner, TaskRegistry
from gw_core.front_ends import FrontEnd, ReadOnlyError
from gw_core.worker import timeouts
from gw_tui.actions import Add, CountExactly

pytestmark = pytest.mark.once


def play(url: str, scenario: Scenario, **more: object) -> None:
    """Play a scenario on a console over a real queue."""
    play_on(scenario, queue_source(url, **more), period=0.1)


class Queue:
    """A hand of one's own in the database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)

    def run(self, statement: str) -> list[tuple[object, ...]]:
        cursor = self.connection.execute(f"set search_path to graphile_worker, public; {statement}".encode())
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def consoles(self, columns: str = "pid") -> list[tuple[object, ...]]:
        return self.run(
            f"select {columns} from pg_stat_activity where application_name like 'gw-tui%' "
            "and datname = current_database()"
        )


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with Client(database_url) as client:
        client.add_many([JobSpec(task=f"task_{number % 3}", payload={"n": number}) for number in range(30)])
    found = Queue(database_url)
    yield found
    found.connection.close()


async def live(console: Console) -> None:
    await console.until(lambda: console.state.phase == "live")


async def listening(console: Console, queue: Queue) -> None:
    """Wait until the console receives announcements."""
    await console.until(lambda: (True,) in queue.consoles("query ilike 'listen%' and state = 'idle'"))


# -- what it takes ---------------------------------------------------------------------------------------------------


def test_it_shows_the_queue_with_three_guarded_connections_at_most(queue: Queue) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await console.shows("task_0")
        console.app.action_runner.submit(CountExactly())
        await console.until(lambda: console.app.action_runner.last is not None)
        for place_ in ("jobs", "queues", "workers", "cron", "locks", "events"):
            console.app.visit(place_)
            await console.pilot.pause(0.15)
        await console.until(lambda: len(queue.consoles()) == 3)
        # Between two statements of a snapshot its session is in a transaction, and only there.
        await console.until(lambda: ("idle in transaction",) not in queue.consoles("state"))

    play(queue.url, scenario)
    wait_until(lambda: not queue.consoles(), what="the console's connections to end")


def test_the_connection_that_reads_can_write_nothing(queue: Queue) -> None:
    source = queue_source(queue.url)
    with pytest.raises(ReadOnlyError):
        source.read_client.add("mail")
    source.close()


def test_read_only_can_write_nothing_at_all(queue: Queue) -> None:
    source = queue_source(queue.url, is_read_only=True)
    with pytest.raises(ReadOnlyError):
        next(source.run(Add(spec=JobSpec(task="mail"))))
    assert source.info.is_read_only
    source.close()


def test_new_jobs_are_announced(queue: Queue) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await listening(console, queue)
        with Client(queue.url) as client:
            client.add_many([JobSpec(task="mail")] * 7)
        await console.until(lambda: any(entry.words == "7 jobs announced" for entry in console.state.journal))

    play(queue.url, scenario)


# -- how it takes failure --------------------------------------------------------------------------------------------


def test_killed_connections_come_back_without_a_key(queue: Queue) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await listening(console, queue)
        before = set(queue.consoles())
        queue.consoles("pg_terminate_backend(pid)")
        await console.until(lambda: len(set(queue.consoles()) - before) == 2)
        await live(console)
        await console.until(lambda: any(entry.words == "LISTEN restored" for entry in console.state.journal))
        assert any("LISTEN failed" in entry.words for entry in console.state.journal)

    play(queue.url, scenario)


def test_a_cut_network_shows_down_and_keeps_what_was_known(queue: Queue) -> None:
    proxy = DatabaseProxy(queue.url)

    async def scenario(console: Console) -> None:
        await live(console)
        await console.shows("task_0")
        proxy.cut()
        await console.shows("▲ DOWN")
        assert "task_0" in console.text
        proxy.restore()
        await live(console)

    play(proxy.url, scenario)
    proxy.close()


def test_a_table_locked_by_another_session_is_no_loss_and_does_not_block_others(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the console's own limits

    async def scenario(console: Console) -> None:
        await live(console)
        with psycopg.connect(queue.url) as other:
            other.execute("lock table graphile_worker._private_jobs in access exclusive mode")
            await console.until(lambda: console.state.phase == "stale" or bool(console.state.snapshot.errors))
        await console.until(lambda: console.state.phase == "live" and not console.state.snapshot.errors)

    play(queue.url, scenario)


def test_a_schema_without_a_queue_names_those_that_have_one(queue: Queue) -> None:
    async def scenario(console: Console) -> None:
        await console.shows("NO SCHEMA")
        await console.shows("--schema opens another: graphile_worker")

    play(queue.url, scenario, schema="elsewhere")


def test_a_role_without_rights_gets_a_message_and_is_let_in_once_it_has_them(queue: Queue) -> None:
    role = f"gw_tui_{conninfo_to_dict(queue.url)['dbname']}"[:60]
    queue.run(f'create role "{role}" login')
    try:

        async def scenario(console: Console) -> None:
            await console.until(lambda: console.state.phase in ("denied", "no schema", "down"))
            queue.run(f'grant usage on schema graphile_worker to "{role}"')
            queue.run(f'grant select on all tables in schema graphile_worker to "{role}"')
            await live(console)
            await console.shows("Row-level security hides jobs")

        play(make_conninfo(queue.url, user=role), scenario)
    finally:
        queue.run(f'drop owned by "{role}"')
        queue.run(f'drop role "{role}"')


def test_leaving_waits_for_no_statement(queue: Queue) -> None:
    source = queue_source(queue.url)
    source.snapshot()
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            with FrontEnd(source.read_client).connection() as connection:
                connection.execute("set statement_timeout = 0; select pg_sleep(280)")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    sleeping = "query like '%pg_sleep%' and wait_event = 'PgSleep'"
    wait_until(lambda: (True,) in queue.consoles(sleeping), what="the statement to run")
    source.cancel()
    thread.join(120)

    assert not thread.is_alive()
    assert failed
    source.close()


def test_jobs_that_wait_for_others_are_counted_on_the_first_screen_and_by_task(queue: Queue) -> None:
    with Client(queue.url) as client:
        first = client.add("work", run_at=timedelta(hours=1))
        for _ in range(3):
            client.add("last", after=[first])

    async def scenario(console: Console) -> None:
        await live(console)
        await console.shows(", 3 waiting")
        await console.press("8")
        await console.reach("tasks")
        await console.until(lambda: "last" in console.table("#tasks").keys)
        assert getattr(console.table("#tasks").shown_rows["last"].cells["waiting"], "text", None) == "3"

    play(queue.url, scenario)


# -- actions ---------------------------------------------------------------------------------------------------------


def test_a_waiting_job_is_cancelled_with_its_key(queue: Queue) -> None:
    with Client(queue.url) as client:
        first = client.add("work")
        client.add("last", after=[first])

    async def scenario(console: Console) -> None:
        await live(console)
        console.app.visit("jobs")
        await console.reach("jobs")
        await console.press("slash")
        await console.type("state:waiting")
        await console.press("enter")
        await console.until(lambda: len(console.table("#jobs").keys) == 1)
        await console.press("c")
        await console.reach("Confirm")
        assert "wait for others are dropped" in console.text
        await console.press("right", "enter")
        await console.shows("cancelled")

    play(queue.url, scenario)
    assert queue.run("select count(*) from _private_jobs where run_at = 'infinity'") == [(0,)]


def test_the_page_of_a_job_shows_what_operators_did(queue: Queue) -> None:
    with Client(queue.url) as client:
        job = client.add("unlucky", max_attempts=2)
        client.jobs.fail([job.id], "wrong account", by="anna\x1b[31m")

    async def scenario(console: Console) -> None:
        await live(console)
        console.app.visit("jobs")
        await console.reach("jobs")
        await console.press("slash")
        await console.type("task:unlucky")
        await console.press("enter")
        await console.until(lambda: len(console.table("#jobs").keys) == 1)
        await console.press("enter")
        await console.reach("job")
        await console.shows("fail by anna")

    play(queue.url, scenario)


def test_the_console_shows_a_task_that_cannot_be_stopped(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "FORCE_AFTER", 0.1)
    monkeypatch.setattr(timeouts, "OVERRUN_AFTER", 0.1)
    tasks, may_end = TaskRegistry(), threading.Event()

    @tasks.task("stubborn", timeout=timedelta(milliseconds=100))
    def stubborn(payload: object) -> None:
        may_end.wait(60)

    async def scenario(console: Console) -> None:
        await live(console)
        console.app.visit("jobs")
        await console.reach("jobs")
        await console.press("slash")
        await console.type("task:stubborn")
        await console.press("enter")
        await console.searched("task:stubborn")
        await console.until(lambda: len(console.table("#jobs").keys) == 1)
        await console.press("enter")
        await console.reach("job")
        await console.shows("but its task still runs and holds thread gw-worker-")

    runner = Runner(queue.url, tasks=tasks, handle_signals=False)
    with Client(queue.url) as client:
        job = client.add("stubborn")
        assert isinstance(job, Job)
        runner.start()
        try:
            wait_until(lambda: _has_overrun(client, job.id), what="the heartbeat that reports it")
            play(queue.url, scenario)
        finally:
            may_end.set()
            runner.stop()
            runner.wait()


def _has_overrun(client: Client, job_id: int) -> bool:
    report = client.jobs.show(job_id)
    return report is not None and "overran" in {each.code for each in report.reasons}


def test_a_restore_names_jobs_that_no_longer_wait_for_others(queue: Queue) -> None:
    with Client(queue.url) as client:
        client.jobs.complete("state:ready")
        first = client.add("mail")
        client.add("mail", after=[first])
        client.add("mail", after=[first], job_key="taken")

    async def scenario(console: Console) -> None:
        await live(console)
        await console.press("2")
        await console.until(lambda: console.is_on("jobs") and len(console.table("#jobs").keys) == 3)
        await console.press("ctrl+a")
        await console.press("x")
        await console.reach("Confirm")
        await console.press("right", "enter")
        await console.until(lambda: queue.run("select count(*) from _private_jobs") == [(0,)])
        await console.until(lambda: not console.app.action_runner.is_busy)
        with Client(queue.url) as client:
            client.add("mail", job_key="taken")
        await console.press("U")
        await console.reach("ResultDialog")
        assert "2 jobs restored" in console.text
        assert "1 of them, which waited for" in console.text

    play(queue.url, scenario)


def test_a_restore_that_fails_midway_adds_no_job_twice(queue: Queue) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await console.press("2")
        await console.until(lambda: console.is_on("jobs") and len(console.table("#jobs").keys) == 30)
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table("#jobs").marks) == 30)
        await console.press("x")
        await console.reach("Confirm")
        await console.press("right", "enter")
        await console.until(lambda: queue.run("select count(*) from _private_jobs") == [(0,)])
        await console.until(lambda: not console.app.action_runner.is_busy)
        queue.run("alter table _private_jobs add constraint refused check (payload ->> 'n' <> '12')")

        await console.press("U")
        await console.reach("ResultDialog")
        assert "12 jobs restored" in console.text
        assert "18 not restored" in console.text
        assert "yet, U continues" in console.text

        queue.run("alter table _private_jobs drop constraint refused")
        await console.press("escape")
        await console.press("U")
        await console.notified("18 jobs restored")
        assert sorted(queue.run("select (payload ->> 'n')::int from _private_jobs")) == [(n,) for n in range(30)]

    play(queue.url, scenario)
