"""Workers of Node.js, of Rust and ours run jobs at the same time on one schema."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from mixed_workers import BATCHES, LISTENING, WAITS, MixedQueue, by_node
from support.node_worker import RunningWorker, node_worker
from support.rust_worker import BESIDE_OURS, NEWEST, WITHOUT_RETIREMENTS, rust_worker
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.once]

SIDES: Final = ("python", "node", "rust")
VERSIONS: Final = pytest.mark.parametrize("version", BESIDE_OURS)
POLL: Final = 100
STOPPABLE: Final = {**BATCHES, "gracefulShutdownAbortTimeout": 600_000}
LATER: Final = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)


class Fleet(NamedTuple):
    """A worker in each language; all listen."""

    python: RunningWorker
    node: RunningWorker
    rust: RunningWorker


@contextmanager
def fleet(
    site: MixedQueue,
    tasks: Sequence[str],
    version: str = NEWEST,
    *,
    jobs: int = 4,
    preset: dict[str, Any] | None = None,
    crontab: Path | None = None,
    **rust: Any,
) -> Iterator[Fleet]:
    """Run a worker in each language until the block ends; each knows these tasks, and its own `for_…`."""
    options = ["--poll-interval", str(POLL), "--jobs", str(jobs)]
    with ExitStack() as stack:
        more = ["--crontab", str(crontab)] if crontab else []
        if crontab:
            rust["crontab"] = crontab.read_text()
        theirs = rust_worker(version).running(
            site.url, [*tasks, "for_rust"], concurrency=jobs, poll_ms=POLL, grace_ms=60_000, **rust
        )
        running = Fleet(
            stack.enter_context(
                site.gw_running(dict.fromkeys((*tasks, "for_python"), WAITS["python"]), *options, *more)
            ),
            stack.enter_context(
                node_worker().running(
                    site.url, dict.fromkeys((*tasks, "for_node"), WAITS["node"]), *options, *more, preset=preset
                )
            ),
            stack.enter_context(theirs),
        )
        site.wait_until_node_listens()
        site.wait_until_rust_listens()
        running.python.wait_until_ready(LISTENING)
        yield running


# -- one queue --------------------------------------------------------------------------------------------------------

# In ordered queues every job is for all; in torn ones some are only for one side.
A_LOT: Final = """
select count(*) from graphile_worker.add_jobs(array(
  select (identifier, json_build_object('n', n), queue, now() - interval '1 hour' + n * interval '1 ms',
          null, null, n %% 5, null)::graphile_worker.job_spec
    from (
           select 'shared' as identifier, null as queue, n from generate_series(1, 300) as n
           union all
           select (array['for_node', 'for_python', 'for_rust'])[1 + n %% 3], null, n from generate_series(1, 150) as n
           union all
           select 'shared', 'ordered-' || n %% 12, n from generate_series(1, 240) as n
           union all
           select (array['shared', 'for_node', 'for_python', 'for_rust'])[1 + n %% 4], 'torn-' || n %% 8, n
             from generate_series(1, 160) as n
         ) as wanted
))
"""
TO_RUN: Final = 300 + 150 + 240 + 160


@VERSIONS
def test_a_queue_is_shared_each_job_once_and_named_queues_serially(site: MixedQueue, version: str) -> None:
    with site.closed_gate() as gate, fleet(site, ["shared"], version) as workers:
        site.run(A_LOT)
        for side in SIDES:
            site.wait_for(1, "task = 'shared' and side = %s", side)
        gate.open()
        site.wait_for(TO_RUN)
        site.wait_until_settled()

    assert_each_ran_once(site, TO_RUN)
    assert site.out_of_order() == []
    assert {(entry["task"], entry["side"]) for entry in site.ledger("task <> 'shared'")} == {
        (f"for_{side}", side) for side in SIDES
    }
    assert {entry["side"] for entry in site.ledger("task = 'shared'")} == set(SIDES)
    for worker in workers:
        assert not any(word in worker.output for word in ("ERROR", "Traceback")), worker.output


@VERSIONS
def test_graphile_worker_rs_with_a_local_queue(site: MixedQueue, version: str) -> None:
    """Version 0.13.5 runs several jobs of one named queue at the same time, and the doctor names the queue."""
    breaks = version == WITHOUT_RETIREMENTS
    for _ in range(10):
        site.add("job", {}, queue_name="serial")
    rust = rust_worker(version)
    with site.closed_gate() as gate, rust.running(site.url, ["job"], concurrency=10, poll_ms=POLL, local_queue=20):
        site.wait_for(10 if breaks else 1, "begun is not null")
        facts = site.client.doctor.examine()
        gate.open()
        site.wait_until_settled()

    assert facts.parallel_queues == (["serial"] if breaks else [])
    assert (site.overlaps() != []) == breaks


# -- job keys ---------------------------------------------------------------------------------------------------------

MODES: Final = ("replace", "preserve_run_at", "unsafe_dedupe")
BY_NODE: Final = """
for (const { key, mode, runAt, from } of input.adds)
  await utils.addJob("job", { from }, { jobKey: key, jobKeyMode: mode, runAt: new Date(runAt) });
"""


def add_under_keys(site: MixedQueue, side: str, keys: Sequence[tuple[str, str]], run_at: datetime) -> None:
    """Let a language add jobs under these keys and modes."""
    match side:
        case "python":
            for key, mode in keys:
                site.client.add("job", {"from": side}, job_key=key, job_key_mode=mode, run_at=run_at)  # type: ignore[call-overload]
        case "node":
            adds = [{"key": key, "mode": mode, "runAt": run_at.isoformat(), "from": side} for key, mode in keys]
            by_node(site, node_worker(), BY_NODE, adds=adds)
        case _:
            for key, mode in keys:
                rust_worker().add(
                    site.url, "job", {"from": side}, job_key=key, job_key_mode=mode, run_at=run_at.isoformat()
                )


def test_a_key_of_one_language_is_the_same_key_in_the_others(site: MixedQueue) -> None:
    def keys(first: str, second: str) -> list[tuple[str, str]]:
        return [(f"{first} {second} {mode}", mode) for mode in MODES]

    for first in SIDES:
        add_under_keys(site, first, [each for second in SIDES for each in keys(first, second)], LATER)
    for second in SIDES:
        added = [each for first in SIDES for each in keys(first, second)]
        add_under_keys(site, second, added, LATER + timedelta(days=1))

    found = {job["key"]: (job["payload"]["from"], job["run_at"]) for job in site.jobs()}
    assert len(found) == len(site.jobs())
    for first in SIDES:
        for second in SIDES:
            assert found[f"{first} {second} replace"] == (second, LATER + timedelta(days=1))
            assert found[f"{first} {second} preserve_run_at"] == (second, LATER)
            assert found[f"{first} {second} unsafe_dedupe"] == (first, LATER)


@VERSIONS
def test_a_running_job_superseded_by_another_language_never_comes_back(site: MixedQueue, version: str) -> None:
    """The new job is added by the language after the one that runs the old job."""
    tasks = {side: f"for_{side}" for side in SIDES}
    after = {"python": "rust", "rust": "node", "node": "python"}
    with site.closed_gate() as gate, fleet(site, [], version, jobs=1) as workers:
        for task in tasks.values():
            site.add(task, {"fails": True}, job_key=task)
        first = [entry["job_id"] for entry in site.wait_for(3, "begun is not null")]

        for side, task in tasks.items():
            last = {"last": True}
            match after[side]:
                case "python":
                    site.client.add(task, last, job_key=task)
                case "node":
                    body = "await utils.addJob(input.task, { last: true }, { jobKey: input.task });"
                    by_node(site, node_worker(), body, task=task)
                case _:
                    rust_worker(version).add(site.url, task, last, job_key=task)
        gate.open()
        site.wait_for(3)
        site.wait_until_settled(left=first)
        for worker in workers:
            wait_until(lambda worker=worker: "as the test " in worker.output, what="the failure in the log")

    assert {entry["task"]: entry["payload"] for entry in site.ledger("job_id <> all(%s)", first)} == {
        task: {"last": True} for task in tasks.values()
    }
    assert len(site.ledger()) == 6
    for job in site.jobs():
        assert (job["key"], job["is_available"], job["locked_by"]) == (None, False, None)


# -- batch jobs -------------------------------------------------------------------------------------------------------


def test_a_batch_of_all_languages_loses_what_each_of_them_completes(site: MixedQueue) -> None:
    rust = rust_worker()
    spec = {"job_key": "k", "job_key_mode": "preserve_run_at"}
    site.client.add_batch("batch", [{"fails": "nowhere"}], job_key="k")
    rust.add(site.url, "batch", [{"fails": "in rust"}, {"fails": "in node"}], **spec)
    add = 'await utils.addJob("batch", [{ fails: "in rust" }], { jobKey: "k", jobKeyMode: "preserve_run_at" });'
    by_node(site, node_worker(), add)
    [job] = site.jobs()
    assert [item["fails"] for item in job["payload"]] == ["nowhere", "in rust", "in node", "in rust"]

    rust.run_once(site.url, ["batch"])
    [job] = site.jobs()
    assert ([item["fails"] for item in job["payload"]], job["attempts"]) == (["in rust", "in rust"], 1)
    assert "2 batch item(s) failed" in job["last_error"]


# -- recurring tasks --------------------------------------------------------------------------------------------------


def assert_once_a_minute(site: MixedQueue, since: datetime, items: int) -> None:
    """Each item ran once for each minute, and every minute since then is there."""
    minutes = [entry["run_at"] for entry in site.ledger("ended is not null")]
    distinct = sorted(set(minutes))
    assert len(minutes) == items * len(distinct)
    assert distinct == [since + timedelta(minutes=number) for number in range(1, len(distinct) + 1)]


def test_a_shared_crontab_is_backfilled_once(site: MixedQueue, tmp_path: Path) -> None:
    crontab = tmp_path / "crontab"
    crontab.write_text("* * * * * shared ?id=tick&fill=1h {}\n* * * * * shared ?id=tock&fill=1h {}\n")
    missed = site.now().replace(second=0, microsecond=0) - timedelta(minutes=20)
    for item in ("tick", "tock"):
        site.run("insert into _private_known_crontabs values (%s, %s, %s)", item, missed, missed)
    with fleet(site, ["shared"], crontab=crontab):
        site.wait_for(40)
        site.wait_until_settled()

    assert_once_a_minute(site, missed, items=2)


@pytest.mark.slow
@VERSIONS
def test_a_shared_crontab_adds_each_job_once_a_minute(site: MixedQueue, tmp_path: Path, version: str) -> None:
    crontab = tmp_path / "crontab"
    crontab.write_text("* * * * * shared ?id=tick {}\n* * * * * shared ?id=tock {}\n")
    with fleet(site, ["shared"], version, crontab=crontab):
        wait_until(lambda: len(site.ledger("ended is not null")) >= 6, deadline_seconds=250, what="three minutes")
        site.wait_until_settled()

    first = min(entry["run_at"] for entry in site.ledger())
    assert_once_a_minute(site, first - timedelta(minutes=1), items=2)


# -- graceful stops ---------------------------------------------------------------------------------------------------


@VERSIONS
def test_each_worker_ends_what_it_runs_when_it_is_stopped(site: MixedQueue, version: str) -> None:
    """Node needs its batches for that: without them, it leaves what ends during its stop locked."""
    with site.closed_gate() as gate, fleet(site, [], version, jobs=1, preset=STOPPABLE) as workers:
        for side in SIDES:
            site.add(f"for_{side}", {}, queue_name=side)
        site.wait_for(3, "begun is not null")
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        gate.open()
        codes = [worker.wait_until_ended() for worker in workers]

    assert codes == [-signal.SIGTERM, -signal.SIGTERM, 0]
    assert {entry["side"] for entry in site.ledger("ended is not null")} == set(SIDES)
    assert (site.jobs(), site.locks()) == ([], [])


@VERSIONS
def test_what_graphile_worker_rs_returns_when_stopped_is_run_by_us_as_the_first_attempt(
    site: MixedQueue, version: str
) -> None:
    with site.closed_gate() as gate, rust_worker(version).running(site.url, ["job"], grace_ms=0) as theirs:
        job = site.add("job", {}, queue_name="q")
        site.wait_for(1, "begun is not null")
        before = site.now()
        theirs.stop()
        gate.open()
    returned = site.job(job)
    assert (returned["attempts"], returned["is_available"], site.locks()) == (0, True, [])
    assert returned["run_at"] >= before + timedelta(seconds=25)

    site.client.jobs.reschedule([job], run_at=before)
    site.gw_run_once({"job": WAITS["python"]})
    assert [(entry["side"], entry["attempt"]) for entry in site.ledger()] == [("rust", 1), ("python", 1)]


def assert_each_ran_once(site: MixedQueue, count: int) -> None:
    assert len(site.ledger("ended is not null")) == count
    assert site.run("select job_id from public.ledger group by job_id having count(*) > 1") == []
    assert site.overlaps() == []
    assert (site.jobs(), site.locks()) == ([], [])
