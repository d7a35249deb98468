"""claim_jobs.sql and claim_unqueued_jobs.sql: who gets which jobs, and in what order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from gw_core.postgres.road.claims import CLAIMS_WITH_QUEUES, SkipAhead
from statements.statement_fixture import HOUR, OURS, THEIRS, Queue, a_failure


@pytest.fixture(params=["as it comes", "by the whole statement", "past dead rows"])
def queue(queue: Queue, request: pytest.FixtureRequest) -> Queue:
    """Without named queues a shorter statement claims, and claims start later past dead rows, all by the same rules."""
    if request.param == "by the whole statement":
        queue.store.claims.claims_with_queues = 1_000_000
    if request.param == "past dead rows":
        skip_before(queue, timedelta(days=36500), priorities=[0, 5])
    return queue


def skip_before(queue: Queue, duration: timedelta, *, priorities: Sequence[int]) -> None:
    """Make claims start that far back, as after slow ones; other priorities are read from their beginning."""
    skip = queue.store.claims.skip_ahead = SkipAhead()
    began = queue.now().timestamp() - duration.total_seconds()
    skip.record_found({(priority, has_queue): began for priority in priorities for has_queue in (False, True)})
    skip.full_scan_at = float("inf")


# -- jobs without a queue ---------------------------------------------------------------------------------------------


def test_a_claimed_job_is_locked_by_its_pool_and_its_attempt_is_counted(queue: Queue) -> None:
    job_id = queue.add(payload={"to": "Bobby"}, job_key="k", priority=3, flags=["slow"])

    (job,) = queue.claim()

    row = queue.job(job_id)
    assert (row["locked_by"], row["attempts"], row["is_available"]) == (OURS, 1, False)
    assert row["locked_at"] is not None
    assert (job.id, job.task, job.payload) == (job_id, "mail", {"to": "Bobby"})
    assert (job.attempts, job.max_attempts, job.priority, job.job_key, job.flags) == (1, 25, 3, "k", ("slow",))
    assert (job.queue_id, job.queue_name, job.last_error) == (None, None, None)


def test_a_job_locked_by_another_pool_is_left_alone(queue: Queue) -> None:
    queue.add()
    queue.claim(worker_id=THEIRS)

    assert queue.claim() == []


def test_a_job_locked_by_a_node_worker_is_left_alone(queue: Queue) -> None:
    queue.change(queue.add(), locked_at="=now()", locked_by="worker-0123abcd")

    assert queue.claim() == []


def test_a_claim_finds_jobs_of_other_priorities_than_the_last_one_did(queue: Queue) -> None:
    for priority in (5, 5, -3, 9, 5):
        queue.add(priority=priority)
    assert [job.priority for job in queue.claim(limit=2)] == [-3, 5]
    for priority in (4, -4, 32767, -32768):
        queue.add(priority=priority)

    assert [job.priority for job in queue.claim(limit=9)] == [-32768, -4, 4, 5, 5, 9, 32767]
    assert queue.claim(limit=9) == []


def test_jobs_start_by_priority_then_run_at(queue: Queue) -> None:
    late = queue.add(run_at=-HOUR)
    early = queue.add(run_at=-2 * HOUR)
    urgent = queue.add(priority=-5)

    assert queue.claim_ids() == [urgent, early, late]


def test_the_most_urgent_are_taken_when_there_are_more_than_asked_for(queue: Queue) -> None:
    ids = [queue.add(priority=priority) for priority in (3, 1, 2)]

    assert queue.claim_ids(limit=2) == [ids[1], ids[2]]
    assert queue.claim_ids(limit=2) == [ids[0]]


def test_a_claim_never_takes_more_than_asked_for_with_and_without_queues_together(queue: Queue) -> None:
    for number in range(4):
        queue.add(priority=2 * number)
        queue.add(queue_name=f"q{number}", priority=2 * number + 1)

    assert [job.priority for job in queue.claim(limit=3)] == [0, 1, 2]
    assert [job.priority for job in queue.claim(limit=5)] == [3, 4, 5, 6, 7]


def test_a_queue_no_job_was_taken_of_is_not_held(queue: Queue) -> None:
    queue.add(priority=1)
    queue.add(queue_name="later", priority=2)
    queue.claim(limit=1)

    assert queue.queue_holder("later") is None


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        pytest.param({"run_at": "=now() + interval '1 minute'"}, "it is scheduled", id="scheduled"),
        pytest.param({"attempts": 25}, "no attempt is left", id="failed for good"),
        pytest.param({"run_at": "infinity"}, "it never comes", id="run_at is infinity"),
    ],
)
@pytest.mark.parametrize("queue_name", [None, "q"], ids=["unqueued", "queued"])
def test_a_job_that_cannot_run_now_is_left_alone(
    queue: Queue, columns: dict[str, object], why: str, queue_name: str | None
) -> None:
    queue.change(queue.add(queue_name=queue_name), **columns)

    assert queue.claim() == [], why


def test_jobs_of_tasks_unknown_here_stay_untouched(queue: Queue) -> None:
    foreign = queue.add("theirs"), queue.add("theirs", queue_name="q")
    ours = queue.add("mail")

    assert queue.claim_ids() == [ours]
    assert [queue.job(each)["attempts"] for each in foreign] == [0, 0]
    assert queue.queue_holder("q") is None


@pytest.mark.parametrize("queue_name", [None, "q"], ids=["unqueued", "queued"])
def test_a_job_with_a_forbidden_flag_is_left_alone(queue: Queue, queue_name: str | None) -> None:
    flagged = queue.add(flags=["a", "b"], queue_name=queue_name)
    other = queue.add(flags=["c"], queue_name=queue_name and "other")
    plain = queue.add(queue_name=queue_name and "third")

    assert queue.claim_ids(forbidden_flags=["b", "x"]) == [other, plain]
    assert queue.claim_ids(forbidden_flags=[]) == [flagged]


def test_a_briefly_locked_row_is_stepped_over(queue: Queue) -> None:
    busy, free = queue.add(), queue.add()

    with queue.locking("select from _private_jobs where id = %s for update", busy):
        assert queue.claim_ids() == [free]
    assert queue.claim_ids() == [busy]


def test_the_clients_clock_replaces_the_databases_when_given(queue: Queue) -> None:
    tomorrow = queue.add(run_at=24 * HOUR)
    queued = queue.add(run_at=24 * HOUR, queue_name="q")

    assert queue.claim(now=queue.now() + 23 * HOUR) == []
    assert queue.claim_ids(now=queue.now() + 25 * HOUR) == [tomorrow, queued]


# -- named queues -----------------------------------------------------------------------------------------------------


def test_claiming_a_job_of_a_queue_locks_the_queue(queue: Queue) -> None:
    queue.add(queue_name="q")
    (job,) = queue.claim()

    assert job.queue_name == "q"
    assert job.queue_id is not None
    assert queue.queue_holder("q") == OURS


def test_of_a_queue_come_at_most_as_many_jobs_as_asked_for_in_its_order(queue: Queue) -> None:
    third, second, first = queue.add(queue_name="q"), queue.add(queue_name="q", run_at=-HOUR), None
    first = queue.add(queue_name="q", priority=-1)
    fourth = queue.add(queue_name="q")

    assert queue.claim_ids(per_queue=3) == [first, second, third]
    assert queue.claim(per_queue=3) == [], "the queue is held"
    queue.change_queue("q", locked_at=None, locked_by=None)
    assert queue.claim_ids(per_queue=3) == [fourth]


def test_jobs_of_one_queue_with_equal_priority_and_time_come_in_the_order_they_were_added(queue: Queue) -> None:
    ids = [queue.add(queue_name="q") for _ in range(5)]
    queue.run("update _private_jobs set run_at = '2020-01-01 00:00:00+00'")
    queue.change(ids[0], last_error="moved to the end of the table")

    assert queue.claim_ids(per_queue=5) == ids


@pytest.mark.parametrize("holder", [THEIRS, "worker-of-node"])
def test_the_jobs_of_a_queue_another_worker_has_locked_are_left_alone(queue: Queue, holder: str) -> None:
    queue.add(queue_name="held")
    free = queue.add(queue_name="free")
    queue.change_queue("held", locked_at="=now()", locked_by=holder)

    assert queue.claim_ids() == [free]
    assert queue.queue_holder("held") == holder


def test_a_queue_whose_row_is_briefly_locked_is_stepped_over(queue: Queue) -> None:
    busy, free = queue.add(queue_name="busy"), queue.add(queue_name="free")

    with queue.locking("select from _private_job_queues where queue_name = 'busy' for update"):
        assert queue.claim_ids() == [free]
    assert queue.claim_ids() == [busy]


def test_a_job_waiting_for_its_retry_does_not_hold_its_queue(queue: Queue) -> None:
    failing, next_one = queue.add(queue_name="q"), queue.add(queue_name="q")
    (job,) = queue.claim()
    assert job.id == failing
    assert job.queue_id is not None
    queue.fail(a_failure(job, delay=HOUR), release=[job])

    assert queue.claim_ids() == [next_one]


def test_every_queue_gives_its_first_job(queue: Queue) -> None:
    firsts = [queue.add(queue_name=f"q{number}") for number in range(5)]
    for number in range(5):
        queue.add(queue_name=f"q{number}")

    assert queue.claim_ids(limit=5) == firsts


def test_many_jobs_of_held_queues_ahead_do_not_hide_a_free_queue(queue: Queue) -> None:
    for number in range(3):
        queue.add(queue_name=f"held{number}")
    queue.run(
        "insert into _private_jobs (job_queue_id, task_id, priority) "
        "select queues.id, tasks.id, -1 "
        "from _private_job_queues as queues, _private_tasks as tasks, generate_series(1, 500)"
    )
    queue.run("update _private_job_queues set locked_at = now(), locked_by = 'theirs'")
    free = queue.add(queue_name="free", priority=9)

    assert queue.claim_ids(limit=10) == [free]


def test_two_concurrent_claims_never_both_get_a_job_or_a_queue(queue: Queue) -> None:
    unqueued = [queue.add() for _ in range(60)]
    queued = [queue.add(queue_name=f"q{number % 7}") for number in range(60)]
    others = [Queue(queue.url) for _ in range(4)]

    def drain(pool: int) -> list[int]:
        mine: list[int] = []
        rng = random.Random(pool)
        while jobs := others[pool].claim(worker_id=f"pool-{pool}", limit=rng.randint(1, 9), per_queue=3):
            mine.extend(job.id for job in jobs)
            holders = {others[pool].queue_holder(job.queue_name) for job in jobs if job.queue_name is not None}
            assert holders <= {f"pool-{pool}"}
            others[pool].complete(*jobs, worker_id=f"pool-{pool}", release=jobs)
        return mine

    with ThreadPoolExecutor(4) as threads:
        drained = [job_id for ids in threads.map(drain, range(4)) for job_id in ids]
    while left := queue.claim_ids(per_queue=60):  # another claim may have locked a queue each time
        drained += left
    for other in others:
        other.close()
    assert sorted(drained) == unqueued + queued


def test_a_retired_job_is_never_claimed_again(queue: Queue) -> None:
    job = queue.claimed(job_key="k")
    queue.client.remove("k")
    queue.change(job.id, locked_at=None, locked_by=None, run_at="=now() - interval '1 day'")

    assert queue.claim() == []


def test_the_delay_of_a_failure_counts_by_the_clock_given(queue: Queue) -> None:
    job = queue.claimed()
    queue.fail(a_failure(job, delay=timedelta(minutes=10)))

    assert queue.claim(now=queue.now() + timedelta(minutes=9)) == []
    assert queue.claim_ids(now=queue.now() + timedelta(minutes=11)) == [job.id]


def test_a_walk_past_very_many_held_queues_goes_on_where_it_stopped(queue: Queue) -> None:
    queue.store.register_tasks(["mail"])
    queue.run(
        "insert into _private_job_queues (queue_name, locked_at) "
        "select 'held' || n, now() from generate_series(1, 350) as n"
    )
    queue.run(
        "insert into _private_jobs (job_queue_id, task_id) "
        "select queues.id, tasks.id from _private_job_queues as queues, _private_tasks as tasks"
    )
    free = queue.add(queue_name="free", priority=9)

    claims = 1
    while not (found := queue.claim_ids(limit=10)):
        assert queue.store.claims.has_more, "a queue was overlooked"
        claims += 1

    assert (found, claims) == ([free], 4)


def test_jobs_in_queues_are_found_as_soon_as_there_are_some(queue: Queue) -> None:
    plain = [queue.add(priority=5) for _ in range(3)]
    assert queue.claim_ids(limit=1) == plain[:1]

    urgent = queue.add(queue_name="q", priority=1)
    later = queue.add(queue_name="other", priority=9)

    assert queue.claim_ids(limit=2) == [urgent, plain[1]]
    assert queue.claim_ids() == [plain[2], later]


def test_jobs_without_a_queue_are_found_long_after_the_last_one_in_a_queue(queue: Queue) -> None:
    queue.claimed(queue_name="q")

    for _ in range(CLAIMS_WITH_QUEUES + 2):
        assert queue.claim() == []

    job_id = queue.add()
    assert queue.claim_ids() == [job_id]


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_what_lies_long_before_the_jobs_found_last_waits_for_a_claim_from_the_beginning(
    queue: Queue, queue_name: str | None
) -> None:
    late = queue.add(run_at=-HOUR, queue_name=queue_name)
    unknown = queue.add(run_at=-HOUR, queue_name=queue_name and "other", priority=7)
    skip_before(queue, timedelta(minutes=1), priorities=[0, 9])
    now = queue.add(queue_name=queue_name and "third")

    assert queue.claim_ids() == [now, unknown]

    queue.store.claims.skip_ahead.restart_scan()
    assert queue.claim_ids() == [late]


@pytest.mark.parametrize("per_queue", [1, 2, 100])
def test_a_queue_whose_first_jobs_lie_long_before_keeps_its_order(queue: Queue, per_queue: int) -> None:
    long_ago = queue.add(run_at=-HOUR, queue_name="q")
    before = queue.add(run_at=-timedelta(minutes=2), queue_name="q")
    skip_before(queue, timedelta(minutes=1), priorities=[0])
    now = queue.add(queue_name="q")

    assert queue.claim_ids(per_queue=per_queue) == [long_ago, before, now][:per_queue]


# -- payloads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_a_claim_takes_as_many_jobs_as_fit_into_its_memory_and_one_at_least(
    queue: Queue, queue_name: str | None
) -> None:
    ids = [queue.add(payload={"x": "x" * 1_000_000}, queue_name=queue_name) for _ in range(5)]

    assert queue.claim_ids(max_bytes=2_500_000, per_queue=5) == ids[:3]
    assert queue.claim_ids(max_bytes=1, per_queue=5) == ([ids[3]] if queue_name is None else [])


def test_a_payload_beyond_its_share_of_the_memory_is_claimed_now_or_next(queue: Queue) -> None:
    large = queue.add(payload={"x": "x" * 1_000_000})
    small = queue.add()

    claimed = queue.claim_ids(limit=10, max_bytes=5_000_000)
    if queue.store.claims.left_rest:
        assert claimed == [small]
        claimed += queue.claim_ids(limit=10, max_bytes=5_000_000)

    assert not queue.store.claims.left_rest
    assert sorted(claimed) == [large, small]


def test_a_queue_whose_jobs_do_not_fit_is_not_locked(queue: Queue) -> None:
    large = queue.add(payload={"x": "x" * 1_000_000}, priority=1)
    queue.add(queue_name="q", priority=2)

    assert queue.claim_ids(max_bytes=50_000) == [large]
    assert queue.queue_holder("q") is None


def test_each_job_has_the_name_of_its_queue(queue: Queue) -> None:
    names = ['"', "ö\\u0041", "a b", "7"]
    for name in names * 2:
        queue.add(payload={"name": name}, queue_name=name)
    queue.add(payload={"name": None})

    jobs = queue.claim(per_queue=2)

    assert len(jobs) == 9
    assert all(job.payload == {"name": job.queue_name} for job in jobs)


def test_a_claim_knows_when_all_jobs_left_are_in_the_queue_it_locked(queue: Queue) -> None:
    queue.add(queue_name="ours")
    queue.add(queue_name="ours")

    assert [job.queue_name for job in queue.claim(limit=1)] == ["ours"]
    assert queue.store.claims.is_rest_locked is not queue.store.claims.skip_ahead.may_skip(0.0)


@pytest.mark.parametrize("other", ["earlier", "later", None])
@pytest.mark.parametrize("delay", [timedelta(0), HOUR], ids=["due", "not due"])
def test_a_claim_never_overlooks_that_other_jobs_wait(queue: Queue, other: str | None, delay: timedelta) -> None:
    for name in ("earlier", "ours", "later"):
        queue.run("insert into _private_job_queues (queue_name) values (%s)", name)
    queue.add(queue_name="ours", priority=-1)
    queue.add(queue_name=other, run_at=delay)

    assert [job.queue_name for job in queue.claim(limit=1)] == ["ours"]
    assert not queue.store.claims.is_rest_locked
