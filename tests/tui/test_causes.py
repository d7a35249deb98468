"""Each alert rests on a fact in the database and ends with it: workers make the states, and SQL confirms them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from console_fixture import queue_source
from psycopg.conninfo import make_conninfo
from support.waiting import wait_until

from gw_core import Client, JobSpec, Runner, Selection, TaskRegistry, WorkerSettings
from gw_core.front_ends import BackendSession, operator_name
from gw_tui.actions import Complete, EndSession
from gw_tui.rules.alerts import CAUSES, Alert, AlertInput, Severity, alerts
from gw_tui.screens.overview import BlockedQuery, OverviewQuery
from gw_tui.screens.tasks import TasksQuery

pytestmark = pytest.mark.once

PASSED = """
update _private_jobs set run_at = run_at - %(by)s, created_at = created_at - %(by)s, updated_at = updated_at - %(by)s,
       locked_at = locked_at - %(by)s;
update _private_job_queues set locked_at = locked_at - %(by)s;
update _private_gw_statistics set minute = minute - %(by)s;
update _private_gw_pauses set paused_at = paused_at - %(by)s;
update _private_gw_workers set last_heartbeat_at = last_heartbeat_at - %(by)s where id <> all(%(alive)s)
"""


class Queue:
    """A queue, and the alerts of a console that shows it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = Client(url)
        self.source = queue_source(url)

    def sql(self, statement: str, values: Any = None, *, url: str = "") -> list[tuple[Any, ...]]:
        with psycopg.connect(url or self.url, autocommit=True, options="-c search_path=graphile_worker") as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def time_passes(self, alive: tuple[str, ...] = (), **by: float) -> None:
        """Let everything be as it will be after some time; these workers live on."""
        for statement in PASSED.split(";"):
            self.sql(statement, {"by": timedelta(**by), "alive": list(alive)})

    def alerts(self, *, blocked: bool = False) -> list[Alert]:
        self.source.read_background()
        query = (BlockedQuery if blocked else OverviewQuery)(with_held=True)
        return alerts(AlertInput(snapshot=self.source.snapshot(), sample=query.ask(self.source)))

    def words(self) -> list[str]:
        return [each.what for each in self.alerts()]

    def run_once(self, *failing: str, works: tuple[str, ...] = ()) -> None:
        """Run what is due in a worker whose tasks fail."""
        Runner(self.url, tasks=registry(*failing, works=works), handle_signals=False).run_once()

    @contextmanager
    def worker(self, tasks: TaskRegistry) -> Iterator[str]:
        """Run a worker, and provide its id once it sends heartbeats."""
        runner = Runner(self.url, tasks=tasks, settings=WorkerSettings(concurrency=4), handle_signals=False)
        runner.start()
        try:
            wait_until(lambda: self.sql("select 1 from _private_gw_workers where metadata ? 'tasks'"))
            yield self.sql("select id from _private_gw_workers where metadata ? 'tasks'")[0][0]
        finally:
            runner.stop()
            runner.wait()


def registry(*failing: str, works: tuple[str, ...] = ()) -> TaskRegistry:
    def fail(payload: object) -> None:
        raise ConnectionRefusedError("crm.example.com")

    tasks = TaskRegistry()
    for name in failing:
        tasks.register(name, fail)
    for name in works:
        tasks.register(name, lambda payload: None)
    return tasks


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    found = Queue(database_url)
    found.client.migrate()
    yield found
    found.source.close()
    found.client.close()


RECORDED = "select sum(failed)::int, sum(completed + failed)::int from _private_gw_statistics where task = %s"


def test_a_task_keeps_failing_while_its_attempts_fail_however_old_its_jobs_are(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="sync_crm")] * 60)
    queue.time_passes(minutes=30)
    assert queue.words() == ["jobs are waiting, no live worker (sync_crm)"]

    queue.run_once("sync_crm")

    assert queue.sql(RECORDED, ["sync_crm"]) == [(60, 60)]
    (alert,) = (each for each in queue.alerts() if "keeps failing" in each.what)
    assert alert.what == "sync_crm keeps failing: 60 failures/min (100%), 60 in backoff"
    assert (alert.severity, alert.act, alert.target) == (Severity.CRITICAL, "pause", "task:sync_crm")

    queue.client.pauses.pause("task:sync_crm")
    (alert,) = (each for each in queue.alerts() if "keeps failing" in each.what)
    assert (alert.severity, alert.what.endswith(", paused")) == (Severity.WARNING, True)

    queue.time_passes(minutes=15)
    assert not any("keeps failing" in each for each in queue.words())


def test_jobs_that_were_touched_or_failed_manually_do_not_keep_failing(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="resize")] * 60)
    queue.run_once("resize")
    queue.time_passes(days=2)
    queue.sql("update _private_jobs set updated_at = now()")
    queue.client.add_many([JobSpec(task="c")] * 50)
    queue.client.jobs.fail("task:c", reason="stop")

    words = queue.words()

    assert not any("keeps failing" in each for each in words)
    assert "c: 50 jobs failed permanently" in words


def test_a_task_that_mostly_works_is_no_alarm(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="mail")] * 200)
    queue.run_once(works=("mail",))
    queue.client.add_many([JobSpec(task="mail")] * 15)
    queue.run_once("mail")

    assert queue.sql(RECORDED, ["mail"]) == [(15, 215)]
    assert queue.words() == []


def test_failures_that_are_not_recorded_yet_count(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="sync_crm")] * 60)
    queue.run_once("sync_crm")
    queue.sql("truncate _private_gw_statistics")

    assert any(each.startswith("sync_crm keeps failing: 60 jobs in 10 min") for each in queue.words())

    queue.client.jobs.complete("task:sync_crm")
    assert queue.words() == []


def test_a_paused_queue_is_no_worker_and_hides_no_unknown_task(queue: Queue) -> None:
    with queue.worker(registry(works=("charge",))) as worker:
        queue.client.add_many([JobSpec(task="nobody_knows")] * 50)
        expected = "nobody_knows: 50 ready, no live worker knows it"
        assert expected in queue.words()

        queue.client.pauses.pause("queue:otherq")

        assert [each.id for each in queue.source.snapshot().workers] == [worker]
        assert {each.name: each.known_by for each in queue.client.tasks.list()} == {
            "nobody_knows": (),
            "charge": (worker,),
        }
        assert expected in queue.words()

        # A worker of Node.js, which reports no tasks, may know it; that is not certain, and not nothing either.
        queue.client.add("charge", queue_name="slow", run_at=timedelta(hours=1))
        queue.sql("update _private_jobs set locked_by = 'node-1', locked_at = now() where job_queue_id is not null")
        (alert,) = (each for each in queue.alerts() if each.subject == "nobody_knows")
        assert alert.what == "nobody_knows: 50 ready, no gw worker knows it; node-1 may"
        assert {each.name: each.known_by for each in queue.client.tasks.list()}["charge"] == (worker,)

        queue.client.jobs.complete("task:nobody_knows")
        assert not any("nobody_knows" in each for each in queue.words())


def test_an_outage_is_red_whatever_is_paused_or_locked(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="legacy")] * 10)
    queue.client.add("long", queue_name="slow")
    queue.sql("update _private_jobs set locked_by = 'node-1', locked_at = now() where job_queue_id is not null")
    queue.time_passes(hours=2)
    queue.client.pauses.pause("queue:anything")

    (alert,) = (each for each in queue.alerts() if each.subject == "backlog")

    assert alert.severity is Severity.CRITICAL
    assert alert.what.startswith("jobs are waiting, no live worker (legacy); node-1 last took a lock 2h")


def test_a_dead_worker_is_an_alert_while_it_holds_something(queue: Queue) -> None:
    queue.client.add("mail", queue_name="letters", run_at=timedelta(hours=3))
    queue.sql(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata)"
        " values ('w', now(), now(), '{}'); update _private_job_queues set locked_by = 'w', locked_at = now()"
    )
    queue.time_passes(hours=1)
    assert "1 queue locked: worker w is gone" in queue.words()

    queue.client.workers.unlock(["w"])

    assert queue.sql("select count(*) from _private_gw_workers where id = 'w'") in ([(0,)], [(1,)])
    assert not any("is gone" in each for each in queue.words())


def test_a_full_limit_and_a_pause_are_the_cause_of_a_backlog(queue: Queue) -> None:
    go_on = threading.Event()
    tasks = registry(works=("paused",))
    tasks.register("report", lambda payload: go_on.wait(60))
    queue.client.limits.set("report", running=1)
    queue.client.pauses.pause("task:paused", reason="billing freeze", by="root@vm")
    queue.client.add_many([JobSpec(task=name) for name in ("report", "paused") for _ in range(20)])
    queue.time_passes(minutes=20)
    locked = "select count(*)::int from _private_jobs where locked_at is not null"
    try:
        with queue.worker(tasks):
            wait_until(lambda: queue.sql(locked) == [(1,)])
            words = queue.words()
            assert "report: 19 ready, limited: 1 of at most 1 job is locked" in words
            assert "task paused is paused by root@vm: billing freeze, 20 ready" in words
            assert not any("oldest ready job" in each for each in words)

            queue.client.limits.remove("report")
            queue.client.pauses.resume("task:paused")
            go_on.set()
            wait_until(lambda: not queue.words())
    finally:
        go_on.set()


def test_a_rate_is_the_cause_while_it_is_used_up_and_not_otherwise(queue: Queue) -> None:
    queue.client.limits.set("report", per_period=2, period=timedelta(hours=1), burst=2)
    queue.client.add_many([JobSpec(task="report")] * 5)
    queue.run_once(works=("report",))
    queue.time_passes(minutes=20)
    left = "select count(*)::int from _private_jobs where run_at <= now() and locked_at is null"
    assert queue.sql(left) == [(3,)]

    assert any(each == "report: 3 ready, limited: at most 2 start in 1h" for each in queue.words())

    queue.sql("update _private_gw_buckets set filled_at = filled_at - interval '1 hour'")
    assert not any("limited" in each for each in queue.words())


def test_the_doctor_and_the_console_name_the_same_causes_and_no_cause_outlives_its_fact(queue: Queue) -> None:
    """A mess of waiting tasks, each for another reason, is judged by both and by SQL, before and after the reasons."""
    go_on, tasks = threading.Event(), registry(works=("paused", "rated", "served"))
    tasks.register("full", lambda payload: go_on.wait(60))
    client = queue.client
    client.limits.set("full", running=1)
    client.limits.set("rated", per_period=1, period=timedelta(hours=1), burst=1)
    client.pauses.pause("task:paused", reason="billing freeze", by="root@vm")
    names = ("paused", "full", "rated", "unknown")
    client.add_many([JobSpec(task=name) for name in names for _ in range(20)])
    queue.time_passes(minutes=20)
    client.add_many([JobSpec(task="stopped")] * 50)
    client.jobs.fail("task:stopped", reason="by hand")
    try:
        with queue.worker(tasks):
            wait_until(lambda: queue.sql(FULL) == [(1, 1)])
            waiting = {name: number for name, number in queue.sql(WAITING) if name in names}
            assert waiting == {"paused": 20, "full": 19, "rated": 19, "unknown": 20}
            assert queue.sql("select name from _private_gw_pauses") == [("paused",)]
            assert _causes_of_doctor(queue) == _causes_of_console(queue) == EXPECTED

            client.pauses.resume("task:paused")
            client.limits.remove("full")
            client.limits.remove("rated")
            client.jobs.complete("task:unknown")
            client.jobs.retry("task:stopped")
            client.jobs.complete("task:stopped")
            go_on.set()
            wait_until(lambda: queue.sql(WAITING) == [])
            wait_until(lambda: _causes_of_doctor(queue) == _causes_of_console(queue) == {})
    finally:
        go_on.set()


FULL = """
select count(*) filter (where tasks.identifier = 'full')::int, (select count(*)::int from _private_gw_buckets)
  from _private_jobs as jobs join _private_tasks as tasks on tasks.id = task_id where locked_at is not null
"""
WAITING = """
select tasks.identifier, count(*)::int from _private_jobs as jobs join _private_tasks as tasks on tasks.id = task_id
 where locked_at is null and run_at <= now() group by 1
"""
EXPECTED = {"paused": "pause", "full": "limit", "rated": "limit", "unknown": "no worker", "stopped": "failed"}


def _causes_of_doctor(queue: Queue) -> dict[str, str]:
    """Return the cause for each task in the doctor's findings."""
    findings = [each for each in queue.client.doctor.findings() if each.status.value != "ok"]
    found = {}
    for each in findings:
        match each.check, each.message.split():
            case "backlog", ["jobs", "of", "the", "task", task, *_] if "is paused by root@vm" in each.message:
                found[task] = "pause"
            case "backlog", ["jobs", "of", "the", "task", task, *_] if "its limit is reached" in each.message:
                found[task] = "limit"
            case "backlog", ["jobs", "of", "the", "task", task, *_] if "no live worker has this task" in each.message:
                found[task] = "no worker"
            case "failed", [_, "jobs", "of", "the", "task", task, *_]:
                found[task] = "failed"
            case "backlog", _:
                found[each.message] = "another cause"
    return found


def _causes_of_console(queue: Queue) -> dict[str, str]:
    """Return the cause for each task in the alerts."""
    found = {}
    for each in queue.alerts():
        match each.act, each.what:
            case "pause", what if "is paused by root@vm" in what:
                found[each.target.removeprefix("task:")] = "pause"
            case "limit", what if "limited:" in what:
                found[each.target] = "limit"
            case _, what if what.endswith("no live worker knows it"):
                found[each.subject] = "no worker"
            case _, what if what.endswith("failed permanently"):
                found[each.task] = "failed"
            case _, what:
                found[what] = "another cause"
    return found


def test_a_long_pause_of_a_queue_names_its_author(queue: Queue) -> None:
    queue.client.pauses.pause("queue:billing", reason="freeze", by="root@vm")
    assert queue.words() == []

    for minutes in (20, 5 * 60):  # its lock is never that of a dead worker
        queue.time_passes(minutes=minutes)
        assert queue.words() == ["queue billing is paused by root@vm: freeze"]
    assert not queue.source.snapshot().workers

    queue.client.pauses.resume("queue:billing")
    assert queue.words() == []


def test_a_queue_that_outgrows_all_others_is_named(queue: Queue) -> None:
    specs = [JobSpec(task="import", queue_name=f"tenant-{number % 20}") for number in range(200)]
    queue.client.add_many([*specs, *[JobSpec(task="import", queue_name="tenant-150")] * 1_500])
    due = dict(
        queue.sql(
            "select queue_name, count(*)::int from _private_jobs as jobs join _private_job_queues as queues"
            " on queues.id = job_queue_id where run_at <= now() group by 1"
        )
    )

    assert f"queue tenant-150: {due['tenant-150']:,} due jobs, 200 in 20 others" in queue.words()
    assert {each.name: each.due for each in queue.source.queue_sizes()} == due

    queue.client.jobs.complete("queue:tenant-150")
    wait_until(lambda: not any("tenant-150" in each for each in queue.words()))


@pytest.fixture
def blocker(queue: Queue) -> Iterator[psycopg.Connection[Any]]:
    """A session that keeps every claim waiting."""
    with (
        psycopg.connect(queue.url, application_name="nightly") as blocking,
        psycopg.connect(queue.url, application_name="gw:claim", autocommit=True) as claim,
    ):
        blocking.execute("lock table graphile_worker._private_jobs in share row exclusive mode")
        waiting = threading.Thread(
            target=lambda: claim.execute("update graphile_worker._private_jobs set revision = revision where false")
        )
        waiting.start()
        yield blocking
        blocking.close()
        waiting.join()


def test_a_transaction_that_blocks_claims_is_the_first_alert_and_can_be_ended(
    queue: Queue, blocker: psycopg.Connection[Any]
) -> None:
    pid = blocker.info.backend_pid
    blocked = "select count(*)::int from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
    wait_until(lambda: queue.sql(blocked, [pid]) == [(1,)])
    wait_until(lambda: any(each.act == "end_session" for each in queue.alerts(blocked=True)))

    first = queue.alerts(blocked=True)[0]

    assert (first.severity, first.place, first.filter) == (Severity.CRITICAL, "locks", f"blocker {pid}")
    assert first.what.startswith(f"1 claim waits for nightly {pid}: lock table")
    session = next(each for each in queue.source.blockages().blockers if each.pid == pid)

    (finding,) = (each for each in queue.client.doctor.findings() if each.check == "blocked")
    assert (finding.status.value, finding.fix) == ("error", f"select pg_terminate_backend({pid})")
    assert f"1 claim waits for nightly {pid}: lock table" in finding.message

    result = next(queue.source.run(EndSession(session=session)))

    assert result.done == (str(pid),)
    (recorded,) = queue.client.history.actions()
    assert (recorded.action, recorded.by, recorded.targets) == ("end_session", operator_name(), (f"session:{pid}",))
    assert recorded.details["statement"].startswith("lock table")
    wait_until(lambda: queue.sql(blocked, [pid]) == [(0,)])
    assert not any(each.act == "end_session" for each in queue.alerts(blocked=True))
    assert [each.status.value for each in queue.client.doctor.findings() if each.check == "blocked"] == ["ok"]
    assert next(queue.source.run(EndSession(session=session))).skipped


@pytest.fixture
def records_lock(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    """A session that lets no action be recorded; the console waits for it for a short time only."""
    monkeypatch.setattr("gw_core.postgres.road.bulk_actions.LOCK_TIMEOUT", timedelta(milliseconds=200))
    with psycopg.connect(queue.url, application_name="nightly") as locking:
        locking.execute("lock table graphile_worker._private_gw_actions in access exclusive mode")
        yield locking
        locking.close()


def of_program(queue: Queue, name: str) -> BackendSession:
    found = queue.source.blockages().oldest_transactions
    return next(each for each in found if each.application == name)


def test_a_session_that_locks_the_records_can_be_ended_and_is_recorded(
    queue: Queue, records_lock: psycopg.Connection[Any]
) -> None:
    pid = str(records_lock.info.backend_pid)

    result = next(queue.source.run(EndSession(session=of_program(queue, "nightly"))))

    assert (result.done, result.message) == ((pid,), "")
    with pytest.raises(psycopg.OperationalError):
        records_lock.execute("select 1")
    (recorded,) = queue.client.history.actions()
    assert (recorded.action, recorded.by, recorded.targets) == ("end_session", operator_name(), (f"session:{pid}",))


def test_an_end_that_cannot_be_recorded_says_so(queue: Queue, records_lock: psycopg.Connection[Any]) -> None:
    with psycopg.connect(queue.url, application_name="report") as report:
        report.execute("select pg_current_xact_id()")
        pid = report.info.backend_pid

        result = next(queue.source.run(EndSession(session=of_program(queue, "report"))))

        assert result.done == (str(pid),)
        assert result.message.startswith(f"session {pid} was ended, but this is not recorded: another session keeps")
        with pytest.raises(psycopg.OperationalError):
            report.execute("select 1")
    records_lock.rollback()
    assert queue.client.history.actions() == []


def test_a_locked_table_is_unknown_and_not_empty(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # a console does not wait as long as those of other tests
    queue = Queue(database_url)
    queue.client.migrate()
    queue.client.add_many([JobSpec(task="mail")] * 3)
    assert queue.source.snapshot().knows_waiting
    with psycopg.connect(queue.url) as blocking:
        blocking.execute("lock table graphile_worker._private_jobs in access exclusive mode")

        assert not queue.source.snapshot().knows_waiting
        assert BlockedQuery().ask(queue.source).statistics is None
    queue.source.close()
    queue.client.close()


def test_an_action_after_a_restart_of_the_server_works(queue: Queue) -> None:
    """The connection for actions may be gone without anyone having noticed."""
    for number in (1, 2):
        job = queue.client.add("mail", payload={"n": number})
        (found,) = queue.client.jobs.list(Selection.of(id=[job.id])).jobs
        assert next(queue.source.run(Complete(jobs=[found.job]))).done == (str(job.id),)
        admin = make_conninfo(queue.url, dbname="postgres")
        ended = queue.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = %s and application_name like 'gw-tui%%'",
            [queue.sql("select current_database()")[0][0]],
            url=admin,
        )
        assert ended


def test_every_cause_names_the_fact_that_it_rests_on() -> None:
    assert all(each.fact for each in CAUSES)


def test_errors_that_were_not_found_in_time_are_unknown(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # see above
    monkeypatch.setattr("gw_tui.screens.overview.ERRORS_TIMEOUT", timedelta(0))
    queue = Queue(database_url)
    queue.client.migrate()
    assert OverviewQuery().ask(queue.source).errors == []
    queue.client.add_many([*[JobSpec(task="other")] * 3_000, JobSpec(task="mail")])
    queue.run_once("mail")

    assert OverviewQuery().ask(queue.source).errors is None
    queue.source.close()
    queue.client.close()


def test_errors_in_a_large_table_are_searched_among_the_jobs_that_come_due_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # see above
    queue = Queue(database_url)
    queue.client.migrate()
    queue.client.add_many([*[JobSpec(task="other")] * 3_000, JobSpec(task="mail")])
    queue.run_once("mail")

    assert [each.job.task for each in OverviewQuery(is_small=False).ask(queue.source).errors or ()] == ["mail"]
    queue.source.close()
    queue.client.close()


def test_counts_that_cannot_be_read_are_unknown_and_hide_nothing_else(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # see above
    monkeypatch.setattr("gw_tui.screens.overview.ERRORS_TIMEOUT", timedelta(seconds=30))
    queue = Queue(database_url)
    queue.client.migrate()
    queue.client.add_many([JobSpec(task="mail")] * 3)
    queue.run_once("mail")
    assert OverviewQuery().ask(queue.source).statistics is not None  # the doctor's findings serve for a while
    with psycopg.connect(queue.url) as blocking:
        blocking.execute("lock table graphile_worker._private_gw_limits in access exclusive mode")

        sample = OverviewQuery().ask(queue.source)
        counts, runs = TasksQuery("mail").ask(queue.source)

        assert (sample.statistics, counts) == (None, None)
        assert len(sample.errors or ()) == 3
        assert sample.sizes == []
        assert sample.runs is not None
        assert runs is not None
    assert TasksQuery().ask(queue.source)[0] is not None
    queue.source.close()
    queue.client.close()
