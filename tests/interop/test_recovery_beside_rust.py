"""graphile_worker_rs and we recover the jobs of each other's dead workers, and leave living ones alone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import pytest
from mixed_workers import LISTENING, WAITS, MixedQueue, by_node
from support.node_worker import node_worker
from support.rust_worker import BESIDE_OURS, NEWEST, WITHOUT_RETIREMENTS, rust_worker, worker_id
from support.waiting import wait_until

from gw_core import RecoverySettings
from gw_core.front_ends import CheckStatus
from gw_core.operations import SweepReport

pytestmark = [pytest.mark.interop, pytest.mark.once]

VERSIONS: Final = pytest.mark.parametrize("version", BESIDE_OURS)
AN_HOUR: Final = "interval '1 hour'"
A_MINUTE_MS: Final = 60_000
ON: Final = {"heartbeat_ms": 100, "sweep_ms": 100, "threshold_ms": A_MINUTE_MS, "delay_ms": 0}
"""Recovery of graphile_worker_rs that often sends heartbeats and sweeps. No living worker is presumed dead."""
NO_SWEEPS: Final = {**ON, "sweep_ms": 3_600_000}
"""It sends heartbeats and sweeps only when it starts."""
TASKS: Final = {"job": WAITS["python"]}
OURS: Final = ("--heartbeat-interval", "100ms", "--no-recover")


@pytest.fixture
def site(empty_database_url: str, request: pytest.FixtureRequest) -> Iterator[MixedQueue]:
    """A schema that graphile_worker_rs of the test's version installed, and then gw."""
    version = request.getfixturevalue("version") if "version" in request.fixturenames else NEWEST
    rust_worker(version).install_schema(empty_database_url)
    with MixedQueue(empty_database_url) as site:
        site.client.migrate()
        yield site


def let_an_hour_pass(site: MixedQueue, dead: str) -> None:
    """Make the heartbeats and the locks of a worker an hour older."""
    for table in ("_private_workers", "_private_gw_workers"):
        site.run(f"update {table} set last_heartbeat_at = last_heartbeat_at - {AN_HOUR} where id = %s", dead)
    for table in ("_private_jobs", "_private_job_queues"):
        site.run(f"update {table} set locked_at = locked_at - {AN_HOUR} where locked_by = %s", dead)


@contextmanager
def older_locks(site: MixedQueue, hours: int = 1) -> Iterator[None]:
    """Let all locks be older for a while; their workers are alive and find them as they were."""
    move = "update {} set locked_at = locked_at {} " + f"interval '{hours} hours' where locked_at is not null"
    for table in ("_private_jobs", "_private_job_queues"):
        site.run(move.format(table, "-"))
    yield
    for table in ("_private_jobs", "_private_job_queues"):
        site.run(move.format(table, "+"))


def holder(site: MixedQueue) -> str:
    [by] = {row["locked_by"] for row in site.locks()}
    return str(by)


def heartbeats(site: MixedQueue) -> list[str]:
    """Whom graphile_worker_rs knows."""
    return [row["id"] for row in site.run("select id from _private_workers order by id")]


def begin(site: MixedQueue) -> int:
    """Add a job in a named queue and wait until a worker runs it."""
    job = site.add("job", {}, queue_name="q")
    site.wait_for(1, "begun is not null")
    return job


def sweep(site: MixedQueue, **settings: timedelta) -> SweepReport:
    return site.client.workers.sweep(RecoverySettings(recovery_delay=timedelta(0), **settings))


def doctor(site: MixedQueue, check: str) -> list[tuple[CheckStatus, str]]:
    return [(each.status, each.message) for each in site.client.doctor.findings() if each.check == check]


def assert_ran_again(site: MixedQueue, *sides: str) -> None:
    """The attempt that a crash ended is not counted."""
    assert [(entry["side"], entry["attempt"]) for entry in site.ledger()] == [(side, 1) for side in sides]
    assert (site.jobs(), site.locks()) == ([], [])


# -- killed -----------------------------------------------------------------------------------------------------------


@VERSIONS
def test_our_sweep_recovers_a_killed_worker_that_sent_heartbeats(site: MixedQueue, version: str) -> None:
    rust = rust_worker(version)
    with site.closed_gate(), rust.running(site.url, ["job"], recovery=NO_SWEEPS) as theirs:
        begin(site)
        dead = worker_id(theirs)
        assert sweep(site).workers == ()
        theirs.stop(signal.SIGKILL)
    let_an_hour_pass(site, dead)
    [(status, message)] = doctor(site, "locks")
    assert (status, message.startswith(dead), "last heartbeat 1h" in message) == (CheckStatus.ERROR, True, True)

    report = sweep(site)

    assert ([worker.id for worker in report.workers], report.jobs, report.queues) == ([dead], 1, 1)
    assert heartbeats(site) == []
    site.gw_run_once(TASKS)
    assert_ran_again(site, "rust", "python")


@VERSIONS
def test_a_killed_worker_of_ours_is_recovered_by_graphile_worker_rs(site: MixedQueue, version: str) -> None:
    with site.closed_gate() as gate:
        with site.gw_running(TASKS, *OURS) as ours:
            begin(site)
            dead = holder(site)
            wait_until(lambda: heartbeats(site) == [dead], what="our heartbeat where graphile_worker_rs looks")
            ours.stop(signal.SIGKILL)
        let_an_hour_pass(site, dead)
        gate.open()
        with rust_worker(version).running(site.url, ["job"], poll_ms=100, recovery=ON):
            site.wait_for(1, "ended is not null")
            site.wait_until_settled()

    assert_ran_again(site, "python", "rust")


def test_our_running_worker_recovers_a_killed_one_of_graphile_worker_rs(site: MixedQueue) -> None:
    with site.closed_gate() as gate:
        with rust_worker().running(site.url, ["job"], recovery=NO_SWEEPS) as theirs:
            begin(site)
            dead = worker_id(theirs)
            theirs.stop(signal.SIGKILL)
        let_an_hour_pass(site, dead)
        gate.open()
        # No time before the server's start counts as inactivity, so the default of five minutes would be too long.
        with site.gw_running(TASKS, "--sweep-threshold", "2s", "--recovery-delay", "0s", "--poll-interval", "100ms"):
            site.wait_for(1, "ended is not null")
            site.wait_until_settled()

    assert_ran_again(site, "rust", "python")


def test_a_worker_without_heartbeats_keeps_its_job_for_four_hours(site: MixedQueue) -> None:
    with site.closed_gate() as gate, rust_worker().running(site.url, ["job"]):
        begin(site)
        with older_locks(site):
            assert sweep(site).workers == ()
            assert [worker.jobs for worker in sweep(site, orphans_after=timedelta(minutes=30)).workers] == [1]
        gate.open()


# -- alive ------------------------------------------------------------------------------------------------------------


@VERSIONS
def test_our_sweep_leaves_a_long_job_of_a_living_worker_alone(site: MixedQueue, version: str) -> None:
    with site.closed_gate() as gate, rust_worker(version).running(site.url, ["job"], recovery=NO_SWEEPS) as theirs:
        begin(site)
        with older_locks(site, hours=5):
            assert sweep(site, orphans_after=timedelta(minutes=30)).workers == ()
            assert holder(site) == worker_id(theirs)
            assert [status for status, _ in doctor(site, "locks")] == [CheckStatus.OK]
            assert doctor(site, "workers") == [(CheckStatus.OK, "1 alive")]
        gate.open()
        site.wait_until_settled()

    assert_ran_again(site, "rust")


@VERSIONS
def test_graphile_worker_rs_leaves_a_long_job_of_a_living_worker_of_ours_alone(site: MixedQueue, version: str) -> None:
    rust = rust_worker(version)
    with site.closed_gate() as gate, site.gw_running(TASKS, *OURS):
        begin(site)
        wait_until(lambda: heartbeats(site) == [holder(site)], what="our heartbeat where graphile_worker_rs looks")
        with older_locks(site):
            assert rust.sweep(site.url, threshold_ms=A_MINUTE_MS) == {"workers": [], "jobs": 0}
        gate.open()
        site.wait_until_settled()

    assert_ran_again(site, "python")


def test_graphile_worker_rs_takes_a_long_job_from_a_worker_that_sends_no_heartbeats(site: MixedQueue) -> None:
    """A worker of Node.js is one; the compatibility page warns of it."""
    with site.closed_gate() as gate, node_worker().running(site.url, {"job": WAITS["node"]}):
        begin(site)
        with older_locks(site):
            swept = rust_worker().sweep(site.url, threshold_ms=A_MINUTE_MS)
        gate.open()

    assert (swept["jobs"], swept["workers"][0].partition("-")[0]) == (1, "pool")


def test_the_doctor_names_workers_whose_jobs_graphile_worker_rs_would_take(site: MixedQueue) -> None:
    with site.closed_gate() as gate, node_worker().running(site.url, {"job": WAITS["node"]}):
        begin(site)
        with older_locks(site):
            assert doctor(site, "rust") == []
            # It knows no task of the job that runs, and sweeps once, before the lock is old enough for it.
            with rust_worker().running(site.url, ["for_rust"], recovery={**NO_SWEEPS, "threshold_ms": 7_200_000}):
                wait_until(lambda: heartbeats(site) != [], what="its heartbeat")
                [(status, message)] = doctor(site, "rust")

        assert (status, holder(site) in message) == (CheckStatus.WARNING, True)
        gate.open()


@VERSIONS
def test_a_queue_that_we_paused_stays_paused_when_graphile_worker_rs_sweeps(site: MixedQueue, version: str) -> None:
    rust = rust_worker(version)
    with site.gw_running(TASKS, *OURS) as ours:
        ours.wait_until_ready(LISTENING)
        site.add("other", {}, queue_name="q")
        site.gw("pause", "queue:q")
        with older_locks(site):
            assert rust.sweep(site.url, threshold_ms=A_MINUTE_MS) == {"workers": [], "jobs": 0}
        assert holder(site) == "gw-pause:q"
        site.add("job", {}, queue_name="q")
        rust.run_once(site.url, ["job"])
        assert site.ledger() == []
        site.gw("resume", "queue:q")
        site.wait_for(1)


# -- retired ----------------------------------------------------------------------------------------------------------


def supersede(site: MixedQueue, by: str, version: str) -> None:
    """Add a job under the key of the one that runs, in one of the languages."""
    match by:
        case "gw":
            site.client.add("job", {"last": True}, job_key="k")
        case "SQL":
            site.run("select add_job('job', '{\"last\": true}', job_key => 'k')")
        case "node":
            by_node(site, node_worker(), 'await utils.addJobs([{ identifier: "job", jobKey: "k" }]);')
        case "removal":
            site.client.remove("k")
        case _:
            rust_worker(version).add(site.url, "job", {"last": True}, job_key="k")


@pytest.mark.parametrize("by", ["gw", "SQL", "node", "rust", "removal"])
@pytest.mark.parametrize("sweeper", ["gw", "rust"])
def test_a_superseded_job_of_a_killed_worker_never_comes_back(site: MixedQueue, by: str, sweeper: str) -> None:
    rust = rust_worker()
    with site.closed_gate(), rust.running(site.url, ["job"], recovery=NO_SWEEPS) as theirs:
        retired = site.add("job", {}, job_key="k")
        site.wait_for(1, "begun is not null")
        supersede(site, by, NEWEST)
        theirs.stop(signal.SIGKILL)
    let_an_hour_pass(site, worker_id(theirs))

    if sweeper == "gw":
        assert sweep(site).jobs == 1
    else:
        assert rust.sweep(site.url, threshold_ms=A_MINUTE_MS)["jobs"] == 1

    job = site.job(retired)
    assert (job["locked_by"], job["is_available"]) == (None, False)
    assert job["attempts"] == job["max_attempts"]


def test_version_0_13_5_brings_a_superseded_job_back(empty_database_url: str) -> None:
    """Every version before 0.13.6 does so, as the compatibility page describes."""
    rust = rust_worker(WITHOUT_RETIREMENTS)
    rust.install_schema(empty_database_url)
    with MixedQueue(empty_database_url) as site:
        site.client.migrate()
        with site.closed_gate(), rust.running(site.url, ["job"], recovery=NO_SWEEPS) as theirs:
            retired = site.add("job", {}, job_key="k")
            site.wait_for(1, "begun is not null")
            site.client.remove("k")
            theirs.stop(signal.SIGKILL)
        let_an_hour_pass(site, worker_id(theirs))

        rust.sweep(site.url, threshold_ms=A_MINUTE_MS)

        assert site.job(retired)["is_available"]


# -- both sweep -------------------------------------------------------------------------------------------------------


@VERSIONS
def test_sweeps_of_both_at_the_same_time_recover_each_dead_worker_once(site: MixedQueue, version: str) -> None:
    rust = rust_worker(version)
    with (
        site.closed_gate() as gate,
        rust.running(site.url, ["job"], recovery=NO_SWEEPS) as theirs,
        site.gw_running(TASKS, *OURS, "--jobs", "1") as ours,
    ):
        site.wait_until_rust_listens()
        ours.wait_until_ready(LISTENING)
        for queue in "ab":
            site.add("job", {}, queue_name=queue)
        site.wait_for(2, "begun is not null")
        for worker in (theirs, ours):
            worker.stop(signal.SIGKILL)
        for dead in heartbeats(site):
            let_an_hour_pass(site, dead)
        gate.open()
    with ThreadPoolExecutor(6) as threads:
        by_us = [threads.submit(sweep, site) for _ in range(3)]
        by_rust = [threads.submit(rust.sweep, site.url, threshold_ms=A_MINUTE_MS) for _ in range(3)]
        recovered = sum(each.result().jobs for each in by_us) + sum(each.result()["jobs"] for each in by_rust)

    assert recovered == 2
    assert (heartbeats(site), site.locks()) == ([], [])
    assert [job["attempts"] for job in site.jobs()] == [0, 0]
