"""Jobs that wait for jobs: each starts once, after all that it waits for, to any depth."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import NEVER, QueueFixture, RunRecord
from support.waiting import wait_until

from gw_core import AsyncClient, Client, GiveUp, Job, JobContext, JobSpec, JobState, TaskRegistry
from gw_core.errors import GraphileWorkerError, InvalidInputError, InvalidJobError, ResultUnavailableError
from gw_core.testing import drain


def add(site: QueueFixture, n: int, *after: Job | int, **options: Any) -> Job:
    return site.client.add("work", {"n": n}, after=list(after), **options)


def waiting(site: QueueFixture) -> list[int]:
    return [each.job.id for each in site.client.jobs.list("state:waiting").jobs]


def fail(payload: Any) -> None:
    if payload["n"] < 0:
        raise GiveUp("hopeless")


# -- shapes --------------------------------------------------------------------------------------------------------


def test_a_chain_runs_in_its_order(site: QueueFixture) -> None:
    ran = RunRecord()
    last = site.client.add("work", {"n": 0})
    for n in range(1, 20):
        last = add(site, n, last)
    assert len(waiting(site)) == 19

    assert site.run_once({"work": ran}).completed == 20
    assert ran.entries == list(range(20))


def test_a_job_waits_for_several_and_several_for_one(site: QueueFixture) -> None:
    ran = RunRecord()
    first = site.client.add("work", {"n": 0})
    branches = [add(site, n, first) for n in (1, 2, 3)]
    add(site, 4, *branches)

    assert site.run_once({"work": ran}).completed == 5
    assert (ran.entries[0], sorted(ran.entries[1:4]), ran.entries[4]) == (0, [1, 2, 3], 4)
    assert (site.jobs(), site.run("select * from _private_gw_edges")) == ([], [])


def test_two_workers_start_each_job_of_many_shapes_once_and_after_its_dependencies(site: QueueFixture) -> None:
    ended: list[int] = []
    started: list[int] = []
    needs: dict[int, list[int]] = {}

    def work(payload: Any, context: JobContext) -> None:
        assert set(needs[payload["n"]]) <= set(ended)
        started.append(payload["n"])
        ended.append(payload["n"])

    with psycopg.connect(site.url) as connection:
        ids: list[int] = []
        for n in range(300):
            needs[n] = [each for each in {(n * 7) % (n or 1), n // 2, n - 1} if each < n and n % 5]
            ids.append(site.client.add("work", {"n": n}, after=[ids[each] for each in needs[n]], conn=connection).id)
    with site.running({"work": work}), site.running({"work": work}):
        wait_until(lambda: len(ended) >= 300, what="every job")
        wait_until(lambda: site.jobs() == [], what="the outcomes")
    assert sorted(started) == list(range(300))


def test_a_waiting_job_belongs_to_the_callers_transaction(site: QueueFixture) -> None:
    with psycopg.connect(site.url) as conn:
        first = site.client.add("work", conn=conn)
        site.client.add("work", after=[first], conn=conn)
        conn.rollback()
    assert (site.jobs(), site.run("select * from _private_gw_waiting")) == ([], [])


def test_an_asynchronous_client_adds_jobs_that_wait(site: QueueFixture) -> None:
    ran = RunRecord()

    async def add_both() -> None:
        async with AsyncClient(site.url) as client:
            first = await client.add("work", {"n": 1})
            [second] = await client.add_many([JobSpec(task="work", payload={"n": 2}, after=[first])])
            assert [each.id for each in await client.groups.list(second)] == [second]

    asyncio.run(add_both())
    assert site.run_once({"work": ran}).completed == 2
    assert ran.entries == [1, 2]


# -- jobs that were there before -----------------------------------------------------------------------------------


def test_a_job_can_wait_for_one_that_has_ended(site: QueueFixture) -> None:
    first = site.client.add("work", {"n": 1})
    site.run_once({"work": fail})
    later = add(site, 2, first)
    assert (later.run_at <= site.now(), waiting(site)) == (True, [])


def test_a_job_can_wait_for_one_that_runs_already(site: QueueFixture) -> None:
    gate, ran = site.gate(), RunRecord()
    first = site.client.add("slow")
    with site.running({"slow": gate, "work": ran}, poll_interval=NEVER):
        gate.wait_for(1)
        add(site, 2, first)
        gate.open()
        wait_until(lambda: ran.entries == [2], what="the second job")


@pytest.mark.parametrize("history", [None, timedelta(days=1)], ids=["without history", "with history"])
@pytest.mark.parametrize("fails", [False, True], ids=["completes", "fails"])
def test_a_job_can_wait_for_one_whose_end_is_being_recorded(
    site: QueueFixture, fails: bool, history: timedelta | None
) -> None:
    """The adding transaction has the job's row until then, so the worker can record the end only after it."""

    def end(payload: object) -> None:
        gate(payload)
        ended.set()
        if fails:
            raise GiveUp("hopeless")

    gate, ran, ended = site.gate(), RunRecord(), threading.Event()
    first = site.client.add("slow")
    with site.running({"slow": end, "work": ran}, poll_interval=NEVER, history=history):
        gate.wait_for(1)
        with psycopg.connect(site.url) as conn:
            add(site, 2, first, on_failure="run", conn=conn)
            gate.open()
            assert ended.wait(60)
        wait_until(lambda: ran.entries == [2], what="the second job")


@pytest.mark.parametrize(("policy", "state"), [("hold", "waiting"), ("cancel", None), ("run", "ready")])
def test_a_job_can_wait_for_one_that_has_failed(site: QueueFixture, policy: str, state: str | None) -> None:
    first = site.client.add("work", {"n": -1})
    site.run_once({"work": fail})
    later = add(site, 2, first, on_failure=policy)
    report = site.client.jobs.show(later.id)
    assert (None if report is None else report.state) == state


def test_a_job_that_is_settled_while_another_begins_to_wait_is_not_missed(site: QueueFixture) -> None:
    """Whichever of the two commits first, the second job runs without waiting for a check."""
    for _ in range(30):
        first = site.client.add("work", {"n": 1})
        site.client.add("other", after=[first])
        thread = threading.Thread(target=lambda job_id=first.id: site.client.jobs.complete([job_id]))
        thread.start()
        second = add(site, 2, first)
        thread.join()
        [job] = site.run("select run_at <= now() as is_due from _private_jobs where id = %s", second.id)
        assert job["is_due"]


# -- failures and cancelling ---------------------------------------------------------------------------------------


def test_a_dropped_job_drops_those_that_wait_for_it_unless_they_run_on_failure(site: QueueFixture) -> None:
    ran = RunRecord()
    first = site.client.add("work", {"n": -1})
    second = add(site, 2, first, on_failure="cancel")
    third = add(site, 3, second)
    add(site, 4, third)
    site.client.add("other", {"n": 5}, after=[second, third], on_failure="run")

    site.run_once({"work": fail, "other": ran})
    assert ran.entries == [5]
    assert [job["id"] for job in site.jobs()] == [first.id]
    assert site.run("select * from _private_gw_edges") == []


def test_a_job_that_holds_goes_on_when_the_failed_one_is_retried(site: QueueFixture) -> None:
    first = site.client.add("work", {"n": -1})
    second = add(site, 2, first)
    site.run_once({"work": fail})
    assert waiting(site) == [second.id]
    site.client.jobs.retry([first.id])
    assert site.run_once({"work": lambda payload: None}).completed == 2


@pytest.mark.parametrize("kind", ["groups.cancel", "jobs.cancel"])
def test_a_waiting_job_is_cancelled_with_those_that_wait_for_it(site: QueueFixture, kind: str) -> None:
    first = site.client.add("work", {"n": 1})
    second = add(site, 2, first)
    add(site, 3, second)
    if kind == "groups.cancel":
        assert site.client.groups.cancel(second.id) == (second.id,)
    else:
        [cancelled] = site.client.jobs.cancel([second.id])
        assert cancelled.result == "cancelled"
    assert [job["id"] for job in site.jobs()] == [first.id]


def test_a_selection_cancels_waiting_jobs_if_it_names_their_state(site: QueueFixture) -> None:
    first = site.client.add("work", {"n": 1})
    second, third = add(site, 2, first), add(site, 3, first)
    cancel = site.client.jobs.cancel

    assert (cancel("task:work"), cancel("state:ready task:work")) == ([], [])
    assert [(each.id, each.result) for each in cancel("state:running,waiting task:work")] == [
        (second.id, "cancelled"),
        (third.id, "cancelled"),
    ]
    assert [job["id"] for job in site.jobs()] == [first.id]


def test_a_waiting_job_that_an_operator_completes_counts_as_ended(site: QueueFixture) -> None:
    first = site.client.add("slow")
    second = add(site, 2, first)
    third = add(site, 3, second)
    site.client.jobs.complete([second.id])
    assert (waiting(site), site.client.jobs.show(third.id).state) == ([], JobState.READY)  # type: ignore[union-attr]


# -- waiting jobs are jobs -----------------------------------------------------------------------------------------


def test_a_waiting_job_is_rescheduled_and_waits_on(site: QueueFixture) -> None:
    first = site.client.add("slow")
    second = add(site, 2, first, run_at=timedelta(hours=5))
    site.client.jobs.reschedule([second.id], run_at=timedelta(hours=1), priority=7)
    assert waiting(site) == [second.id]
    site.client.jobs.complete([first.id])
    [job] = site.run(
        "select priority, run_at between now() + interval '50 minutes' and now() + interval '70 minutes' as is_later"
        " from _private_jobs"
    )
    assert (job["priority"], job["is_later"]) == (7, True)


def test_adding_again_under_the_key_replaces_the_job_and_what_it_waits_for(site: QueueFixture) -> None:
    first = site.client.add("slow")
    waits = add(site, 2, first, job_key="k")
    again = site.client.add("work", {"n": 3}, job_key="k")
    assert (again.id, waiting(site)) == (waits.id, [])
    site.client.jobs.complete([first.id])
    [job] = site.run("select run_at <= now() as is_due from _private_jobs")
    assert job["is_due"]


@pytest.mark.parametrize(
    "replace",
    [
        lambda site: site.client.add("work", {"n": 2}, job_key="k", flags=["mine"]),
        lambda site: site.client.add("work", {"n": 2}, job_key="k", job_key_mode="preserve_run_at"),
        lambda site: site.client.add_many([JobSpec(task="work", payload={"n": 2}, job_key="k")]),
        lambda site: site.run("select add_job('work', '{\"n\": 2}', job_key => 'k', flags => '{mine}')"),
    ],
    ids=["add", "keeping the time", "add_many", "SQL"],
)
def test_a_job_that_waits_follows_one_that_was_replaced(site: QueueFixture, replace: Callable[..., object]) -> None:
    ran: list[object] = []
    first = site.client.add("work", {"n": 1}, job_key="k")
    site.client.add("work", {"n": 3}, after=[first])
    replace(site)

    site.run_once({"work": lambda payload: ran.append(payload["n"])})

    assert ran == [2, 3]


def test_no_job_can_wait_for_itself(site: QueueFixture) -> None:
    first = site.client.add("work", {"n": 1}, job_key="first")
    second = add(site, 2, first)
    third = add(site, 3, second)
    for after in (first, second, third):
        with pytest.raises(GraphileWorkerError, match=f"job {first.id} cannot wait for itself, not even through other"):
            add(site, 4, after, job_key="first")
    assert site.run_once({"work": fail}).completed == 3


def a_drain(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.register("other", lambda payload: None)
    tasks.register("work", lambda payload: pytest.fail("a waiting job was started"))
    drain(site.hands, tasks=tasks, with_scheduled=True)


def a_run(site: QueueFixture) -> None:
    site.run_once({"other": lambda payload: None, "work": lambda payload: pytest.fail("a waiting job was started")})


@pytest.mark.parametrize("run", [a_drain, a_run])
def test_nothing_starts_a_waiting_job(site: QueueFixture, run: Callable[[QueueFixture], None]) -> None:
    waits = add(site, 2, site.client.add("slow"))
    site.client.add("other", run_at=timedelta(0))
    run(site)
    assert waiting(site) == [waits.id]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": 5}, "after takes a list of jobs or of their ids; put the one job into a list"),
        ({"after": ["x"]}, "'x' is not the id of a job; ids are whole numbers from 1"),
        ({"after": [1], "on_failure": "stop"}, "'stop' is not a value of on_failure; give one of hold, cancel, run"),
        ({"on_failure": "run"}, "on_failure was given without jobs to wait for; give after as well"),
        (
            {"after": [1], "job_key": "k", "job_key_mode": "unsafe_dedupe"},
            "a job that waits for others takes the job key mode 'replace', not 'unsafe_dedupe'",
        ),
    ],
)
def test_wrong_input_gets_one_sentence(site: QueueFixture, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError) as raised:
        site.client.add("work", **options)
    assert str(raised.value) == message


def test_a_group_takes_no_last_job_that_waits_for_others(site: QueueFixture) -> None:
    with pytest.raises(InvalidInputError, match="the last job of a group waits for its members; leave out after"):
        site.client.groups.add([JobSpec(task="work")], then=JobSpec(task="last", after=[1]))


# -- results -------------------------------------------------------------------------------------------------------


def test_a_job_gets_the_results_of_those_it_waited_for(site: QueueFixture) -> None:
    found: list[object] = []
    tasks = TaskRegistry()

    @tasks.task("square", result=True)
    def square(payload: int) -> int:
        if payload < 0:
            raise GiveUp("negative")
        return payload * payload

    @tasks.task("sum")
    def add_up(payload: object, context: JobContext) -> None:
        found.append(context.results())

    members = [site.client.add("square", n) for n in (3, -1, 2)]
    site.client.add("sum", after=members, on_failure="run")
    site.client.add("sum")
    assert site.run_once(tasks).completed == 4
    assert sorted(found, key=str) == [[9, None, 4], []]


@pytest.mark.parametrize(
    "ends",
    [lambda client, job: client.remove("b"), lambda client, job: client.jobs.complete([job.id])],
    ids=["removed", "completed"],
)
def test_a_job_that_gw_removed_has_no_result(site: QueueFixture, ends: Callable[[Client, Job], object]) -> None:
    found: list[object] = []
    tasks = TaskRegistry()
    tasks.register("sum", lambda payload, context: found.append(context.results()))
    tasks.task("square", result=True)(lambda payload: payload * payload)
    members = [site.client.add("square", 3), site.client.add("square", 2, job_key="b", run_at=timedelta(hours=1))]
    site.client.add("sum", after=members)
    site.run_once(tasks)

    ends(site.client, members[1])
    site.run_once(tasks)
    assert found == [[9, None]]


def test_a_result_that_is_not_kept_is_an_error(site: QueueFixture) -> None:
    errors: list[str] = []

    def last(payload: object, context: JobContext) -> None:
        try:
            context.results()
        except ResultUnavailableError as error:
            errors.append(str(error))

    first = site.client.add("work", {"n": 1})
    site.client.add("last", after=[first])
    site.run_once({"work": fail, "last": last})
    assert errors == [
        f"job {first.id} has no result: its task keeps no results, or history no longer has them; "
        "declare it with result=True"
    ]


def test_a_function_of_the_shared_schema_starts_a_waiting_job_if_it_is_given_a_time(site: QueueFixture) -> None:
    """The function is upstream's and ignores `after`, as the guide on compatibility describes."""
    first = site.client.add("work", {"n": 1}, run_at=timedelta(hours=1))
    second = add(site, 2, first)
    ran = RunRecord()

    site.run("select from reschedule_jobs(array[%s], priority => 5)", second.id)
    assert site.run_once({"work": ran}).completed == 0
    assert waiting(site) == [second.id]

    site.run("select from reschedule_jobs(array[%s], run_at => now())", second.id)
    assert site.run_once({"work": ran}).completed == 1
    site.run("select from reschedule_jobs(array[%s], run_at => now())", first.id)
    assert site.run_once({"work": ran}).completed == 1

    assert ran.entries == [2, 1], "each ran once"
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    site.value("select _private_gw_end_members(null)")
    assert (site.jobs(), site.run("select job_id from _private_gw_waiting")) == ([], [])


# -- a job that waits no longer ------------------------------------------------------------------------------------


def added_again(site: QueueFixture, job: Job) -> None:
    site.client.add("work", {"n": 2}, job_key="b", run_at=timedelta(hours=1))


def rescheduled_by_sql(site: QueueFixture, job: Job) -> None:
    site.run("select from reschedule_jobs(array[%s], run_at => now() + interval '1 hour')", job.id)


def the_other_fails(site: QueueFixture, first: Job, job: Job) -> None:
    site.client.jobs.fail([first.id])


def it_is_cancelled(site: QueueFixture, first: Job, job: Job) -> None:
    assert site.client.groups.cancel(job.id) == ()


def it_is_cancelled_as_a_job(site: QueueFixture, first: Job, job: Job) -> None:
    [cancelled] = site.client.jobs.cancel([job.id])
    assert cancelled.result == "not_running"


@pytest.mark.parametrize("policy", ["hold", "cancel", "run"])
@pytest.mark.parametrize("ends", [the_other_fails, it_is_cancelled, it_is_cancelled_as_a_job])
@pytest.mark.parametrize("stops_waiting", [added_again, rescheduled_by_sql])
def test_a_job_that_waits_no_longer_is_not_dropped_nor_are_those_that_wait_for_it(
    site: QueueFixture,
    stops_waiting: Callable[[QueueFixture, Job], None],
    ends: Callable[[QueueFixture, Job, Job], None],
    policy: str,
) -> None:
    first = site.client.add("work", {"n": 1}, run_at=timedelta(hours=1))
    job = add(site, 2, first, on_failure="cancel", job_key="b")
    last = add(site, 3, job, on_failure=policy)
    stops_waiting(site, job)

    assert [each.id for each in site.client.groups.list()] == [last.id]
    ends(site, first, job)
    assert waiting(site) == [last.id]
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    site.value("select _private_gw_end_members(null)")
    assert site.client.counts().waiting_groups == 1

    ran = RunRecord()
    site.client.jobs.reschedule([job.id], run_at=timedelta(0))
    site.run_once({"work": ran})
    assert ran.entries == [2, 3]


GONE: dict[str, Callable[[QueueFixture, Job], object]] = {
    "removed": lambda site, job: site.client.remove("b"),
    "completed": lambda site, job: site.client.jobs.complete([job.id]),
    "deleted by SQL": lambda site, job: site.run("delete from _private_jobs where id = %s", job.id),
}


@pytest.mark.parametrize("goes", GONE.values(), ids=GONE)
def test_nothing_stays_of_a_waiting_job_that_is_gone(
    site: QueueFixture, goes: Callable[[QueueFixture, Job], object]
) -> None:
    first = site.client.add("work", {"n": 1}, run_at=timedelta(hours=1))
    goes(site, add(site, 2, first, job_key="b"))
    site.value("select _private_gw_end_members(null)")

    assert site.run("select job_id from _private_gw_edges union all select job_id from _private_gw_waiting") == []
