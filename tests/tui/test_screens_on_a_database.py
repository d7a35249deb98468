"""Every screen on a real queue: it shows what the database has, and unusual names survive the round trip."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from console_fixture import Console, Scenario, play as play_on, queue_source, search_of

from gw_core import Client, JobSpec, RetryAfter, Runner, TaskRegistry, cron_item
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


def play(url: str, scenario: Scenario, screen: str = "jobs", **options: str) -> None:
    items = [cron_item("0 * * * *", "task_1", id="hourly", fill=timedelta(hours=2))]
    play_on(scenario, queue_source(url, crontab=lambda: items), screen=screen, **options)


def test_every_list_of_an_empty_queue_says_that_it_is_empty_and_has_no_empty_box(database_url: str) -> None:
    async def scenario(console: Console) -> None:
        for number, place in enumerate(console.app.MODES, start=1):
            if place in ("overview", "jobs", "locks", "events"):  # they always have rows, or words of their own
                continue
            await console.press(str(number % 10))
            await console.reach(place)
            for size in ((200, 50), (120, 34), (80, 24)):
                await console.pilot.resize_terminal(*size)
                # The box goes with the answer, after the words that the list is empty.
                await console.until(lambda: console.app.front.EMPTY in console.text and "Details" not in console.text)  # type: ignore[union-attr]

    play_on(scenario, queue_source(database_url), screen="cron")


def ids(url: str, condition: str) -> list[int]:
    with psycopg.connect(url) as hands:
        return [row[0] for row in hands.execute(f"select id from graphile_worker._private_jobs where {condition}")]


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
