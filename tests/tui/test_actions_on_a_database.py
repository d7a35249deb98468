"""The console's reports match the rows; the commands it copies work; jobs it retries run again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from console_fixture import queue_source
from psycopg.rows import dict_row
from support.database_proxy import DatabaseProxy, Loss

from gw_core import Client, Job, JobSpec, Selection, __version__
from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import FoundJob, operator_name
from gw_tui.actions import Action, Complete, Fail, RemoveByKey, Reschedule, Restore, Result, Retry

pytestmark = pytest.mark.once

ROUNDS = 20
SEED = 20260301

Row = dict[str, Any]
Rows = dict[int, Row]

FILL = """
update _private_jobs set attempts = max_attempts, last_error = 'refused' where id % 4 = 0;
update _private_jobs set attempts = 2, last_error = 'slow', run_at = now() + interval '1 hour' where id % 4 = 1;
update _private_jobs set run_at = now() + interval '1 day' where id % 8 = 2;
update _private_jobs set locked_at = now(), locked_by = 'worker-' || id % 3 where id % 10 = 3;
"""
# What may happen between the query and the action: a worker takes a job, another session changes one, one ends.
CONCURRENT_CHANGES = (
    "update _private_jobs set locked_at = now(), locked_by = 'quick' where id = %s and locked_at is null",
    "update _private_jobs set attempts = least(attempts + 1, max_attempts - 1), updated_at = now() where id = %s",
    "delete from _private_jobs where id = %s",
)


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    """A queue with jobs in every state."""
    with Client(database_url) as client:
        client.add_many(
            [
                JobSpec(
                    task=f"task_{n % 3}",
                    payload={"n": n},
                    queue_name=f"q{n % 5}" if n % 3 == 0 else None,
                    job_key=f"k{n}" if n % 7 == 0 else None,
                    flags=["big"] if n % 6 == 0 else [],
                )
                for n in range(200)
            ]
        )
    with psycopg.connect(database_url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        hands.execute(FILL)
    return database_url


@pytest.fixture
def source(url: str) -> Iterator[Any]:
    found = queue_source(url)
    yield found
    found.close()


def table(url: str) -> Rows:
    with psycopg.connect(url, row_factory=dict_row) as hands:
        rows = hands.execute(
            "select jobs.*, payload::text as payload, identifier from graphile_worker._private_jobs as jobs "
            "join graphile_worker._private_tasks as tasks on tasks.id = task_id"
        ).fetchall()
    return {row["id"]: row for row in rows}


# -- what must be so after each action -------------------------------------------------------------------------------


def retried(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["is_available"]
    assert after["attempts"] < after["max_attempts"]
    assert after["run_at"] <= after["updated_at"]
    unchanged(before, after, "attempts", "run_at", "updated_at", "is_available", "revision", "last_error")


def rescheduled(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["priority"] == 7
    assert after["run_at"] > before["updated_at"]
    unchanged(before, after, "priority", "run_at", "updated_at", "revision")


def failed(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["attempts"] == after["max_attempts"]
    assert not after["is_available"]
    assert after["last_error"] == "enough"
    unchanged(before, after, "attempts", "updated_at", "is_available", "revision", "last_error")


def removed(_: Row, after: Row | None) -> None:
    assert after is None


def unchanged(before: Row, after: Row | None, *but: str) -> None:
    assert after is not None
    assert {name: value for name, value in after.items() if name not in but} == {
        name: value for name, value in before.items() if name not in but
    }


Check = Callable[[Row, Row | None], None]
KINDS: Sequence[tuple[Callable[[Sequence[Job]], Action], Check]] = (
    (lambda jobs: Retry(jobs=jobs), retried),
    (lambda jobs: Reschedule(jobs=jobs, run_at=timedelta(hours=2), priority=7), rescheduled),
    (lambda jobs: Fail(jobs=jobs, reason="enough"), failed),
    (lambda jobs: Complete(jobs=jobs), removed),
)


def test_twenty_random_acts_did_to_every_row_what_they_say_and_nothing_to_any_other(url: str, source: Any) -> None:
    dice = random.Random(SEED)
    reasons: set[str] = set()
    for _ in range(ROUNDS):
        page = source.page(Selection(), limit=200).jobs
        chosen = dice.sample(page, min(12, len(page)))
        disturb(url, dice, chosen)
        make, check = dice.choice(KINDS)
        before = table(url)

        result = next(source.run(make([each.job for each in chosen])))

        after = table(url)
        done, skipped = {int(each) for each in result.done}, {int(each.what) for each in result.skipped}
        assert done | skipped == {each.job.id for each in chosen}
        assert not done & skipped
        for job_id in done:
            check(before[job_id], after.get(job_id))
        for job_id in before.keys() - done:
            unchanged(before[job_id], after.get(job_id))
        assert after.keys() <= before.keys()
        reasons |= {each.why.split(" (")[0].split(";")[0].split(" by ")[0] for each in result.skipped}
    assert {"locked", "changed", "gone"} <= reasons


def disturb(url: str, dice: random.Random, jobs: Sequence[FoundJob]) -> None:
    with psycopg.connect(url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        for statement, found in zip(CONCURRENT_CHANGES, dice.sample(jobs, len(CONCURRENT_CHANGES)), strict=True):
            hands.execute(statement, (found.job.id,))


def test_removed_jobs_come_back_with_everything_that_mattered(url: str, source: Any) -> None:
    before = table(url)
    page = [each for each in source.page(Selection(), limit=200).jobs if each.job.locked_by is None]

    gone = next(source.run(Complete(jobs=[each.job for each in page])))
    back = next(source.run(Restore(jobs=gone.removed)))

    after = table(url)
    assert len(back.done) == len(gone.done) == len(page)
    for old, new in zip(gone.done, back.done, strict=True):
        kept = ("identifier", "payload", "key", "flags", "priority", "run_at", "job_queue_id")
        assert {name: after[int(new)][name] for name in kept} == {name: before[int(old)][name] for name in kept}


@pytest.mark.parametrize("committed", [True, False])
def test_jobs_come_back_also_if_the_answer_to_their_deletion_was_lost(url: str, committed: bool) -> None:
    before = table(url)
    proxy = DatabaseProxy(url)
    source = queue_source(proxy.url)
    with Client(url) as client:
        page = [each.job for each in client.jobs.list("-state:running", limit=200).jobs]
        [taken, *deleted] = page
        client.jobs.complete([taken.id], by="another operator")
    loss = proxy.lose_next(f"gw-tui/{__version__} {operator_name()}", mark="COMMIT", committed=committed)
    try:
        gone = next(source.run(Complete(jobs=page)))
        back = next(source.run(Restore(jobs=gone.removed)))
    finally:
        source.close()
        proxy.close()

    assert loss.happened.is_set()
    assert (sorted(map(int, gone.done)), [each.what for each in gone.skipped]) == (
        [each.id for each in deleted],
        [str(taken.id)],
    )
    payloads = [before[each.id]["payload"] for each in deleted]
    after = table(url)
    assert [after[int(new)]["payload"] for new in back.done] == payloads
    assert len(after) == len(before) - 1


def complete(found: FoundJob) -> Action:
    return Complete(jobs=[found.job])


def remove_by_key(found: FoundJob) -> Action:
    return RemoveByKey(key=found.job.job_key or "", job=found.job)


def kinds_of(kind: type[Action]) -> Iterator[type[Action]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from kinds_of(narrower)


UNDOABLE = [kind for kind in kinds_of(Action) if kind.removes]
"""The actions that `U` takes back."""
UNDONE = {Complete: complete, RemoveByKey: remove_by_key}


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("lost", ["removal", "restore"])
@pytest.mark.parametrize("kind", UNDOABLE)
def test_a_job_comes_back_once_if_an_answer_was_lost(kind: type[Action], lost: str, committed: bool, url: str) -> None:
    before = table(url)
    proxy = DatabaseProxy(url)
    source = queue_source(proxy.url)
    [found] = source.page(Selection.of(job_key="k14"), limit=1).jobs

    def lose() -> Loss:
        return proxy.lose_next(f"gw-tui/{__version__} {operator_name()}", mark="COMMIT", committed=committed)

    try:
        loss = lose() if lost == "removal" else None
        gone = next(source.run(UNDONE[kind](found)))
        assert found.job.id not in table(url)
        loss = loss or lose()
        back = restored(source, gone)
    finally:
        source.close()
        proxy.close()

    assert loss.happened.is_set()
    assert (gone.done, gone.skipped) == ((str(found.job.id),), ())
    after = table(url)
    assert len(after) == len(before)
    assert [after[int(new)]["payload"] for new in back.done] == [before[found.job.id]["payload"]]


def restored(source: Any, gone: Result) -> Result:
    """Press U, and U again after a failure, as the console offers."""
    for _ in range(2):
        try:
            for result in source.run(Restore(jobs=gone.removed)):
                if result.done:
                    return result
        except DatabaseUnavailableError:
            continue
    raise AssertionError("nothing came back")


def test_a_running_job_whose_removal_lost_its_answer_is_reported_as_running(url: str) -> None:
    proxy = DatabaseProxy(url)
    source = queue_source(proxy.url)
    found, *_ = [each for each in source.page(Selection.of(state="running"), limit=200).jobs if each.job.job_key]
    proxy.lose_next(f"gw-tui/{__version__} {operator_name()}", mark="COMMIT")
    try:
        result = next(source.run(remove_by_key(found)))
    finally:
        source.close()
        proxy.close()

    assert "lost its key" in result.message
    assert result.removed == ()
    assert table(url)[found.job.id]["key"] is None


# -- what is copied can be typed -------------------------------------------------------------------------------------


# -- what is retried runs again --------------------------------------------------------------------------------------
