"""Jobs run: every one once, side by side, queues one after the other, and no one waits for a poll."""

from __future__ import annotations

import inspect
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import Runner
from gw_core.errors import InvalidSettingError
from gw_core.events import JobCompleted
from gw_core.front_ends import ClaimEmpty, PoolListening, TaskLoadError
from gw_core.types import RunnerOptions


def test_every_job_runs_once(site: QueueFixture) -> None:
    done = RunRecord()
    site.fill(500)

    result = site.run_once({"work": done})

    assert Counter(done.entries) == Counter(range(1, 501))
    assert (result.completed, result.failed, result.exit_code) == (500, 0, 0)
    assert site.jobs() == []


def test_jobs_run_side_by_side_as_many_as_there_are_threads(site: QueueFixture) -> None:
    together = threading.Barrier(5)
    site.fill(5)

    result = site.run_once({"work": lambda payload: together.wait(DEADLINE) and None}, concurrency=5)

    assert result.failed == 0


def test_all_idle_threads_wake_up_for_the_jobs_of_each_claim(site: QueueFixture) -> None:
    together = threading.Barrier(5)
    with site.running({"work": lambda: together.wait(DEADLINE) and None}, concurrency=5, prefetch=NEVER) as running:
        for count in range(5, 55, 5):
            site.fill(5)
            running.recorded.wait_for(JobCompleted, count=count)
        result = running.stop()

    assert (result.completed, result.failed) == (50, 0)


def test_an_added_job_starts_without_waiting_for_the_poll(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        for count in range(1, 6):
            site.add(payload={"n": count})
            running.recorded.wait_for(JobCompleted, count=count)


def test_jobs_added_without_a_listener_are_found_at_the_start(site: QueueFixture) -> None:
    site.fill(3)
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(JobCompleted, count=3)


OTHERS_JOBS = """
do $$
begin
  for number in 1..100 loop
    perform pg_notify('jobs:insert', '{"count":1}');
    commit;
    perform pg_sleep(0.01);
  end loop;
end;
$$
"""
"""Announce jobs that other workers have claimed before we look."""


@pytest.fixture
def proxy(site: QueueFixture) -> Iterator[DatabaseProxy]:
    """A way to the database that records the statements."""
    if site.is_pooled:
        pytest.skip("not behind PgBouncer: without LISTEN a worker polls")
    proxy = DatabaseProxy(site.url)
    yield proxy
    proxy.close()


def claims(recorded: Sequence[tuple[str, str]]) -> int:
    """Return how many of these statements claim."""
    return sum(name == "gw:claim" and text.startswith("with recursive") for name, text in recorded)


def asks(recorded: Sequence[tuple[str, str]]) -> int:
    """Return how many of these statements ask whether any job waits."""
    return sum(name == "gw:claim" and text.startswith("select exists (select from") for name, text in recorded)


def test_a_worker_gathers_notifications_of_jobs_that_others_claim(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine notifications are far apart, and gaps of 50 ms would hold one each.
    monkeypatch.setattr("gw_core.domain.job.claim_gap.MAX_GAP", 1.0)
    monkeypatch.setattr("gw_core.domain.job.claim_gap.GAP_PER_RIVAL", 0.02)
    recorded = proxy.record()
    with site.running({"work": RunRecord()}, url=proxy.url, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.run(OTHERS_JOBS)
        site.add(payload={"n": 1})
        running.recorded.wait_for(JobCompleted)

    assert 0 < claims(recorded) < 70


def test_without_named_queues_an_empty_claim_is_not_repeated(site: QueueFixture, proxy: DatabaseProxy) -> None:
    recorded = proxy.record()
    with site.running({"work": RunRecord()}, url=proxy.url, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.run("select pg_notify('jobs:insert', '{\"count\":1}')")
        time.sleep(0.4)

    assert 0 < claims(recorded) <= 4


def test_a_worker_that_runs_the_only_queue_with_jobs_claims_no_others(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After slow claims, the next ones skip what seems to hold only dead rows, and know less about the rest.
    monkeypatch.setattr("gw_core.postgres.road.claims.SLOW_SECONDS", DEADLINE)

    def work(payload: dict[str, int]) -> None:
        time.sleep(0.03)
        claims_before[payload["n"]] = claims(recorded)

    claims_before: dict[int, int] = {}
    site.fill(8, queue="'q'")
    recorded = proxy.record()
    with site.running({"work": work}, url=proxy.url, poll_interval=NEVER, claim_limit=1):
        wait_until(lambda: len(claims_before) == 8)

    assert 7 <= claims_before[8] - claims_before[1] <= 10  # some more if a heartbeat was late


def test_without_listening_jobs_are_found_by_polling(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=ms(20), listen=False) as running:
        site.add(payload={"n": 1})
        running.recorded.wait_for(JobCompleted)
        assert running.recorded.of(PoolListening) == []


def test_a_worker_without_any_job_does_not_claim_at_each_poll(site: QueueFixture, proxy: DatabaseProxy) -> None:
    recorded = proxy.record()
    with site.running({"work": RunRecord()}, url=proxy.url, poll_interval=ms(20)):
        wait_until(lambda: asks(recorded) >= 20, what="twenty polls")

    assert 0 < claims(recorded) <= 8


def test_an_idle_worker_finds_a_job_that_was_not_announced(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=ms(20)) as running:
        for count in (1, 2):
            running.recorded.wait_for(ClaimEmpty, count=count)
            site.run("insert into _private_jobs (task_id) select id from _private_tasks where identifier = 'work'")
            running.recorded.wait_for(JobCompleted, count=count)


def test_a_scheduled_job_and_a_retry_are_found_by_the_poll(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, poll_interval=ms(50)) as running:
        site.add(payload={"n": 1}, run_at=ms(150))
        running.recorded.wait_for(JobCompleted)


# -- named queues --------------------------------------------------------------------------------------------------


class Serial:
    """A task that notices when two jobs of one queue overlap, and keeps the order."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.order: dict[str, list[int]] = {}
        self.overlaps: list[str] = []
        self._seconds = seconds
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, payload: Any, context: Any) -> None:
        queue = context.queue_name
        with self._lock:
            if queue in self._busy:
                self.overlaps.append(queue)
            self._busy.add(queue)
            self.order.setdefault(queue, []).append(context.job.id)
        if self._seconds:
            time.sleep(self._seconds)
        with self._lock:
            self._busy.discard(queue)


@pytest.mark.parametrize(
    ("jobs", "queues", "seconds"),
    [
        pytest.param(300, 3, 0.0, id="trivial tasks, claimed ahead"),
        pytest.param(60, 4, 0.01, id="slow tasks"),
    ],
)
def test_a_named_queue_is_serial_and_ordered_over_two_pools(
    site: QueueFixture, jobs: int, queues: int, seconds: float
) -> None:
    task = Serial(seconds)
    with (
        site.running({"work": task}, concurrency=4) as ours,
        site.running({"work": task}, concurrency=4) as theirs,
    ):
        site.fill(jobs, queue=f"'q' || mod(n, {queues})")
        wait_until(lambda: len(ours.recorded.of(JobCompleted)) + len(theirs.recorded.of(JobCompleted)) >= jobs)

    assert task.overlaps == []
    assert {queue: ids == sorted(ids) for queue, ids in task.order.items()} == {f"q{n}": True for n in range(queues)}
    assert sum(len(ids) for ids in task.order.values()) == jobs
    assert site.held() == []


def test_a_queue_drains_at_the_speed_of_its_jobs_and_not_of_the_poll(site: QueueFixture) -> None:
    site.fill(2_000, queue="'one'")
    done = RunRecord()
    with site.running({"work": done}, poll_interval=NEVER) as running:
        running.recorded.wait_for(JobCompleted, count=2_000)

    assert done.entries == list(range(1, 2_001))


def test_ten_queues_drain_without_waiting_for_the_poll(site: QueueFixture) -> None:
    site.fill(1_000, queue="'q' || mod(n, 10)")
    with site.running({"work": RunRecord()}, poll_interval=NEVER, concurrency=2) as running:
        running.recorded.wait_for(JobCompleted, count=1_000)


def test_more_locked_queues_than_a_claim_scans_do_not_hide_a_free_one(site: QueueFixture) -> None:
    site.fill(600, queue="'held' || n")
    site.run("update _private_job_queues set locked_at = now(), locked_by = 'somebody'")
    with site.running({"work": RunRecord()}, poll_interval=ms(30)) as running:
        site.add(payload={"n": 0}, queue_name="free")
        running.recorded.wait_for(JobCompleted)


def test_a_queue_that_another_worker_leaves_without_a_notification_is_found_before_the_poll(site: QueueFixture) -> None:
    site.run("insert into _private_job_queues (queue_name, locked_at, locked_by) values ('q', now(), 'somebody')")
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.add(payload={"n": 1}, queue_name="q")
        wait_until(
            lambda: site.run(
                "select 1 from pg_stat_activity, _private_jobs as jobs where datname = current_database()"
                " and application_name = 'gw:claim' and state = 'idle' and query_start > jobs.created_at"
            ),
            what="a claim that finds nothing",
        )

        site.run("update _private_job_queues set locked_at = null, locked_by = null")

        running.recorded.wait_for(JobCompleted)


# -- resting -------------------------------------------------------------------------------------------------------


def test_a_pool_whose_threads_are_all_busy_rests(site: QueueFixture) -> None:
    gate = site.gate()
    site.fill(5)
    with site.running({"work": gate}, concurrency=2, poll_interval=ms(20)) as running:
        gate.wait_for(2)
        claimer = running.claimer  # type: ignore[union-attr] # what is counted are its rounds
        rounds: list[float] = []
        step = claimer.step
        enough = threading.Event()

        def counted() -> Any:
            rounds.append(time.monotonic())
            if len(rounds) >= 2_000:
                enough.set()
            return step()

        claimer.step = counted  # type: ignore[method-assign]
        assert not enough.wait(0.5), "the claiming thread goes round and round"


@pytest.mark.direct("it counts sessions of the server, which the pooler shares")
def test_connections_do_not_grow_with_threads(site: QueueFixture) -> None:
    site.fill(200)
    with site.running({"work": RunRecord()}, concurrency=50, lock_renewal_interval=ms(20)) as running:
        running.recorded.wait_for(JobCompleted, count=200)
        assert len(site.connections()) <= 4  # those of earlier tests have ended


def test_run_and_run_once_take_the_options_of_a_runner() -> None:
    parameters = set(inspect.signature(Runner).parameters)

    assert set(RunnerOptions.__annotations__) == parameters - {"conninfo", "tasks"}


def test_a_worker_for_one_task_leaves_the_jobs_of_others(site: QueueFixture) -> None:
    site.client.add("mail")
    site.client.add("slow")
    tasks = {"mail": lambda payload: None, "slow": lambda payload: None}

    assert site.run_once(tasks, only=["task:mail"]).completed == 1
    assert [job["task_identifier"] for job in site.run("select task_identifier from jobs")] == ["slow"]
    with pytest.raises(TaskLoadError, match=r"run only 'mial', and no such task is loaded; did you mean 'mail'\?"):
        site.run_once(tasks, only=["task:mial"])
    with pytest.raises(InvalidSettingError, match="only must be a list of tasks and queues such as task:mail"):
        site.run_once(tasks, only=["flag:billing"])
