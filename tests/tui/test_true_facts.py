"""The screens show what SQL returns, on a complex queue: mixed priorities, a long job, a dead worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from threading import Event

import psycopg
import pytest
from console_fixture import Console, Scenario, play as play_on, queue_source, search_of
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.databases import Databases
from support.waiting import wait_until

from gw_core import Client, JobSpec, Runner, Selection, TaskRegistry, WorkerSettings
from gw_core.front_ends import Quality
from gw_tui.text import formatting

pytestmark = pytest.mark.once

QUEUES, JOBS = 200, 60_000
PAGE = 100
DEAD, BUSY = "dead worker:1", "busy worker:2"
LONG = timedelta(hours=2, minutes=10)

MESS = f"""
insert into _private_tasks (identifier) values ('a'), ('b'), ('c'), ('never'), ('long');
insert into _private_job_queues (queue_name) select 'q' || lpad(n::text, 3, '0') from generate_series(1, {QUEUES}) n;
-- No job becomes due while a test runs: counts that were taken before a screen is read stay true.
-- Twenty far-away jobs of the most urgent priority hide those that are due, in three queues of four.
insert into _private_jobs (job_queue_id, task_id, priority, run_at, payload)
select q.id, 1, -5, now() + interval '20 days', '{{}}'
  from _private_job_queues q, generate_series(1, 20) where q.id % 4 <> 0;
insert into _private_jobs (job_queue_id, task_id, priority, run_at, payload)
select 1 + n % {QUEUES}, 1 + n % 3, (n / {QUEUES}) % 7 - 3,
       now() + case when n % {QUEUES} % 5 = 0 then interval '1 day' else -n * interval '1 second' end, '{{}}'
  from generate_series(1, {JOBS} - {QUEUES} * 15) n where n % {QUEUES} % 3 <> 0 or n % 1000 = 0;
-- Nothing at all waits in some queues.
delete from _private_jobs where job_queue_id % 50 = 7;
analyze;
"""
LIVED = f"""
insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata) values
  ('{DEAD}', now() - interval '1 day', now() - interval '1 hour', 'h', 1, '1', '{{}}'),
  ('{BUSY}', now() - interval '1 day', now(), 'h', 2, '1', '{{"tasks": ["a", "b", "c", "long"]}}');
update _private_job_queues set locked_by = '{DEAD}', locked_at = now() - interval '1 hour' where id % 40 = 1;
update _private_job_queues set locked_by = '{BUSY}', locked_at = now() - interval '20 seconds' where id = 3;
insert into _private_jobs (job_queue_id, task_id, attempts, max_attempts, locked_by, locked_at, payload)
values (3, 5, 1, 1, '{BUSY}', now() - interval '20 seconds', '{{}}');
insert into _private_gw_renewed_locks (worker_id, job_id, started_at, locked_at)
select locked_by, id, now() - interval '{LONG.total_seconds()} seconds', locked_at
  from _private_jobs where locked_at is not null;
"""

TRUE_QUEUES = """
select queues.queue_name,
       queues.locked_by,
       count(jobs.id),
       count(jobs.id) filter (where jobs.run_at <= now()),
       coalesce((array_agg(jobs.id order by jobs.priority, jobs.run_at, jobs.id)
                   filter (where jobs.run_at <= now()))[1],
                (array_agg(jobs.id order by jobs.run_at, jobs.id))[1])
  from _private_job_queues as queues
  left join _private_jobs as jobs on jobs.job_queue_id = queues.id and jobs.is_available
 group by queues.id order by 1
"""


@pytest.fixture(scope="module")
def mess(databases: Databases, template: str) -> Iterator[str]:
    """The name of a database with the many jobs, for each test to clone."""
    name = f"{databases.run.prefix}{databases.worker}_mess"
    databases.create(name, template=template)
    change(databases.url(name), MESS)
    yield name
    databases.drop(name)


@pytest.fixture
def url(databases: Databases, mess: str) -> Iterator[str]:
    databases.create(f"{mess}_clone", template=mess)
    url = databases.url(f"{mess}_clone")
    change(url, LIVED)
    yield url
    databases.drop(f"{mess}_clone")


def change(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c search_path=graphile_worker") as connection:
        connection.execute(statements.encode())


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, options="-c search_path=graphile_worker") as connection:
        return connection.execute(statement.encode()).fetchall()


def play(
    url: str, scenario: Scenario, screen: str = "overview", size: tuple[int, int] = (120, 34), **options: str
) -> None:
    play_on(scenario, queue_source(url), screen=screen, size=size, **options)


def shown_rows(console: Console, table: str) -> dict[str, dict[str, str]]:
    """Return the texts of the cells by row and column."""
    rows = console.table(table).shown_rows
    return {
        key: {name: getattr(cell, "text", cell) for name, cell in rows[key].cells.items()}
        for key in console.table(table).keys
    }


def assert_true(shown: str, number: int) -> None:
    """A number is exact, or a lower bound marked as such."""
    value = int(shown.removesuffix("+").replace(",", ""))
    assert value <= number if shown.endswith("+") else value == number


def test_queues_say_what_the_database_says(url: str) -> None:
    expected = {row[0]: row[1:] for row in ask(url, TRUE_QUEUES)}

    async def scenario(console: Console) -> None:
        seen: dict[str, dict[str, str]] = {}
        for _ in range(QUEUES // PAGE):
            await console.until(lambda seen=frozenset(seen): len(set(console.table("#queues").keys) - seen) == PAGE)
            seen |= shown_rows(console, "#queues")
            await console.press("n")
        assert set(seen) == set(expected)
        for name, (locked_by, waiting, due, head) in expected.items():
            row = seen[name]
            state = "ready" if due else "later" if waiting else "empty"
            if locked_by is not None:
                state = "stuck" if locked_by == DEAD else "locked"
            assert row["state"].endswith(state), (name, row)
            assert row["head"] == ("" if head is None else str(head)), (name, row)
            assert_true(row["unclaimed"], waiting)
            assert_true(row["due"], due)
            assert not row["due"].startswith("0+")

    play(url, scenario, "queues")


def test_stuck_queues_are_counted_and_listed_alone(url: str) -> None:
    stuck = {str(row[0]) for row in ask(url, f"select queue_name from _private_job_queues where locked_by = '{DEAD}'")}

    async def scenario(console: Console) -> None:
        await console.shows(f"{len(stuck)} stuck")
        await console.press("/")
        await console.type("stuck:")
        await console.press("enter")
        await console.until(lambda: set(console.table("#queues").keys) == stuck)
        states = {row["state"] for row in shown_rows(console, "#queues").values()}
        assert states == {"▲ stuck"}

    play(url, scenario, "queues")


FAILURES = """
insert into _private_jobs (task_id, attempts, max_attempts, last_error, updated_at, run_at, payload)
select 4, 25, 25, case when n % 3 = 0 then 'Refused: host ' || n else 'TimeoutError: after ' || n || ' s' end,
       now() - n * interval '1 minute', now() - n * interval '1 minute', '{}'
  from generate_series(1, 300) n;
insert into _private_jobs (task_id, attempts, max_attempts, last_error, run_at, payload)
select 1, 3, 25, 'TimeoutError: after 5 s', now() + interval '1 hour', '{}' from generate_series(1, 40) n;
"""


def test_errors_say_what_the_database_says(url: str) -> None:
    change(url, FAILURES)
    expected = ask(
        url,
        "select identifier, split_part(last_error, ':', 1), count(*), count(*) filter (where attempts >= max_attempts)"
        " from _private_jobs as jobs join _private_tasks as tasks on tasks.id = task_id"
        " where last_error is not null and locked_at is null group by 1, 2",
    )

    async def scenario(console: Console) -> None:
        await console.until(lambda: len(console.table("#errors").keys) == len(expected))
        shown = {
            (row["task"], row["error"].split(":")[0], row["jobs"].replace(",", ""), row["failed"] or "0")
            for row in shown_rows(console, "#errors").values()
        }
        assert shown == {(task, error, str(jobs), str(failed)) for task, error, jobs, failed in expected}

    play(url, scenario, "errors")


HISTORY = """
insert into _private_gw_history
select n, 1 + n % 3, 3, case when n % 2 = 0 then 'a' else 'b' end, null, null,
       case when n % 7 = 0 then 'failed' when n % 5 = 0 then 'retried' else 'completed' end, n % 5 <> 0, null,
       case when n % 7 = 0 then 'ValueError: ' || n end, null, null, 'w', null, now() - interval '2 hours',
       now() - n * interval '3 seconds', now() - n * interval '1 second', now() + interval '1 day'
  from generate_series(1, 400) n;
"""


def test_history_says_what_the_database_says(url: str) -> None:
    change(url, HISTORY)
    newest = "select job_id, attempt, task, state from _private_gw_history {} order by finished_at desc limit 100"
    everything, failed = ask(url, newest.format("")), ask(url, newest.format("where state = 'failed' and task = 'a'"))

    def shown(console: Console) -> list[tuple[object, ...]]:
        rows = shown_rows(console, "#history").values()
        return [
            (int(row["id"]), int(row["tries"].split("/")[0]), row["task"], row["state"].split()[-1]) for row in rows
        ]

    async def scenario(console: Console) -> None:
        await console.until(lambda: shown(console) == everything)
        await console.press("/")
        await console.type("state:failed task:a")
        await console.press("enter")
        await console.until(lambda: shown(console) == failed)

    play(url, scenario, "history")


@pytest.mark.parametrize("after", ["", "q190"])
def test_queues_listed_by_name_are_counted_exactly(url: str, after: str) -> None:
    waiting = dict(
        ask(
            url,
            "select queue_name, count(jobs)::int from _private_job_queues as queues left join _private_jobs as jobs"
            " on job_queue_id = queues.id and jobs.is_available group by 1",
        )
    )
    source = queue_source(url)
    try:
        found = source.queues(after=after)
        assert {each.name: each.unclaimed.value for each in found} == {each.name: waiting[each.name] for each in found}
        assert {each.unclaimed.quality for each in found} == {Quality.EXACT}
    finally:
        source.close()


def test_a_job_has_run_for_as_long_as_it_really_has(url: str) -> None:
    ((job_id,),) = ask(url, "select id from _private_jobs where locked_at is not null")

    async def scenario(console: Console) -> None:
        await console.until(lambda: "2h1" in shown_rows(console, "#queues").get("q003", {}).get("locked_for", ""))
        console.app.visit("workers")
        await console.shows(BUSY)
        await console.press("down")
        await console.shows("2h1")
        console.app.visit("jobs", "started_at:<-30m")
        screen = await console.reach("jobs")
        await console.until(lambda: [each.job.id for each in search_of(screen).jobs] == [job_id])
        await console.press("enter")
        await console.shows("started")
        await console.shows("2h1")

    play(url, scenario, "queues")


def test_enter_on_the_first_screen_opens_exactly_what_was_chosen(url: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#priorities").keys)
        console.table("#priorities").focus()
        await console.press("down", "enter")
        screen = await console.reach("jobs")
        await console.until(lambda: search_of(screen).wanted != Selection() and search_of(screen).jobs)
        priorities = {each.job.priority for each in search_of(screen).jobs}
        assert priorities == {int(console.state.snapshot.priorities[1].priority)}
        await console.shows("state:ready")

    play(url, scenario)


def test_a_role_that_may_only_read_is_shown_as_read_only(url: str) -> None:
    role = f"gw_reader_{conninfo_to_dict(url)['dbname']}"[:60]
    ask(url, "select 1")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'create role "{role}" login bypassrls'.encode())
        try:
            admin.execute(f'grant usage on schema graphile_worker to "{role}"'.encode())
            admin.execute(f'grant select on all tables in schema graphile_worker to "{role}"'.encode())

            async def scenario(console: Console) -> None:
                await console.shows("READ-ONLY")
                await console.shows("may only read")
                assert "rights:" not in console.text
                console.app.visit("jobs")
                await console.reach("jobs")
                await console.until(lambda: console.table("#jobs").keys)
                assert "Retry" not in console.text.splitlines()[-1]
                assert "Filter" in console.text.splitlines()[-1]

            play(make_conninfo(url, user=role), scenario)
        finally:
            admin.execute(f'drop owned by "{role}"'.encode())
            admin.execute(f'drop role "{role}"'.encode())


def test_hidden_rows_are_unknown_and_not_none(url: str) -> None:
    """A role from which row security hides all rows sees unknown numbers, and no zeros."""
    role = f"gw_hidden_{conninfo_to_dict(url)['dbname']}"[:60]
    ask(url, "select 1")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'create role "{role}" login'.encode())
        try:
            admin.execute(f'grant usage on schema graphile_worker to "{role}"'.encode())
            admin.execute(f'grant select on all tables in schema graphile_worker to "{role}"'.encode())

            async def scenario(console: Console) -> None:
                await console.shows("counts are incomplete")
                await console.shows("workers unknown")
                for words in ("no ready jobs", "none scheduled", "0 workers", "No alerts"):
                    assert words not in console.text

            play(make_conninfo(url, user=role), scenario)
        finally:
            admin.execute(f'drop owned by "{role}"'.encode())
            admin.execute(f'drop role "{role}"'.encode())


def test_tasks_say_what_the_database_says(url: str) -> None:
    expected = ask(
        url,
        "select tasks.identifier, count(*) filter (where locked_at is null and run_at <= now()), "
        "count(*) filter (where locked_at is not null) from _private_jobs as jobs "
        "join _private_tasks as tasks on tasks.id = jobs.task_id group by 1",
    )

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        shown = shown_rows(console, "#tasks")
        assert set(shown) == {row[0] for row in expected}
        for task, ready, running in expected:
            assert shown[task]["ready"] == formatting.number(ready)
            assert shown[task]["running"] == str(running)
        assert shown["long"]["run"].startswith("2h1")
        assert shown["a"]["known_by"] == "1 worker"

    play(url, scenario, "tasks")


STATISTICS = """
insert into _private_gw_statistics
select date_trunc('minute', now()) - make_interval(mins => minute), task, 'w' || worker || (minute < 30), 60 * worker,
       case when minute <= 20 then 12 else 0 end, 0, 30.0,
       array_fill(0, array[case when minute <= 20 then 9 else 6 end]) || 60
         || array_fill(0, array[case when minute <= 20 then 7 else 10 end]),
       10, 20.0
  from generate_series(1, 50) as minute, unnest(array['a', 'b']) as task, generate_series(1, 2) as worker
 -- The second worker began later; no worker was alive for five minutes.
 where minute not between 30 and 34 and (worker = 1 or minute <= 40) and (minute < 45 or minute > 47 or task = 'b');
"""
PER_MINUTE = """
select minute, sum(completed) / 60.0, sum(failed) / 60.0
  from generate_series(date_trunc('minute', now()) - interval '50 minutes', now() - interval '1 minute', '1 minute')
       as minute
  left join _private_gw_statistics using (minute)
 where {} group by 1 order by 1
"""


def chart(console: Console, name: str) -> list[str]:
    found = console.app.screen.query_one(name)
    return [found.render_line(y).text for y in range(found.size.height)]


ZEROS = "⡀⢀⣀⣸⣇⣿⢸⡇⣄⣠⣤⡄⢠"
"""The signs of zero on the ground of a chart: alone, and where the line rises or falls."""


def kinds(values: list[float | None]) -> set[str]:
    return {"gap" if value is None else "line" if value else "zero" for value in values}


def is_drawn(values: list[float | None], lines: list[str], count: int) -> bool:
    """Return whether the last columns of a chart have the values: gaps and zeros below, the largest above."""
    top, ground, highest = lines[1][-len(values) :], lines[-2][-len(values) :], max(known(values))
    columns = list(zip(values, top, ground, strict=True))[:count]
    return all(
        (low == "·") == (value is None)
        and (low in ZEROS if value == 0 else True)
        and (high != " " if value == highest > 0 else True)
        for value, high, low in columns
    )


def per_minute(url: str, column: int, where: str = "true") -> list[float | None]:
    """Return the rates of the last 50 minutes; they move on with the clock, as the charts do."""
    return [None if row[column] is None else float(str(row[column])) for row in ask(url, PER_MINUTE.format(where))]


def known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def test_charts_show_what_workers_recorded_before_the_console_was_started(url: str) -> None:
    change(url, STATISTICS)
    assert kinds(per_minute(url, 2)) == {"gap", "line", "zero"}

    async def scenario(console: Console) -> None:
        def failures_are_true() -> bool:
            failed, shown = per_minute(url, 2), chart(console, "#failures")
            newest, highest = formatting.rate(known(failed)[-1]), formatting.rate(max(known(failed)))
            numbers = (f"failed {newest}", "1h")
            return all(each in shown[0] for each in numbers) and highest in shown[1] and is_drawn(failed, shown, 50)

        def completions_are_true() -> bool:
            done, shown = per_minute(url, 1), chart(console, "#done")
            highest = formatting.rate(max(known(done)))
            return "1h" in shown[0] and highest in shown[1] and is_drawn(done, shown, 45)

        await console.until(failures_are_true)
        await console.until(lambda: "run p95 975ms" in chart(console, "#runs")[0])
        await console.press("]", "]")
        await console.until(completions_are_true)
        await console.press("]")
        await console.until(lambda: "24h" in chart(console, "#failures")[0])

    play(url, scenario, size=(390, 50))


def test_the_tasks_screen_charts_the_task_under_the_cursor(url: str) -> None:
    change(url, STATISTICS)
    newest = known(per_minute(url, 1, "task = 'b' or task is null"))[-1]
    ((ended, failed),) = ask(
        url, "select sum(completed + failed), sum(failed) from _private_gw_statistics where task = 'b'"
    )

    async def scenario(console: Console) -> None:
        await console.until(lambda: "a" in console.table("#tasks").keys)
        console.app.screen.take_filter("b")
        await console.until(lambda: f"b  last hour: {ended:,} attempts ended" in console.text)
        assert f"{100 * int(str(failed)) / int(str(ended)):.0f}% failed" in console.text
        assert "mean wait 2.0s" in console.text
        assert f"done {formatting.rate(newest)}" in chart(console, "#task-done")[0]
        console.app.screen.take_filter("c")
        await console.until(lambda: "c  last hour: nothing ended" in console.text)
        assert set(chart(console, "#task-done")[-2]) <= {"·", " ", *ZEROS}
        assert "⣀" in chart(console, "#task-done")[-2]

    play(url, scenario, "tasks")


def test_a_job_shows_each_time_in_one_format(url: str) -> None:
    """Each answer has both; the next one, a little later, has others."""
    ((job,),) = ask(
        url,
        "update _private_jobs set run_at = now() + interval '8 minutes 12 seconds', job_queue_id = null, revision = 9"
        " where id = (select min(id) from _private_jobs where locked_at is null) returning id",
    )
    pairs: set[tuple[str, str]] = set()

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        await console.press("enter")
        await console.until(lambda: "scheduled for later" in console.text)
        while len(pairs) < 3:
            lines = {
                word: line for line in console.text.splitlines() for word in ("later: in", "created") if word in line
            }
            reason = re.search(r"later: in (\S+)", lines["later: in"])
            timeline = re.search(r"\(in (\S+)\)", lines["created"])
            assert reason
            assert timeline
            pairs.add((reason[1], timeline[1]))
            await console.pilot.pause(0.1)

    play(url, scenario, "jobs", filter=f"id:{job}")
    assert all(reason == timeline for reason, timeline in pairs), pairs
    assert all(re.fullmatch(r"\dm(\d\ds)?", reason) for reason, _ in pairs), pairs


def test_groups_among_the_locks_say_what_the_database_says(url: str) -> None:
    with Client(url) as client:
        ids = [client.groups.add([JobSpec(task="a")] * 3, then=JobSpec(task="b")).id for _ in range(9)]
        ended = client.groups.add([JobSpec(task="a"), JobSpec(task="c")], then=JobSpec(task="b"))
    # The third and the ninth group have a member that failed permanently; another group was done before.
    with psycopg.connect(url, autocommit=True, options="-c search_path=graphile_worker") as connection:
        connection.execute(
            "update _private_jobs set attempts = max_attempts, last_error = 'no' where id in"
            " (select min(job_id) from _private_gw_edges where waiting_id = any(%s) group by waiting_id)",
            [[ids[2], ids[8]]],
        )
        done = "select complete_jobs(array(select job_id from _private_gw_edges where waiting_id = %s))"
        connection.execute(done, [ended.id])
    members = {str(job) for (job,) in ask(url, "select distinct job_id from _private_gw_edges")}

    async def scenario(console: Console) -> None:
        await console.until(lambda: "groups" in {row["check"] for row in shown_rows(console, "#findings").values()})
        (shown,) = (row for row in shown_rows(console, "#findings").values() if row["check"] == "groups")
        assert shown["words"].startswith("2 jobs that wait for others are held by jobs that failed permanently")
        assert f"the first, {ids[2]}, by job " in shown["words"]
        table = console.table("#findings")
        table.move_to(next(key for key, row in shown_rows(console, "#findings").items() if row["check"] == "groups"))
        await console.press("enter")
        await console.reach("jobs")
        await console.until(lambda: set(console.table("#jobs").keys))
        assert set(console.table("#jobs").keys) <= members

    play(url, scenario, "locks")


OF_TASKS = "from _private_jobs join _private_tasks as tasks on tasks.id = task_id"
LOCKED_BY_VALUE = f"""
select payload->>'tenant_id', count(*) filter (where locked_at is not null), count(*)
  {OF_TASKS} where identifier = 'rent' group by 1 order by 1
"""


def test_limits_say_what_the_database_says_while_jobs_run(url: str) -> None:
    go_on = Event()
    tasks = TaskRegistry()
    tasks.register("rent", lambda payload: go_on.wait(250))
    tasks.register("total", lambda payload: go_on.wait(250))
    with Client(url) as client:
        client.limits.set("rent", running=2, field="tenant_id")
        client.limits.set("total", running=3)
        client.add_many([JobSpec(task="rent", payload={"tenant_id": tenant}) for tenant in "xyz" for _ in range(30)])
        client.add_many([JobSpec(task="total")] * 40)
    runner = Runner(url, tasks=tasks, settings=WorkerSettings(concurrency=20), handle_signals=False)
    runner.start()
    try:
        locked = (
            "select count(*) from _private_jobs join _private_tasks t on t.id = task_id where locked_at is not null"
        )
        wait_until(lambda: ask(url, f"{locked} and identifier = 'rent'") == [(6,)])
        wait_until(lambda: ask(url, f"{locked} and identifier = 'total'") == [(3,)])
        assert [(value, running) for value, running, _ in ask(url, LOCKED_BY_VALUE)] == [("x", 2), ("y", 2), ("z", 2)]

        async def scenario(console: Console) -> None:
            await console.until(lambda: {"rent", "total"} <= set(console.table("#tasks").keys))
            shown = shown_rows(console, "#tasks")
            assert (shown["rent"]["running"], shown["total"]["running"]) == ("6", "3")
            assert shown["total"]["known_by"] == "! at limit"
            for task, words in (("rent", "tenant_id"), ("total", "3")):
                console.table("#tasks").move_to(task)
                await console.until(lambda words=words: words in console.text.split("limit: ")[-1].splitlines()[0])

        play(url, scenario, "tasks")
    finally:
        go_on.set()
        runner.stop()
        runner.wait()
