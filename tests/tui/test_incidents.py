"""Eight incidents, played in a real terminal: the first screen names each, and at most four keys end it.

The guide's table of alerts has the same keys. Workers make the states; tests move only the time, and kill workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from support.waiting import wait_until
from tmux import Pane

from gw_core import Client, JobSpec, Runner, TaskRegistry, WorkerSettings

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

LOOPING, UNKNOWN, DUE = 200, 140, 71
DEAD = "gw-app-3-977-760e1f"
MOST_KEYS = 4
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 34), id="120x34")]

# A dead worker that has locked eight queues, beside one that is alive.
DEAD_WORKER = f"""
insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata) values
  ('{DEAD}', now() - interval '1 day', now() - interval '20 minutes', 'app-3', 977, '1', '{{}}'),
  ('gw-app-1-12-aa01', now() - interval '1 day', now(), 'app-1', 12, '1',
   '{{"tasks": ["mail", "report", "sync_crm"]}}');
update _private_job_queues set locked_by = '{DEAD}', locked_at = now() - interval '20 minutes';
update _private_jobs set locked_by = '{DEAD}', locked_at = now() - interval '20 minutes', attempts = 1
 where id in (select min(id) from _private_jobs where job_queue_id is not null group by job_queue_id);
"""

Play = Callable[..., Pane]


class Incident:
    """A queue in a database, and the console that shows it."""

    def __init__(self, url: str, size: tuple[int, int], folder: Path) -> None:
        self.url, self.size, self.folder = url, size, folder
        self.client = Client(url)
        self.client.migrate()
        self.panes: list[Pane] = []

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        options = "-c search_path=graphile_worker"
        with psycopg.connect(self.url, autocommit=True, options=options) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def add(self, task: str, count: int = 1, *, minutes: int = 0, **options: str) -> None:
        """Add jobs that have been due for some minutes."""
        at = datetime.now(UTC) - timedelta(minutes=minutes)
        self.client.add_many([JobSpec(task=task, run_at=at, **options) for _ in range(count)])

    def show(self, *arguments: str) -> Pane:
        """Open the console."""
        self.panes.append(Pane(["--connection", self.url, *arguments], size=self.size, state=self.folder))
        return self.panes[-1]

    def becomes(self, statement: str, expected: int) -> None:
        """Wait until the query returns the expected number."""
        end = time.monotonic() + 60
        while (found := self.sql(statement)) != [(expected,)]:
            assert time.monotonic() < end, (statement, found)
            time.sleep(0.1)

    def fail_once(self, *names: str) -> None:
        """Run what is due in a worker whose tasks fail."""
        Runner(self.url, tasks=failing(*names), handle_signals=False).run_once()

    @contextmanager
    def worker(self, tasks: TaskRegistry) -> Iterator[None]:
        runner = Runner(self.url, tasks=tasks, settings=WorkerSettings(concurrency=4), handle_signals=False)
        runner.start()
        try:
            wait_until(lambda: self.sql("select 1 from _private_gw_workers where metadata ? 'tasks'"))
            yield
        finally:
            runner.stop()
            runner.wait()


def failing(*names: str) -> TaskRegistry:
    def fail(payload: object) -> None:
        raise KeyError("amount")

    tasks = TaskRegistry()
    for name in names:
        tasks.register(name, fail)
    return tasks


@pytest.fixture(params=SIZES)
def incident(database_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Incident]:
    found = Incident(database_url, request.param, tmp_path)
    yield found
    for pane in found.panes:
        pane.close()
    found.client.close()


@pytest.fixture
def three(incident: Incident) -> Incident:
    """Three incidents in one queue: a loop of failures, an unknown task, and a dead worker."""
    incident.add("sync_crm", LOOPING)
    incident.fail_once("sync_crm")
    for number in range(DUE):
        incident.client.add("mail", queue_name=f"shop-{number % 8}", run_at=datetime.now(UTC) - timedelta(minutes=4))
    incident.add("legacy_import", UNKNOWN, minutes=15)
    incident.sql(DEAD_WORKER)
    return incident


def test_three_causes_are_named_and_each_is_ended_by_its_key(three: Incident) -> None:
    pane = three.show()
    pane.shows("sync_crm keeps failing:", f"legacy_import: {UNKNOWN} ready, no live worker knows it", f"worker {DEAD}")

    pane.press("u")
    pane.shows(f"Unlock {DEAD}", "presumed dead")
    pane.press("Enter")

    three.becomes(f"select count(*)::int from _private_jobs where locked_by = '{DEAD}'", 0)
    three.becomes(f"select count(*)::int from _private_job_queues where locked_by = '{DEAD}'", 0)
    assert pane.keys <= MOST_KEYS


def test_a_failing_loop_is_paused(three: Incident) -> None:
    pane = three.show()
    pane.shows("sync_crm keeps failing:", f"legacy_import: {UNKNOWN} ready", f"worker {DEAD}")

    pane.press("Down", "Down")
    pane.shows("P pauses or resumes it")
    pane.press("P")
    pane.shows("Pause task:sync_crm?")
    pane.press("Enter")

    three.becomes("select count(*)::int from _private_gw_pauses where kind = 'task' and name = 'sync_crm'", 1)
    assert pane.keys <= MOST_KEYS


def test_a_limit_that_starves_a_task_is_raised(incident: Incident) -> None:
    go_on, tasks = threading.Event(), TaskRegistry()
    tasks.register("report", lambda payload: go_on.wait(120))
    incident.client.limits.set("report", running=1)
    incident.add("report", 20, minutes=20)
    try:
        with incident.worker(tasks):
            pane = incident.show()
            pane.shows("report: 19 ready, limited: 1 of at most 1")
            pane.press("L")
            pane.shows("Limit report")
            pane.press("4", "Enter")
            incident.becomes("select most_running from _private_gw_limits where task = 'report'", 4)
            incident.becomes("select count(*)::int from _private_jobs where locked_at is not null", 4)
            assert pane.keys <= MOST_KEYS
            go_on.set()
    finally:
        go_on.set()


def test_a_transaction_that_blocks_claims_is_ended(incident: Incident) -> None:
    incident.add("mail")
    with psycopg.connect(incident.url, application_name="nightly") as blocking:
        blocking.execute("lock table graphile_worker._private_jobs in share row exclusive mode")
        tasks = TaskRegistry()
        tasks.register("mail", lambda payload: None)
        with incident.worker(tasks):
            pane = incident.show()
            pane.shows(f"nightly {blocking.info.backend_pid}: lock table")
            pane.press("E")
            pane.shows("End session", "rolled back")
            pane.press("Tab", "Enter")
            incident.becomes("select count(*)::int from _private_jobs", 0)
            assert pane.keys <= MOST_KEYS
        blocking.close()


def test_a_stopped_cron_is_run_now(incident: Incident) -> None:
    crontab = incident.folder / "crontab"
    crontab.write_text("30 2 * * * nightly_cleanup\n")
    incident.sql(
        "insert into _private_known_crontabs (identifier, known_since, last_execution)"
        " values ('nightly_cleanup', now() - interval '9 days', now() - interval '2 days')"
    )
    pane = incident.show("--crontab", str(crontab))
    pane.shows("nightly_cleanup missed 02:30")
    pane.press("Enter")
    pane.shows("known    since")  # of the page, not of the overview
    pane.press("t")
    pane.shows("Run nightly_cleanup now?")
    pane.press("Enter")
    incident.becomes("select count(*)::int from _private_jobs", 1)
    assert pane.keys <= MOST_KEYS


def test_the_queue_of_one_tenant_is_paused(incident: Incident) -> None:
    for number in range(20):
        incident.add("import", 10, queue_name=f"tenant-{number}")
    incident.add("import", 1_200, queue_name="tenant-150")
    pane = incident.show()
    pane.shows("queue tenant-150: 1,200 due jobs, 200 in 20 others")
    if "P pauses" not in pane.shows("tenant-150"):
        pane.press("Down")
    pane.shows("P pauses or resumes it")
    pane.press("P")
    pane.shows("Pause queue:tenant-150?")
    pane.press("Enter")
    incident.becomes("select count(*)::int from _private_gw_pauses where kind = 'queue' and name = 'tenant-150'", 1)
    assert pane.keys <= MOST_KEYS


def test_a_poison_payload_is_failed(incident: Incident) -> None:
    incident.add("render")
    for _ in range(6):
        incident.fail_once("render")
        incident.sql("update _private_jobs set run_at = now() - interval '1 second'")
    incident.sql("update _private_jobs set run_at = now() + interval '5 minutes'")
    pane = incident.show()
    pane.shows("of render failed 6 times: KeyError: 'amount'")
    pane.press("Enter")
    pane.shows("id:1", "render")
    pane.press("f")
    pane.shows("Fail permanently?")
    pane.press("Tab", "Enter")
    incident.becomes("select count(*)::int from _private_jobs where attempts = max_attempts", 1)
    assert pane.keys <= MOST_KEYS
