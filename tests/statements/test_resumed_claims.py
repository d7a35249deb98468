"""Claims that follow each other in a long backlog go on where the last one stopped, and leave nothing behind."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from gw_core import Job
from gw_core.postgres.claim_positions import GOES_ON_FOR, LEAST_TO_GO_ON, ResumePoint
from gw_core.postgres.statements import numbered_query
from statements.statement_fixture import HOUR, OURS, THEIRS, Queue

MANY = LEAST_TO_GO_ON


class Lasting(ResumePoint):
    """A trail whose time is not over before the test says so."""

    is_over = False

    def goes_on(self, now: float) -> bool:
        return not self.is_over and super().goes_on(self._until - GOES_ON_FOR)


@pytest.fixture
def trail(queue: Queue) -> Lasting:
    queue.store._trail = trail = Lasting()
    return trail


def add_many(queue: Queue, count: int, *, age: int = 60, priority: int = 0) -> None:
    queue.store.register_tasks(["mail"])
    queue.run(
        "insert into _private_jobs (task_id, priority, run_at) "
        "select id, %s, now() - make_interval(secs => %s) + n * interval '1 ms' "
        "from _private_tasks, generate_series(1, %s) as n",
        priority,
        age,
        count,
    )


def claim(queue: Queue, limit: int = MANY) -> list[Job]:
    return queue.claim(limit=limit)


def test_a_claim_goes_on_behind_the_jobs_claimed_before(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 3 * MANY)
    behind = claim(queue)[:-1]
    queue.give_back(*behind)

    assert {job.id for job in behind}.isdisjoint(job.id for job in claim(queue))


def test_what_was_left_behind_is_found_when_the_time_is_over(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 3 * MANY)
    behind = claim(queue)[:-1]
    queue.give_back(*behind)
    claim(queue)
    trail.is_over = True

    assert [job.id for job in claim(queue)][: MANY - 1] == [job.id for job in behind]


def test_what_was_left_behind_is_found_at_once_when_nothing_else_is_left(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 2 * MANY)
    behind = claim(queue)[:-1]
    queue.give_back(*behind)

    assert len(claim(queue)) == MANY
    assert [job.id for job in claim(queue)] == [job.id for job in behind]


def test_a_claim_takes_from_behind_only_what_there_is_too_little_of_ahead(queue: Queue, trail: Lasting) -> None:
    add_many(queue, MANY + 10)
    behind = claim(queue)[:-1]
    queue.give_back(*behind)

    assert [job.id for job in claim(queue)] == [job.id for job in behind[: MANY - 10]] + queue.ids()[MANY:]


def test_an_urgent_job_is_found_at_once_whatever_its_age(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 3 * MANY)
    claim(queue)
    urgent = queue.add(priority=-1, run_at=-HOUR)

    assert claim(queue)[0].id == urgent


def test_a_less_urgent_job_does_not_overtake(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 2 * MANY)
    add_many(queue, MANY, age=3600, priority=1)

    assert [job.priority for _ in range(3) for job in claim(queue)] == [0] * 2 * MANY + [1] * MANY


def test_a_job_in_a_named_queue_is_found_at_once(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 3 * MANY)
    claim(queue)
    queued = queue.add(queue_name="q", run_at=-HOUR)

    assert claim(queue)[0].id == queued


def test_two_pools_that_go_on_side_by_side_take_every_job_once(queue: Queue, trail: Lasting) -> None:
    add_many(queue, 6 * MANY)

    taken = [job.id for pool in [OURS, THEIRS] * 4 for job in queue.claim(worker_id=pool, limit=MANY)]

    assert sorted(taken) == queue.ids()


def test_small_claims_begin_at_the_very_beginning(queue: Queue, trail: Lasting) -> None:
    add_many(queue, MANY)
    claim(queue, MANY - 1)

    assert not trail.goes_on(0.0)


def test_a_trail_lasts_as_long_as_the_window_from_its_beginning() -> None:
    trail = ResumePoint()
    trail.begin(100.0)
    trail.note([(0, 1.0), (0, 2.0), (3, 5.0)])
    trail.note([(0, 4.0)])

    assert trail.goes_on(100.0 + GOES_ON_FOR - 0.001)
    assert not trail.goes_on(100.0 + GOES_ON_FOR)
    assert trail.columns() == ([0, 3], [4.0, 5.0])


def test_without_a_job_found_there_is_nothing_to_go_on_from() -> None:
    trail = ResumePoint()
    trail.begin(100.0)

    assert not trail.goes_on(100.0)


@pytest.mark.once
def test_going_on_reads_none_of_the_rows_already_done(queue: Queue, trail: Lasting) -> None:
    queue.run("alter table _private_jobs set (autovacuum_enabled = off)")
    add_many(queue, 20_000)
    queue.complete(*claim(queue, 15_000))
    levels, since = trail.columns()

    assert _rows_fetched(queue, "claim_unqueued_jobs_resumed", unqueued_levels=levels, unqueued_since=since) < 100
    assert _rows_fetched(queue, "claim_unqueued_jobs") > 10_000


def _rows_fetched(queue: Queue, name: str, **values: Any) -> int:
    """How many rows of the table were looked at to learn from which index entry to begin."""
    text, names = numbered_query(name, queue.store.schema)
    values |= {
        "worker_id": OURS,
        "task_ids": list(queue.store.register_tasks(["mail"])),
        "limit": MANY,
        "most_bytes": 2**26,
    }
    connection: psycopg.Connection[Any] = queue.store.connection
    with connection.transaction(force_rollback=True):
        cursor = psycopg.RawCursor(connection)
        cursor.execute(b"explain (analyze, costs off) " + text, [values.get(each) for each in names])
        plan = "\n".join(row[0] for row in cursor)
    return sum(int(count) for count in re.findall(r"Heap Fetches: (\d+)", plan))
