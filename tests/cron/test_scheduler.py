"""The scheduler: once per identifier and minute, whatever clocks, workers and databases do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.cron_fixture import START, CronFixture, CuttableConnection, ManualClock, at
from support.waiting import wait_until

from gw_core import Client, CronItem, Event, JobSpec, cron_item
from gw_core.errors import CrontabError, DatabaseError, JobRejectedError, TransientDatabaseError
from gw_core.events import CronFailed, CronScheduled
from gw_core.front_ends import (
    CronBackfill,
    CronBackfilled,
    CronItemFailed,
    CronItemsRejected,
    CronOverdueTimer,
    CronPrematureTimer,
    CronRestored,
    CronRunsSkipped,
    CronSchedule,
    CronStarted,
    CronStarting,
    Database,
    Pauses,
)
from gw_core.maintenance.cron_scheduler import CATCH_UP_LIMIT, MAX_REST, Scheduler

EVERY_MINUTE = "* * * * * tick"


def names(recorded: Iterable[Event]) -> list[str]:
    return [type(event).__name__ for event in recorded]


# -- starting ---------------------------------------------------------------------------------------------------------


def test_a_new_item_becomes_known_and_nothing_is_made_up_for(world: CronFixture) -> None:
    rest = world.scheduler("* * * * * tick ?fill=1d").step()

    assert world.known() == {"tick": (START, None)}
    assert world.jobs() == []
    assert rest == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("hours_ago", "expected"),
    [
        pytest.param(5, ["08:00", "12:00"], id="five hours"),
        pytest.param(
            25, ["16:00", "20:00", "00:00", "04:00", "08:00", "12:00"], id="25 hours, of which fill covers 24"
        ),
    ],
)
def test_missed_runs_are_made_up_for_within_fill(world: CronFixture, hours_ago: int, expected: list[str]) -> None:
    world.know("roll", since=START - timedelta(days=9), last=START - timedelta(hours=hours_ago))
    world.scheduler("0 */4 * * * roll ?fill=1d").step()

    assert [job.due for job in world.jobs()] == expected
    assert all(job.backfilled for job in world.jobs())
    assert world.known()["roll"][1] == at("12:00")


def test_without_fill_nothing_is_made_up_for(world: CronFixture) -> None:
    world.know("tick", since=START - timedelta(days=9), last=START - timedelta(hours=5))
    world.scheduler(EVERY_MINUTE).step()

    assert world.jobs() == []


def test_runs_before_an_item_became_known_are_not_made_up_for(world: CronFixture) -> None:
    world.know("tick", since=at("11:58:10"))
    world.scheduler("* * * * * tick ?fill=1h").step()

    assert [job.due for job in world.jobs()] == ["11:59", "12:00"]


def test_a_run_done_by_another_worker_is_not_made_up_for(world: CronFixture) -> None:
    world.know("tick", since=at("08:00"), last=at("11:59"))
    world.scheduler("* * * * * tick ?fill=1h").step()

    assert [job.due for job in world.jobs()] == ["12:00"]


def test_fill_reaches_exactly_as_far_as_it_says(world: CronFixture) -> None:
    world.know("tick", since=at("08:00"))
    world.scheduler("* * * * * tick ?fill=30s").step()

    assert [job.due for job in world.jobs()] == ["12:00"]


def test_a_start_on_the_minute_belongs_to_the_clock_and_not_to_fill(world: CronFixture) -> None:
    world.clock.now = at("12:00")
    world.know("tick", since=at("08:00"), last=at("11:58"))
    world.scheduler("* * * * * tick ?fill=1h").step()

    assert [(job.due, job.backfilled) for job in world.jobs()] == [("11:59", True), ("12:00", False)]


def test_catching_up_makes_up_for_missed_runs_and_schedules_nothing_else(world: CronFixture) -> None:
    world.know("roll", since=START - timedelta(days=9), last=START - timedelta(hours=5))
    scheduler = world.scheduler("0 */4 * * * roll ?fill=1d\n* * * * * tick")

    assert scheduler.catch_up() == 2
    assert world.due() == [("roll", "08:00"), ("roll", "12:00")]
    assert world.known().keys() == {"roll", "tick"}


def test_catching_up_says_when_the_database_cannot_be_reached(world: CronFixture) -> None:
    line = world.line()
    line.is_cut = True

    with pytest.raises(DatabaseError, match="cut"):
        world.scheduler(EVERY_MINUTE, line=line).catch_up()


# -- the clock --------------------------------------------------------------------------------------------------------


def test_each_minute_is_scheduled_once_when_it_comes(world: CronFixture) -> None:
    scheduler = world.scheduler("* * * * * tick\n*/2 * * * * tock")
    for _ in range(8):
        scheduler.step()
        world.clock.advance(seconds=30)

    assert world.due() == [
        ("tick", "12:01"),
        ("tick", "12:02"),
        ("tock", "12:02"),
        ("tick", "12:03"),
        ("tick", "12:04"),
        ("tock", "12:04"),
    ]
    assert not any(job.backfilled for job in world.jobs())


def test_the_rest_ends_just_after_the_minute_begins(world: CronFixture) -> None:
    world.clock.now = at("12:00:45")
    scheduler = world.scheduler(EVERY_MINUTE)

    assert scheduler.step() == timedelta(seconds=15, milliseconds=1)
    world.clock.now = at("12:01:00.002")
    assert scheduler.step() == MAX_REST
    assert world.due() == [("tick", "12:01")]


def test_a_clock_set_back_ten_minutes_repeats_no_minute(world: CronFixture) -> None:
    recorded: list[Event] = []
    scheduler = world.scheduler(EVERY_MINUTE, recorded=recorded)
    world.clock.now = at("12:00:45")
    scheduler.step()
    for seconds in range(0, 12 * 60, 20):
        world.clock.now = at("11:50:00") + timedelta(seconds=seconds)
        scheduler.step()

    assert world.due() == [("tick", "12:01")]
    assert names(recorded).count("CronPrematureTimer") == 1
    assert [event for event in recorded if isinstance(event, CronPrematureTimer)] == [
        CronPrematureTimer(current=at("11:50:00"), expected=at("12:01"))
    ]


def test_a_clock_set_forward_two_hours_misses_no_minute_and_says_they_are_late(world: CronFixture) -> None:
    recorded: list[Event] = []
    scheduler = world.scheduler(EVERY_MINUTE, recorded=recorded)
    scheduler.step()
    world.clock.now = at("14:00:10")
    scheduler.step()

    jobs = world.jobs()
    assert [job.due for job in jobs] == [f"{12 + n // 60:02}:{n % 60:02}" for n in range(1, 121)]
    assert [job.backfilled for job in jobs] == [True] * 119 + [False]
    assert [event for event in recorded if isinstance(event, CronOverdueTimer)] == [
        CronOverdueTimer(current=at("14:00:10"), expected=at("12:01"))
    ]


def test_a_machine_asleep_for_days_makes_up_for_one_day_and_says_so(world: CronFixture) -> None:
    recorded: list[Event] = []
    scheduler = world.scheduler("0 * * * * hourly\n0 0 * * * daily ?fill=7d", recorded=recorded)
    scheduler.step()
    world.clock.advance(days=5)
    scheduler.step()

    tasks = [job.task for job in world.jobs()]
    assert tasks.count("hourly") == 25
    assert tasks.count("daily") == 5
    assert [event for event in recorded if isinstance(event, CronRunsSkipped)] == [
        CronRunsSkipped(first=at("12:01"), last=at("11:59") + timedelta(days=4))
    ]
    assert timedelta(hours=24) == CATCH_UP_LIMIT


def test_an_outage_of_days_reports_once_what_it_cost(world: CronFixture) -> None:
    recorded: list[Event] = []
    line = world.line()
    scheduler = world.scheduler("0 * * * * hourly", line=line, recorded=recorded)
    scheduler.step()
    line.is_cut = True
    for _ in range(5):
        world.clock.advance(hours=12)
        scheduler.step()
    line.is_cut = False
    scheduler.step()

    assert len(world.jobs()) == 25
    assert [event for event in recorded if isinstance(event, CronRunsSkipped)] == [
        CronRunsSkipped(first=at("12:01"), last=at("23:59") + timedelta(days=1))
    ]


def test_a_clock_a_century_ahead_does_not_schedule_a_century(world: CronFixture) -> None:
    scheduler = world.scheduler("0 0 * * * daily")
    scheduler.step()
    world.clock.advance(days=36_525)
    scheduler.step()

    assert len(world.jobs()) == 1


# -- several workers --------------------------------------------------------------------------------------------------


def test_two_workers_with_one_crontab_schedule_each_minute_once(world: CronFixture) -> None:
    workers = [world.scheduler("* * * * * tick\n*/2 * * * * tock") for _ in range(2)]
    for _ in range(8):
        for worker in workers:
            worker.step()
        workers.reverse()
        world.clock.advance(seconds=30)

    assert len(world.jobs()) == len(set(world.due())) == 6


def test_a_worker_that_ends_leaves_the_next_minute_to_another(world: CronFixture) -> None:
    first, second = world.scheduler(EVERY_MINUTE), world.scheduler(EVERY_MINUTE)
    first.step()
    second.step()
    world.clock.now = at("12:01:01")
    first.step()
    world.clock.now = at("12:02:01")
    second.step()

    assert world.due() == [("tick", "12:01"), ("tick", "12:02")]


# -- outages ----------------------------------------------------------------------------------------------------------


def test_minutes_of_an_outage_are_scheduled_when_the_database_returns_and_marked(world: CronFixture) -> None:
    recorded: list[Event] = []
    line = world.line()
    scheduler = world.scheduler(EVERY_MINUTE, line=line, recorded=recorded)
    scheduler.step()
    line.is_cut = True
    for minute in (1, 2, 3):
        world.clock.now = at(f"12:0{minute}:01")
        rest = scheduler.step()
        assert timedelta() < rest <= timedelta(seconds=15)
    line.is_cut = False
    scheduler.step()

    assert [(job.due, job.backfilled) for job in world.jobs()] == [("12:01", True), ("12:02", True), ("12:03", True)]
    failures = [event for event in recorded if isinstance(event, CronFailed | CronRestored | CronOverdueTimer)]
    assert names(failures) == ["CronFailed", "CronRestored"]
    assert failures[-1] == CronRestored(attempts=3)


def test_after_an_outage_minutes_are_on_time_again(world: CronFixture) -> None:
    line = world.line()
    scheduler = world.scheduler(EVERY_MINUTE, line=line)
    scheduler.step()
    line.is_cut = True
    world.clock.now = at("12:01:01")
    scheduler.step()
    line.is_cut = False
    for seconds in (10, 61):
        world.clock.now = at("12:01") + timedelta(seconds=seconds)
        scheduler.step()

    assert [(job.due, job.backfilled) for job in world.jobs()] == [("12:01", True), ("12:02", False)]


def test_a_database_away_at_the_start_costs_no_minute_since(world: CronFixture) -> None:
    world.know("roll", since=at("08:00"), last=at("10:00"))
    line = world.line()
    line.is_cut = True
    scheduler = world.scheduler("0 * * * * roll ?fill=3h\n* * * * * tick", line=line)
    scheduler.step()
    world.clock.now = at("12:02:40")
    scheduler.step()
    line.is_cut = False
    scheduler.step()

    assert world.due() == [("roll", "11:00"), ("roll", "12:00"), ("tick", "12:01"), ("tick", "12:02")]
    assert world.known()["tick"][0] == START


def test_a_minute_whose_answer_was_lost_is_not_scheduled_twice(world: CronFixture) -> None:
    ours = world.scheduler(EVERY_MINUTE)
    ours.step()
    world.clock.now = at("12:01:01")
    twin = world.scheduler(EVERY_MINUTE)
    twin.step()
    twin._next = at("12:01")  # as after a commit whose answer never came
    twin.step()
    ours.step()

    assert world.due() == [("tick", "12:01")]


def test_retries_come_soon_at_first_and_every_few_seconds_later(world: CronFixture) -> None:
    line = world.line()
    line.is_cut = True
    scheduler = world.scheduler(EVERY_MINUTE, line=line)
    rests = [scheduler.step().total_seconds() for _ in range(20)]

    assert rests[0] <= 0.3
    assert all(5 <= rest <= 15 for rest in rests[12:])


def test_a_missing_schema_is_an_outage_and_not_the_end(world: CronFixture) -> None:
    recorded: list[Event] = []
    scheduler = world.scheduler(EVERY_MINUTE, recorded=recorded)
    scheduler.step()
    world.execute("alter schema graphile_worker rename to elsewhere")
    world.clock.now = at("12:01:01")
    scheduler.step()
    world.execute("alter schema elsewhere rename to graphile_worker")
    scheduler.step()

    assert world.due() == [("tick", "12:01")]
    assert next(str(event.error) for event in recorded if isinstance(event, CronFailed)).startswith("schema")


def test_a_single_deadlock_is_not_worth_a_warning(world: CronFixture) -> None:
    class Deadlocked(CuttableConnection):
        def __init__(self, database: Database) -> None:
            super().__init__(database)
            self.errors = 0

        @contextmanager
        def connection(self) -> Iterator[Any]:
            if self.errors:
                self.errors -= 1
                raise TransientDatabaseError("deadlock detected")
            with super().connection() as connection:
                yield connection

    recorded: list[Event] = []
    line = Deadlocked(world.database)
    scheduler = world.scheduler(EVERY_MINUTE, line=line, recorded=recorded)
    scheduler.step()
    for minute, errors in ((1, 1), (2, 3)):
        world.clock.now = at(f"12:0{minute}:01")
        line.errors = errors
        for _ in range(errors + 1):
            scheduler.step()
    line.close()

    assert [job.due for job in world.jobs()] == ["12:01", "12:02"]
    assert [event.attempts for event in recorded if isinstance(event, CronRestored)] == [3]
    assert names(recorded).count("CronFailed") == 1


def test_workers_whose_crontabs_differ_in_sequence_still_add_each_job_once(world: CronFixture) -> None:
    tasks = [f"task{number}" for number in range(30)]
    shuffled = [random.Random(seed).sample(tasks, len(tasks)) for seed in range(6)]
    workers = [world.scheduler([cron_item("* * * * *", task) for task in order]) for order in shuffled]

    def minutes(worker: Scheduler) -> None:
        while worker.step() < timedelta(seconds=20):
            pass  # a deadlock: the next step tries again

    for minute in range(4):
        world.clock.now = at(f"12:0{minute}:30")
        with ThreadPoolExecutor(len(workers)) as threads:
            list(threads.map(minutes, workers))

    assert len(world.jobs()) == len(set(world.due())) == 3 * 30


# -- what is rejected -------------------------------------------------------------------------------------------------


def test_an_item_the_database_rejects_does_not_hold_up_the_others(world: CronFixture) -> None:
    world.execute("alter table graphile_worker._private_jobs add constraint picky check (priority <> 99)")
    recorded: list[Event] = []
    scheduler = world.scheduler("* * * * * bad ?priority=99\n* * * * * good", recorded=recorded)
    scheduler.step()
    for minute in (1, 2):
        world.clock.now = at(f"12:0{minute}:01")
        scheduler.step()

    assert world.due() == [("good", "12:01"), ("good", "12:02")]
    assert [event.item.task for event in recorded if isinstance(event, CronItemFailed)] == ["bad", "bad"]


def test_a_plugin_may_change_skip_or_reject_a_job(world: CronFixture) -> None:
    def admit(spec: JobSpec) -> JobSpec | None:
        if spec.task == "rejected":
            raise JobRejectedError("not today")
        return None if spec.task == "skipped" else JobSpec(task="changed", payload=spec.payload, run_at=spec.run_at)

    recorded: list[Event] = []
    scheduler = world.scheduler("* * * * * rejected\n* * * * * skipped\n* * * * * kept", recorded=recorded, admit=admit)
    scheduler.step()
    world.clock.now = at("12:01:01")
    scheduler.step()
    world.scheduler("* * * * * rejected\n* * * * * skipped\n* * * * * kept").step()

    assert world.due() == [("changed", "12:01")]
    (scheduled,) = [event for event in recorded if isinstance(event, CronScheduled)]
    assert {key: job is not None for key, job in scheduled.jobs.items()} == {
        "rejected": False,
        "skipped": False,
        "kept": True,
    }


def test_two_items_with_one_identifier_are_rejected_before_anything_begins(world: CronFixture) -> None:
    with pytest.raises(CrontabError, match="found more than once: 'tick'"):
        world.scheduler([cron_item("* * * * *", "tick"), cron_item("0 * * * *", "tick")])


# -- items that change ------------------------------------------------------------------------------------------------


def test_items_from_a_function_may_come_and_go_while_running(world: CronFixture) -> None:
    items: list[CronItem] = [cron_item("* * * * *", "old")]
    scheduler = world.scheduler(lambda: list(items))
    scheduler.step()
    world.clock.now = at("12:01:10")
    scheduler.step()
    items[:] = [cron_item("* * * * *", "new")]
    world.clock.now = at("12:01:40")
    scheduler.step()
    assert world.known()["new"] == (at("12:01:40"), None)
    world.clock.now = at("12:02:01")
    scheduler.step()

    assert world.due() == [("old", "12:01"), ("new", "12:02")]


def test_a_new_item_is_not_scheduled_for_minutes_of_an_outage_before_it_came(world: CronFixture) -> None:
    items = [cron_item("* * * * *", "old")]
    line = world.line()
    scheduler = world.scheduler(lambda: list(items), line=line)
    scheduler.step()
    line.is_cut = True
    world.clock.now = at("12:02:01")
    scheduler.step()
    items.append(cron_item("* * * * *", "new"))
    world.clock.now = at("12:03:01")
    scheduler.step()
    line.is_cut = False
    scheduler.step()

    assert world.due() == [("old", "12:01"), ("old", "12:02"), ("old", "12:03"), ("new", "12:03")]


def test_minutes_of_an_outage_belong_to_the_items_that_were_in_force_then(world: CronFixture) -> None:
    items = [cron_item("*/2 * * * *", "changed"), cron_item("* * * * *", "removed")]
    line = world.line()
    scheduler = world.scheduler(lambda: list(items), line=line)
    scheduler.step()
    line.is_cut = True
    world.clock.now = at("12:03:20")
    scheduler.step()
    items[:] = [cron_item("*/5 * * * *", "changed")]
    world.clock.now = at("12:03:40")
    scheduler.step()
    world.clock.now = at("12:06:01")
    scheduler.step()
    line.is_cut = False
    for clock in ("12:06:02", "12:10:01"):
        world.clock.now = at(clock)
        scheduler.step()

    changed = [("changed", due) for due in ("12:02", "12:05", "12:10")]
    assert sorted(world.due()) == changed + [("removed", due) for due in ("12:01", "12:02")]


def test_an_item_whose_payload_changes_every_time_misses_no_minute(world: CronFixture) -> None:
    line = world.line()
    scheduler = world.scheduler(
        lambda: [cron_item("* * * * *", "tick", payload={"asked": world.clock().isoformat()})], line=line
    )
    scheduler.step()
    line.is_cut = True
    world.clock.now = at("12:02:01")
    scheduler.step()
    line.is_cut = False
    world.clock.now = at("12:03:01")
    scheduler.step()

    assert [job.due for job in world.jobs()] == ["12:01", "12:02", "12:03"]


def test_a_source_that_fails_leaves_the_items_in_force_and_is_reported_once(world: CronFixture) -> None:
    answers: list[list[CronItem] | Exception] = [
        [cron_item("* * * * *", "tick")],
        OSError("gone"),
        OSError("gone"),
        [cron_item("* * * * *", "tick"), cron_item("0 * * * *", "tick")],
    ]

    def source() -> list[CronItem]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    recorded: list[Event] = []
    scheduler = world.scheduler(source, recorded=recorded)
    for minute in range(4):
        world.clock.now = at(f"12:0{minute}:10")
        scheduler.step()

    assert world.due() == [("tick", "12:01"), ("tick", "12:02"), ("tick", "12:03")]
    rejected = [event.error for event in recorded if isinstance(event, CronItemsRejected)]
    assert [type(error) for error in rejected] == [OSError, CrontabError]


def test_without_items_the_database_is_left_alone(world: CronFixture) -> None:
    line = world.line()
    scheduler = world.scheduler("# nothing yet", line=line)
    for _ in range(5):
        scheduler.step()
        world.clock.advance(minutes=1)

    assert line.loans == 0


def test_between_the_minutes_the_database_is_left_alone(world: CronFixture) -> None:
    line = world.line()
    scheduler = world.scheduler("0 0 * * * daily", line=line)
    scheduler.step()
    before = line.loans
    for _ in range(10):
        world.clock.advance(seconds=30)
        scheduler.step()

    assert line.loans == before


# -- events -----------------------------------------------------------------------------------------------------------


def test_the_scheduler_reports_what_it_does_in_the_order_of_graphile_worker(world: CronFixture) -> None:
    world.know("tick", since=at("11:59"), last=at("11:59"))
    recorded: list[Event] = []
    scheduler = world.scheduler("* * * * * tick ?fill=1h", recorded=recorded)
    scheduler.step()
    world.clock.now = at("12:01:01")
    scheduler.step()

    kinds = [CronStarting, CronBackfill, CronScheduled, CronBackfilled, CronStarted, CronSchedule, CronScheduled]
    assert [type(event) for event in recorded] == kinds
    assert [event.name for event in recorded] == [
        "cron:starting",
        "cron:backfill",
        "cron:scheduled",
        "cron:backfilled",
        "cron:started",
        "cron:schedule",
        "cron:scheduled",
    ]


def test_each_item_is_reported_once_for_all_its_backfilled_runs(world: CronFixture) -> None:
    world.know("tick", since=at("11:00"), last=at("11:55"))
    world.know("tock", since=at("11:00"), last=at("11:58"))
    recorded: list[Event] = []
    scheduler = world.scheduler("* * * * * tick ?fill=1h\n* * * * * tock ?fill=1h", recorded=recorded)

    def reported() -> list[tuple[str, int, datetime, datetime]]:
        found = [event for event in recorded if isinstance(event, CronBackfilled)]
        return [(each.identifier, each.runs, each.first, each.last) for each in found]

    scheduler.step()
    assert reported() == [("tick", 5, at("11:56"), at("12:00")), ("tock", 2, at("11:59"), at("12:00"))]
    assert len([event for event in recorded if isinstance(event, CronScheduled)]) == 5
    recorded.clear()
    world.clock.now = at("12:04:01")
    scheduler.step()
    assert reported() == [("tick", 3, at("12:01"), at("12:03")), ("tock", 3, at("12:01"), at("12:03"))]


def test_the_second_finds_nothing_left(world: CronFixture) -> None:
    recorded: list[Event] = []
    first, second = world.scheduler(EVERY_MINUTE), world.scheduler(EVERY_MINUTE, recorded=recorded)
    first.step()
    second.step()
    world.clock.now = at("12:01:01")
    first.step()
    second.step()

    assert [event.jobs for event in recorded if isinstance(event, CronScheduled)] == [{}]


# -- the thread -------------------------------------------------------------------------------------------------------


def test_the_thread_schedules_when_woken_and_ends_when_asked(world: CronFixture) -> None:
    scheduler = world.scheduler(EVERY_MINUTE)
    scheduler.start()
    try:
        wait_until(world.known, what="the item to become known")
        world.clock.now = at("12:01:01")
        scheduler.wake()
        wait_until(world.jobs, what="the job of 12:01")
    finally:
        assert scheduler.stop(timedelta(seconds=60))

    assert world.due() == [("tick", "12:01")]


def test_a_stop_in_the_midst_of_catching_up_is_heeded(world: CronFixture) -> None:
    scheduler = world.scheduler(EVERY_MINUTE)
    scheduler.step()
    world.clock.advance(hours=10)
    scheduler.request_stop()
    scheduler.step()

    assert world.jobs() == []


# -- pauses -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pauses(world: CronFixture) -> Iterator[Pauses[Any]]:
    with Client(world.url) as client:
        yield client.pauses


def pause_until(world: CronFixture, pauses: Pauses[Any], item: str, until: datetime) -> None:
    """Pause an item until a time by the clock of the schedulers; the database's clock has passed it long ago."""
    pauses.pause(f"cron:{item}", until=timedelta(hours=1))
    world.execute("update graphile_worker._private_gw_pauses set until = %s where name = %s", until, item)


def test_a_paused_item_adds_no_job_in_any_worker_and_the_others_do(world: CronFixture, pauses: Pauses[Any]) -> None:
    recorded: list[Event] = []
    workers = [world.scheduler("* * * * * tick\n* * * * * tock", recorded=recorded) for _ in range(2)]
    for worker in workers:
        worker.step()
    result = pauses.pause("cron:tick", by="ada")
    for _ in range(2):
        world.clock.advance(minutes=1)
        for worker in workers:
            worker.step()

    assert (result.changed, result.unconfirmed) == (1, ())
    assert world.due() == [("tock", "12:01"), ("tock", "12:02")]
    assert world.known()["tick"] == (START, None)
    assert [list(each.jobs) for each in recorded if isinstance(each, CronScheduled)] == [["tock"], [], ["tock"], []]


def test_runs_of_a_pause_are_skipped_and_the_next_one_after_it_is_added(
    world: CronFixture, pauses: Pauses[Any]
) -> None:
    scheduler = world.scheduler("* * * * * tick ?fill=1d")
    scheduler.step()
    pause_until(world, pauses, "tick", at("12:03:00"))
    for _ in range(4):
        world.clock.advance(minutes=1)
        scheduler.step()

    assert world.due() == [("tick", "12:03"), ("tick", "12:04")]


@pytest.mark.parametrize("starts", ["12:02:30", "12:05:30"], ids=["during the pause", "after it"])
def test_a_worker_that_starts_does_not_make_up_for_a_pause(
    world: CronFixture, pauses: Pauses[Any], starts: str
) -> None:
    world.know("tick", since=at("11:00"), last=at("11:58"))
    pause_until(world, pauses, "tick", at("12:04:10"))
    world.clock = ManualClock(at(starts))
    scheduler = world.scheduler("* * * * * tick ?fill=1d")
    scheduler.step()
    started_with = world.due()
    world.clock.now = at("12:06:00")
    scheduler.step()

    assert started_with == ([("tick", "12:05")] if starts == "12:05:30" else [])
    assert world.due() == [("tick", "12:05"), ("tick", "12:06")]


def test_a_resumed_item_does_not_make_up_for_its_pause(world: CronFixture, pauses: Pauses[Any]) -> None:
    now = datetime.now(UTC)
    world.know("tick", since=now - timedelta(days=2), last=now - timedelta(hours=1))
    world.clock = ManualClock(now + timedelta(minutes=10))
    pauses.pause("cron:tick")
    world.scheduler("* * * * * tick ?fill=1d").catch_up()
    added_during = world.jobs()
    resumed = pauses.resume("cron:tick")
    again = pauses.resume("cron:tick")
    added = world.scheduler("* * * * * tick ?fill=1d").catch_up()

    assert added_during == []
    assert ([str(each) for each in resumed.targets], again.changed) == (["cron:tick"], 0)
    assert 1 <= added <= 10  # the minutes that began after the pause
    assert pauses.list() == []


def test_an_item_that_is_paused_again_keeps_its_first_start(world: CronFixture, pauses: Pauses[Any]) -> None:
    pauses.pause("cron:tick", by="ada")
    [first] = pauses.list()
    pauses.pause("cron:tick", by="bob", until=timedelta(hours=1))
    [second] = pauses.list()

    assert (second.by, second.since) == ("bob", first.since)
    pauses.resume("cron:tick")
    pauses.pause("cron:tick", by="eve")
    assert pauses.list()[0].since > first.since


def test_the_list_of_items_has_their_pauses(world: CronFixture, pauses: Pauses[Any]) -> None:
    world.know("tick", since=at("11:00"), last=at("11:58"))
    world.know("tock", since=at("11:00"))
    world.know("done", since=at("11:00"))
    pauses.pause("cron:tick", reason="closing")
    pause_until(world, pauses, "done", at("11:30"))
    with Client(world.url) as client:
        known = {each.identifier: each for each in client.cron.list()}

    assert (known["tick"].pause, known["tock"].pause) == (pauses.list()[0], None)
    assert known["tick"].missed_from == datetime.max.replace(tzinfo=UTC)
    assert known["done"].missed_from == at("11:30")
    assert known["tock"].missed_from == at("11:00")
