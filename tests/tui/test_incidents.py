"""Eight incidents, played in a real terminal: the first screen names each, and at most four keys end it.

The guide's table of alerts has the same keys. Workers make the states; tests move only the time, and kill workers.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from support.shell import Shell
from support.waiting import wait_until
from tmux import Pane

from gw_core import Client, JobSpec, Runner, TaskRegistry, WorkerSettings

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

LOOPING, UNKNOWN, DUE = 200, 140, 71
QUEUES = 8
MOST_KEYS = 4
SIZE = (80, 24)
"""The usual size, where the least can be seen."""

SLOW = "import time\n\n\ndef mail(payload):\n    time.sleep(600)\n"
PASSED = "- interval '20 minutes'"

Play = Callable[..., Pane]


class Incident:
    """A queue in a database, and the console that shows it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
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
        self.panes.append(Pane(["--connection", self.url, *arguments], size=SIZE, state=self.folder))
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

    def kill_a_worker(self) -> str:
        """Kill a worker that has locked a job in each queue, let twenty minutes pass, and return its id."""
        shell = Shell(self.folder, database=self.url)
        shell.write("tasks/mail.py", SLOW)
        with shell.started("run", "-j", str(QUEUES), "--no-recover") as running:
            self.becomes("select count(*)::int from _private_jobs where locked_by is not null", QUEUES)
            running.send(signal.SIGKILL)
        [(worker,)] = self.sql("select distinct locked_by from _private_jobs where locked_by is not null")
        self.sql(f"update _private_gw_workers set last_heartbeat_at = last_heartbeat_at {PASSED}")
        self.sql(f"update _private_jobs set locked_at = locked_at {PASSED} where locked_by is not null")
        self.sql(f"update _private_job_queues set locked_at = locked_at {PASSED} where locked_by is not null")
        return str(worker)

    @contextmanager
    def worker(self, tasks: TaskRegistry, *, recover: bool = True) -> Iterator[None]:
        settings = WorkerSettings(concurrency=4, recover=recover)
        runner = Runner(self.url, tasks=tasks, settings=settings, handle_signals=False)
        runner.start()
        try:
            alive = "last_heartbeat_at > now() - interval '1 minute' and metadata ? 'tasks'"
            wait_until(lambda: self.sql(f"select 1 from _private_gw_workers where {alive}"))
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


@pytest.fixture
def incident(database_url: str, tmp_path: Path) -> Iterator[Incident]:
    found = Incident(database_url, tmp_path)
    yield found
    for pane in found.panes:
        pane.close()
    found.client.close()


@pytest.fixture
def dead(incident: Incident) -> Iterator[str]:
    """Three incidents in one queue: a loop of failures, an unknown task, and a dead worker, whose id this is."""
    for number in range(DUE):
        incident.client.add(
            "mail", queue_name=f"shop-{number % QUEUES}", run_at=datetime.now(UTC) - timedelta(minutes=4)
        )
    dead = incident.kill_a_worker()
    incident.add("sync_crm", LOOPING)
    incident.add("legacy_import", UNKNOWN, minutes=15)
    with incident.worker(failing("mail", "report", "sync_crm"), recover=False):
        yield dead


def test_three_causes_are_named_and_each_is_ended_by_its_key(incident: Incident, dead: str) -> None:
    causes = (
        "sync_crm keeps failing:",
        f"legacy_import: {UNKNOWN} ready, no live worker knows it",
        f"due jobs in {QUEUES}",
    )
    pane = incident.show()
    pane.shows(*causes)
    pane.press("Down", "Down")
    pane.shows("P pauses or resumes it")
    pane.press("P")
    pane.shows("Pause task:sync_crm?")
    pane.press("Enter")
    incident.becomes("select count(*)::int from _private_gw_pauses where kind = 'task' and name = 'sync_crm'", 1)
    assert pane.keys <= MOST_KEYS

    pane = incident.show()
    pane.shows(*causes)
    pane.press("u")
    pane.shows(f"Unlock {dead}", "presumed dead")
    pane.press("Enter")

    incident.becomes(f"select count(*)::int from _private_jobs where locked_by = '{dead}'", 0)
    incident.becomes(f"select count(*)::int from _private_job_queues where locked_by = '{dead}'", 0)
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
    scheduler = Runner(
        incident.url, tasks=failing("nightly_cleanup"), crontab=crontab.read_text(), handle_signals=False
    )
    scheduler.start()
    incident.becomes("select count(*)::int from _private_known_crontabs", 1)
    scheduler.stop()
    scheduler.wait()
    incident.sql("update _private_known_crontabs set known_since = known_since - interval '2 days'")
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
