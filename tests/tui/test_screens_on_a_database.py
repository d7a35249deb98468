"""Every screen on a real queue: it shows what the database has, and unusual names survive the round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from console_fixture import Console, console_on, queue_source, search_of

from gw_core import Client, JobSpec, RetryAfter, Runner, Selection, TaskRegistry, cron_item
from gw_tui.text.formatting import NOTHING

pytestmark = pytest.mark.once

ODD = 'a "queue": 100%\\ [red]\x1b[31m'
DEAD = "dead worker:1"


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    """A queue with a bit of everything."""
    specs = [
        JobSpec(task=f"task_{n % 3}", payload={"n": n, "user": {"id": n % 4}}, priority=n // 3 % 3) for n in range(250)
    ]
    with Client(database_url) as client:
        client.add_many(
            [*specs, JobSpec(task="odd", queue_name=ODD, payload=[1, 2]), JobSpec(task="odd", queue_name=ODD)]
        )
    with psycopg.connect(database_url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        hands.execute(
            "update _private_jobs set attempts = max_attempts, last_error = 'refused: token=abc', "
            "run_at = now() - id * interval '1 minute' where id % 10 = 0"
        )
        hands.execute(
            "update _private_jobs set attempts = 3, last_error = 'slow', run_at = now() + interval '1 hour' "
            "where id % 10 = 1"
        )
        hands.execute(
            "update _private_jobs set locked_at = now() - interval '5 hours', locked_by = %s where id %% 50 = 2",
            (DEAD,),
        )
        hands.execute("update _private_job_queues set locked_at = now() - interval '1 hour', locked_by = %s", (DEAD,))
        hands.execute("insert into _private_known_crontabs values ('hourly', now() - interval '1 day', null)")
    return database_url


def play(url: str, scenario: Callable[[Console], Awaitable[None]], screen: str = "jobs", **options: str) -> None:
    async def inside() -> None:
        items = [cron_item("0 * * * *", "task_1", id="hourly", fill=timedelta(hours=2))]
        source = queue_source(url, crontab=lambda: items)
        app = console_on(source, screen=screen, **options)
        async with app.run_test(size=(120, 34), notifications=True) as pilot:
            await scenario(Console(app, pilot, source))

    asyncio.run(inside())


@pytest.mark.parametrize("size", [(80, 24), (120, 34), (200, 50)], ids=str)
def test_every_list_of_an_empty_queue_says_that_it_is_empty_and_has_no_empty_box(
    database_url: str, size: tuple[int, int]
) -> None:
    async def inside() -> None:
        source = queue_source(database_url)
        app = console_on(source, screen="cron")
        async with app.run_test(size=size, notifications=True) as pilot:
            console = Console(app, pilot, source)
            for number, place in enumerate(app.MODES, start=1):
                if place in ("overview", "jobs", "locks", "events"):  # they always have rows, or words of their own
                    continue
                await console.press(str(number % 10))
                await console.until(lambda place=place: console.is_on(place))
                await console.until(lambda: app.front.EMPTY in console.text)
                assert "Details" not in console.text

    asyncio.run(inside())


async def apply_filter(console: Console, text: str) -> list[int]:
    """Type a filter, and return what it finds on its first page."""
    await console.press("slash", "ctrl+u")
    await console.type(text)
    await console.press("enter")
    screen = await console.searched(text)
    await console.until(lambda: len(console.table("#jobs").keys) == len(search_of(screen).jobs))
    return [each.job.id for each in search_of(screen).jobs]


def ids(url: str, condition: str) -> list[int]:
    with psycopg.connect(url) as hands:
        return [row[0] for row in hands.execute(f"select id from graphile_worker._private_jobs where {condition}")]


FILTERS = {
    "state:failed": "attempts >= max_attempts and locked_at is null",
    "state:backoff": "attempts = 3 and locked_at is null",
    "state:running started_at:<-4h": "locked_at is not null",
    "payload.user.id:2 state:failed,backoff": "payload #>> '{user,id}' = '2' and attempts > 0 and locked_at is null",
    "prio:2 -task:task_2 attempts:>=3": "priority = 2 and attempts >= 3 and task_id <> "
    "(select id from graphile_worker._private_tasks where identifier = 'task_2')",
    "run_at:>+30m run_at:<+2h": "run_at > now() + interval '30 minutes'",
    "error:TOKEN": "last_error like '%token%'",
    "id:10,20 state:failed": "id in (10, 20)",
    "payload:nothing": "false",
}


def test_every_kind_of_term_finds_what_the_database_holds(url: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        for text, condition in FILTERS.items():
            expected = ids(url, condition)
            assert len(expected) < 100
            assert sorted(await apply_filter(console, text)) == sorted(expected), text

    play(url, scenario)


def test_the_latest_failure_comes_first_and_pages_are_turned(url: str) -> None:
    async def scenario(console: Console) -> None:
        found = await apply_filter(console, "state:failed")
        assert found == sorted(found)
        await console.shows("latest failure first")
        await apply_filter(console, "-state:failed")
        first = console.table("#jobs").keys
        await console.press("n")
        await console.until(lambda: console.table("#jobs").keys and not set(console.table("#jobs").keys) & set(first))
        await console.press("p")
        await console.until(lambda: console.table("#jobs").keys == first)

    play(url, scenario)


def test_every_screen_shows_what_the_database_says(url: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#queues").keys == (ODD,))
        await console.press("enter")
        screen = await console.reach("jobs")
        assert search_of(screen).wanted == Selection.of(queue=ODD)
        await console.until(lambda: len(console.table("#jobs").keys) == 2)
        await console.press("enter")
        await console.reach("job")
        await console.shows("batch of 2 items")
        await console.press("escape", "4")
        await console.until(lambda: DEAD in console.table("#workers").keys)
        await console.until(lambda: len(console.table("#held").keys) == 6)
        await console.press("5")
        await console.shows("▲ missed")
        await console.shows("every hour")
        await console.press("6")
        await console.shows("gw unlock")
        assert "is read-only" not in console.text

    play(url, scenario, screen="queues")


@pytest.mark.parametrize("has_failed", [False, True])
def test_enter_on_the_finding_of_groups_lists_their_members(url: str, has_failed: bool) -> None:
    with Client(url) as client:
        group = client.groups.add([JobSpec(task="task_1")] * 3, then=JobSpec(task="last"))
        if has_failed:
            client.jobs.fail([group.job_ids[0]], "broken")

    async def scenario(console: Console) -> None:
        await console.until(lambda: "groups/1" in console.table("#findings").keys)
        await console.press(*["down"] * console.table("#findings").keys.index("groups/1"), "enter")
        screen = await console.reach("jobs")
        expected = set(group.job_ids[:1] if has_failed else group.job_ids)
        await console.until(lambda: {each.job.id for each in search_of(screen).jobs} == expected)

    play(url, scenario, screen="locks")


def test_the_tasks_screen_says_which_task_is_limited_and_which_limit_is_reached(url: str) -> None:
    with Client(url) as client:
        client.limits.set("task_0", running=2)
        client.limits.set("task_1", running=500)
    of_task = (
        "locked_by is not null and task_id = (select id from graphile_worker._private_tasks where identifier = '{}')"
    )
    locked = {task: len(ids(url, of_task.format(task))) for task in ("task_0", "task_1")}
    assert locked["task_0"] >= 2

    async def scenario(console: Console) -> None:
        await console.shows("! at limit")
        console.table("#tasks").move_to("task_0")
        await console.shows(f"limit: {locked['task_0']} of at most 2 jobs are locked")
        console.table("#tasks").move_to("task_1")
        await console.shows(f"limit: {locked['task_1']} of at most 500 jobs are locked")

    play(url, scenario, "tasks")


@pytest.mark.parametrize(("locked_by", "expected"), [(DEAD, "no worker"), ("node-1", "unknown")])
def test_a_task_has_unknown_workers_beside_a_live_one_known_by_its_locks(
    url: str, locked_by: str, expected: str
) -> None:
    with psycopg.connect(url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        hands.execute(
            "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata) "
            "values ('pool-1', now(), now(), '{\"tasks\": [\"task_0\"]}')"
        )
        hands.execute("update _private_job_queues set locked_by = null, locked_at = null")
        hands.execute(
            "update _private_jobs set locked_by = %s, locked_at = "
            "now() - case when %s then interval '1 minute' else interval '5 hours' end where locked_at is not null",
            (locked_by, locked_by != DEAD),
        )

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        assert console.table("#tasks").shown_rows["task_1"].cells["known_by"].text.endswith(expected)

    play(url, scenario, "tasks")


# -- errors of more jobs than are read ---------------------------------------------------------------------------------


@pytest.fixture
def many_errors(database_url: str) -> str:
    """A queue in which more jobs fail than the screen of errors reads; one of them has an error of its own."""

    def charge(payload: dict[str, int]) -> None:
        raise ValueError(f"card {payload['n']} has expired")

    def sync(payload: object) -> None:
        raise RetryAfter(timedelta(hours=1), "crm.example.com refused")

    def rare(payload: object) -> None:
        raise KeyError("vat")

    tasks = TaskRegistry()
    for task in (charge, sync, rare):
        tasks.register(task.__name__, task)
    with Client(database_url) as client:
        client.add_many([JobSpec(task="charge", payload={"n": n}, max_attempts=1) for n in range(1_150)])
        client.add_many([JobSpec(task="sync")] * 1_020)
        Runner(database_url, tasks=tasks, handle_signals=False).run_once()
        client.add("rare", max_attempts=1)
        Runner(database_url, tasks=tasks, handle_signals=False).run_once()
    return database_url


def test_of_more_errors_than_are_read_no_count_is_stated_as_a_whole(many_errors: str) -> None:
    with psycopg.connect(many_errors) as hands:
        true = dict(
            hands.execute(
                "select task_identifier, count(*)::int from graphile_worker.jobs"
                " where last_error is not null group by 1"
            )
        )
    assert true == {"charge": 1_150, "sync": 1_020, "rare": 1}

    async def scenario(console: Console) -> None:
        await console.shows("at least 3 kinds · latest 1,000 of 1,151 failed · 1,000 of 1,020 in backoff")
        table = console.table("#errors")
        for task, jobs in true.items():
            (cells,) = (table.shown_rows[key].cells for key in table.keys if key.startswith(f"{task}/"))
            shown = {name: getattr(cell, "text", cell) for name, cell in cells.items()}
            assert shown["jobs"].endswith("+")
            assert int(shown["jobs"].rstrip("+").replace(",", "")) <= jobs
            # After a delay that the task chose, the time of the failure is unknown.
            assert (shown["first"][0], shown["last"][0]) == ((NOTHING, NOTHING) if task == "sync" else (">", "<"))
            assert shown["failed"] in ("", shown["jobs"])

    play(many_errors, scenario, screen="errors")


def test_of_few_errors_all_is_stated_exactly(url: str) -> None:
    with psycopg.connect(url) as hands:
        counted = "select count(distinct (task_id, last_error)), count(*) from graphile_worker._private_jobs"
        [(kinds, jobs)] = hands.execute(f"{counted} where last_error is not null and locked_at is null").fetchall()

    async def scenario(console: Console) -> None:
        await console.shows(f"{kinds} kinds of errors · {jobs} jobs")

    play(url, scenario, screen="errors")


@pytest.mark.parametrize(
    ("screen", "words"), [("tasks", "counts are unknown now"), ("overview", "unknown now: counts")]
)
def test_counts_that_cannot_be_read_are_unknown_and_the_rest_stays(
    url: str, screen: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # a console does not wait as long as those of other tests
    table = {"tasks": "#tasks", "overview": "#last-errors"}[screen]

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table(table).keys)
        rows = set(console.table(table).keys)
        with psycopg.connect(url) as blocking:
            blocking.execute("lock table graphile_worker._private_gw_limits in access exclusive mode")
            await console.shows(words)
            assert set(console.table(table).keys) == rows
        await console.until(lambda: words not in console.text)

    play(url, scenario, screen=screen)
