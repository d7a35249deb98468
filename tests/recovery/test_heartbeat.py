"""A worker's heartbeat: when it is sent, what it holds, and what a worker notices of its own."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, EventRecorder, RunRecord, in_time, ms
from support.recovery_fixture import RecoveryFixture
from support.rust_schema import WORKERS
from support.stall_clock import StallClock
from support.waiting import wait_until

import gw_core
from gw_core import Runner
from gw_core.events import JobCompleted, PoolStarted, PoolStopping
from gw_core.front_ends import (
    HeartbeatFailed,
    HeartbeatLate,
    HeartbeatRestored,
    MaintenanceFailed,
    PoolClaimed,
    RecoveryConfigured,
)

QUICK: dict[str, Any] = {"heartbeat_interval": ms(20), "sweep_threshold": ms(60_000)}


def age(ward: RecoveryFixture) -> float:
    rows = ward.run("select extract(epoch from now() - last_heartbeat_at)::float as age from _private_gw_workers")
    return float(rows[0]["age"])


def seems_stale(ward: RecoveryFixture) -> None:
    """Set the heartbeat back; one that is just being written may overwrite it."""
    ward.run("update _private_gw_workers set last_heartbeat_at = now() - interval '1 hour'")


def known_to(ward: RecoveryFixture) -> list[str]:
    """Who has a heartbeat, asked from any thread."""
    return [worker.id for worker in ward.client.workers.list() if worker.has_heartbeat]


def last_heartbeat(ward: RecoveryFixture) -> Any:
    return ward.run("select last_heartbeat_at as at from _private_gw_workers")[0]["at"]


def known_at_the_first_claim(ward: RecoveryFixture, runner: Runner, recorded: EventRecorder) -> list[list[str]]:
    """Run a job, and return who had a heartbeat when it was claimed."""
    ward.add()
    known: list[list[str]] = []
    runner.events.on(PoolClaimed, lambda event: known.append(known_to(ward)))
    runner.start()
    recorded.wait_for(JobCompleted)
    runner.stop()
    runner.wait()
    return known


def test_a_worker_is_known_before_it_claims(ward: RecoveryFixture) -> None:
    runner, recorded, _ = ward.runner({"work": RunRecord()})

    assert known_at_the_first_claim(ward, runner, recorded) == [[runner.worker_id]]


def loses_its_heartbeats(ward: RecoveryFixture) -> None:
    """Do what a failover or a crash does: heartbeats wait neither for the disk nor for a standby."""
    ward.run("delete from _private_gw_workers")


def test_a_heartbeat_that_a_failover_loses_before_the_first_claim_is_written_again(ward: RecoveryFixture) -> None:
    runner, recorded, _ = ward.runner({"work": RunRecord()}, heartbeat_interval=ms(60_000))
    runner.events.on(RecoveryConfigured, lambda event: loses_its_heartbeats(ward))

    assert known_at_the_first_claim(ward, runner, recorded) == [[runner.worker_id]]


def test_a_heartbeat_that_a_failover_loses_is_written_again_before_the_next_claim(ward: RecoveryFixture) -> None:
    known: list[list[str]] = []
    with ward.running({"work": RunRecord()}, heartbeat_interval=ms(60_000)) as running:
        ward.add()
        running.recorded.wait_for(JobCompleted)
        running.runner.events.on(PoolClaimed, lambda event: known.append(known_to(ward)))
        loses_its_heartbeats(ward)
        ward.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
            "and application_name in ('gw:claim', 'gw:settle', 'gw:heartbeat', 'gw:maintenance')"
        )
        ward.add()
        running.recorded.wait_for(JobCompleted, count=2)

    assert known == [[running.worker_id]]


def test_the_heartbeat_says_who_and_where(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord(), "more": RunRecord()}, concurrency=3) as running:
        (row,) = ward.run("select *, started_at <= last_heartbeat_at as is_older from _private_gw_workers")
        (info,) = ward.client.workers.list()

    assert (row["id"], row["host"], row["pid"]) == (running.worker_id, socket.gethostname(), os.getpid())
    assert (row["version"], row["is_older"]) == (gw_core.__version__, True)
    assert row["metadata"] == {
        "tasks": ["more", "work"],
        "concurrency": 3,
        "recovery": True,
        "statistics": True,
        "lease_seconds": 150,
        "overruns": [],
    }
    assert (info.id, info.is_stale, info.metadata) == (running.worker_id, False, row["metadata"])


def test_the_heartbeat_goes_on_while_a_job_does_not_end(ward: RecoveryFixture) -> None:
    gate = ward.gate()
    ward.add()
    with ward.running({"work": gate}, **QUICK) as running:
        gate.wait_for(1)
        running.request_stop()
        running.recorded.wait_for(PoolStopping)
        ward.run("update _private_gw_workers set last_heartbeat_at = now() - interval '1 hour'")
        wait_until(lambda: age(ward) < 1800, what="a heartbeat after the stop was asked for")
        gate.open()
        running.end()

    assert ward.workers() == []


def test_an_orderly_end_takes_the_heartbeat_away(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord()}, **QUICK) as running:
        assert ward.workers() == [running.worker_id]
        running.stop()

    assert ward.workers() == []


def test_a_run_until_nothing_is_left_has_no_heartbeat(ward: RecoveryFixture) -> None:
    ward.add()
    known: list[list[str]] = []

    ward.run_once({"work": lambda payload: known.append(known_to(ward))})

    assert known == [[]]


def test_the_table_of_graphile_worker_rs_is_reported_too(own_ward: RecoveryFixture) -> None:
    with own_ward.running({"work": RunRecord()}, **QUICK) as running:
        own_ward.run(WORKERS)
        rows = wait_until(
            lambda: own_ward.run("select id, metadata from _private_workers"), what="a heartbeat in the new table"
        )
        assert (rows[0]["id"], rows[0]["metadata"]["tasks"]) == (running.worker_id, ["work"])
        assert len(own_ward.client.workers.list()) == 1

    assert own_ward.run("select id from _private_workers") == []


def test_without_its_table_a_worker_works_on_and_says_so_once(own_ward: RecoveryFixture) -> None:
    with own_ward.running({"work": RunRecord()}, **QUICK) as running:
        own_ward.run("alter table _private_gw_workers rename to elsewhere")
        running.recorded.wait_for(HeartbeatFailed)
        own_ward.add()
        running.recorded.wait_for(JobCompleted)
        own_ward.run("alter table elsewhere rename to _private_gw_workers")
        running.recorded.wait_for(HeartbeatRestored)

    assert len(running.recorded.of(HeartbeatFailed)) == 1
    assert [each for each in running.log.of("warning") if "Heartbeat failed" in each]


def test_heartbeats_and_sweeps_need_no_session_of_their_own(ward: RecoveryFixture) -> None:
    ward.locked_by(ward.dead_worker(), task="work", payload={"n": 1})
    done = RunRecord()
    settings = {**QUICK, "sweep_threshold": ms(6_000), "sweep_interval": ms(50), "recovery_delay": ms(0)}
    with ward.running({"work": done}, prepared_statements=False, recover=True, **settings) as running:
        before = last_heartbeat(ward)
        wait_until(lambda: last_heartbeat(ward) > before, what="the next heartbeat")
        running.recorded.wait_for(JobCompleted)

    assert (done.entries, ward.workers()) == ([1], [])
    assert running.recorded.of(HeartbeatFailed) == []
    assert running.recorded.of(MaintenanceFailed) == []


def test_an_answer_that_the_network_swallows_is_soon_followed_by_another_heartbeat(ward: RecoveryFixture) -> None:
    proxy = DatabaseProxy(ward.url)
    settings = {"heartbeat_interval": ms(200), "sweep_threshold": ms(4_000)}
    with ward.running({"work": RunRecord()}, url=proxy.url, **settings) as running:
        loss = proxy.lose_next("gw:heartbeat", stays_open=True)
        assert loss.happened.wait(DEADLINE)
        lost_at = last_heartbeat(ward)
        with StallClock() as watch:
            wait_until(lambda: last_heartbeat(ward) > lost_at, what="another heartbeat")

    proxy.close()
    assert watch.seconds < 4
    assert running.recorded.of(HeartbeatLate) == []


# -- late -------------------------------------------------------------------------------------------------------------


def test_a_worker_notices_that_it_sent_no_heartbeat_for_longer_than_others_tolerate(ward: RecoveryFixture) -> None:
    began = ward.now()
    with ward.running({"work": RunRecord()}, **QUICK) as running:
        wait_until(lambda: seems_stale(ward) or running.recorded.of(HeartbeatLate), what="the worker to notice")
        late = running.recorded.of(HeartbeatLate)[0]

    assert not late.presumed_dead
    # The heartbeat may have started before the update whose lock it waited for: slightly less than an hour is right.
    assert abs(late.heartbeat_age - timedelta(hours=1)) <= ward.now() - began
    assert [each for each in running.log.of("warning") if "longer than a sweep tolerates" in each]


def test_a_worker_notices_that_it_was_taken_for_dead_and_is_known_again(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord()}, **QUICK) as running:
        ward.run("delete from _private_gw_workers")
        (late,) = running.recorded.wait_for(HeartbeatLate)
        wait_until(lambda: ward.workers() == [running.worker_id], what="the worker to be known again")

    assert late.presumed_dead
    assert [each for each in running.log.of("warning") if "was presumed dead" in each]


def test_code_that_hogs_the_interpreter_does_not_stop_the_heartbeat(ward: RecoveryFixture) -> None:
    job_id = ward.add("hog")
    with ward.process() as process:
        process.wait_to_say(f"began {job_id}")
        heartbeats: set[Any] = set()
        wait_until(lambda: heartbeats.add(last_heartbeat(ward)) or len(heartbeats) >= 3, what="three heartbeats")


# -- what a start logs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recover", "words"),
    [
        pytest.param(False, "Recovery is off in this worker: jobs of a crashed worker stay locked for up to", id="off"),
        pytest.param(True, "Recovery is on: jobs of workers without a heartbeat for 5m are recovered", id="on"),
    ],
)
def test_the_start_says_what_becomes_of_a_crashed_workers_jobs(
    ward: RecoveryFixture, recover: bool, words: str
) -> None:
    with ward.running({"work": RunRecord()}, recover=recover) as running:
        running.recorded.wait_for(PoolStarted)

    assert len(running.recorded.of(RecoveryConfigured)) == 1
    assert len([each for each in running.log.of("info") if each.startswith(words)]) == 1


# -- a single run -----------------------------------------------------------------------------------------------------


def test_a_single_run_that_lasts_is_known_until_it_ends(ward: RecoveryFixture) -> None:
    known: list[list[str]] = []

    def long(payload: object) -> None:
        known.append(wait_until(lambda: known_to(ward)))

    ward.add()
    runner, _, _ = ward.runner({"work": long}, **QUICK)

    assert in_time(runner.run_once).completed == 1
    assert (known, ward.workers()) == ([[runner.worker_id]], [])


def test_a_short_single_run_writes_no_heartbeat(ward: RecoveryFixture) -> None:
    known: list[list[str]] = []
    ward.add()

    ward.run_once({"work": lambda payload: known.append(known_to(ward))}, heartbeat_interval=ms(60_000))

    assert known == [[]]


def test_a_single_run_renews_the_locks_of_its_long_jobs(ward: RecoveryFixture) -> None:
    job_id = ward.add()

    def long(payload: object) -> None:
        started = ward.run("update _private_jobs set locked_at = locked_at - interval '1 hour' returning locked_at")
        wait_until(lambda: (now := ward.client.jobs.get(job_id)) and now.locked_at != started[0]["locked_at"])

    assert ward.run_once({"work": long}, lock_renewal_interval=ms(20)).completed == 1


def test_nothing_is_claimed_before_the_first_heartbeat_is_written(ward: RecoveryFixture) -> None:
    """A worker that was killed between its first claim and its first heartbeat left jobs that no sweep could find."""
    proxy = DatabaseProxy(ward.url)
    for _ in range(2):  # a statement on a connection that broke is repeated once
        proxy.lose_next("gw:heartbeat", mark="_private_gw_workers", committed=False)
    ward.add()
    known: list[list[str]] = []
    runner, recorded, _ = ward.runner({"work": RunRecord()}, url=proxy.url)
    runner.events.on(PoolClaimed, lambda event: known.append(known_to(ward)))
    runner.start()
    recorded.wait_for(JobCompleted)
    runner.stop()
    runner.wait()
    proxy.close()

    assert len(recorded.of(HeartbeatFailed)) == 1
    assert known == [[runner.worker_id]]
