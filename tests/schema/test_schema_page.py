"""docs/reference/schema.md describes the installed schema, and a worker written from it works beside ours."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.project_files import project_files
from support.schema_fixture import SchemaFixture
from support.time_range import MeasuredBlock
from support.waiting import wait_until

from gw_core import Client, JobContext, Runner, TaskRegistry

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "schema.md").read_text("utf-8")
SQL = CHECKOUT / "sql"
SECTION = re.compile(r"^### `(\w+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
COLUMN = re.compile(r"^\| `(\w+)` \| (\S+) \|", re.MULTILINE)
STATEMENT = re.compile(r"```sql\n-- (\w+)\n(.*?)```", re.DOTALL)

COLUMNS = """
select relname,
       attname,
       case format_type(atttypid, atttypmod)
         when 'timestamp with time zone' then 'timestamptz'
         when 'double precision' then 'float8'
         else format_type(atttypid, atttypmod)
       end as type
  from pg_attribute
  join pg_class on pg_class.oid = attrelid
 where relnamespace = 'graphile_worker'::regnamespace
   and relkind in ('r', 'p', 'v', 'c')
   and not relispartition
   and attnum > 0
   and not attisdropped
 order by relname, attnum
"""
FUNCTIONS = """
select proname, proargnames from pg_proc
 where pronamespace = 'graphile_worker'::regnamespace and not starts_with(proname, '_private_')
"""


WRONG_CALLS = {
    "23514": (
        "repeat('x', 129)",
        "'x', queue_name => repeat('q', 129)",
        "'x', job_key => ''",
        "'x', job_key => repeat('k', 513)",
        "'x', max_attempts => 0",
    ),
    "23502": ("null",),
    "22003": ("'x', priority => 99999",),
    "GWBKM": ("'x', job_key => 'k', job_key_mode => 'nope'",),
}
SHARED_TRIGGERS = """
select tgname from pg_trigger
  join pg_class on pg_class.oid = tgrelid
 where relnamespace = 'graphile_worker'::regnamespace and not starts_with(relname, '_private_gw_') and not tgisinternal
"""


def test_wrong_calls_raise_the_codes_of_the_page(schema: SchemaFixture) -> None:
    section = PAGE[PAGE.index("### Errors of") : PAGE.index("## Notifications")]
    assert re.findall(r"^\| `(\w{5})` \|", section, re.MULTILINE) == list(WRONG_CALLS)

    for code, calls in WRONG_CALLS.items():
        for arguments in calls:
            with pytest.raises(psycopg.Error) as raised:
                schema.run(f"select graphile_worker.add_job({arguments})")
            assert raised.value.sqlstate == code, arguments


def test_the_page_names_every_trigger_that_gw_can_add_to_shared_tables(
    schema: SchemaFixture, database_url: str
) -> None:
    assert schema.run(SHARED_TRIGGERS) == []
    with Client(database_url) as client:
        client.history.record_others(timedelta(days=7))
        triggers = [row["tgname"] for row in schema.run(SHARED_TRIGGERS)]
        client.history.record_others(None)

    assert len(triggers) == 1
    assert all(f"`{name}`" in PAGE for name in triggers)


def test_the_page_has_every_table_with_its_columns_and_nothing_else(schema: SchemaFixture) -> None:
    installed: dict[str, list[tuple[str, str]]] = {}
    for row in schema.run(COLUMNS):
        installed.setdefault(row["relname"], []).append((row["attname"], row["type"]))

    described = {name: COLUMN.findall(section) for name, section in SECTION.findall(PAGE)}

    assert sorted(described) == sorted(installed), "add a section for a new table, or remove that of a former one"
    for name, columns in installed.items():
        assert described[name] == columns, f"the rows of {name}"


def test_the_page_says_what_every_column_means() -> None:
    assert re.findall(r"^\| `(\w+)` \| \S+ \| *\|$", PAGE, re.MULTILINE) == []


def test_the_page_has_every_public_function_with_its_arguments(schema: SchemaFixture) -> None:
    installed = {row["proname"]: row["proargnames"] for row in schema.run(FUNCTIONS)}
    section = PAGE[PAGE.index("## Functions") : PAGE.index("### Errors of")]

    described = {
        name: re.findall(r"`(\w+)`", arguments)
        for name, arguments in re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE)
    }

    assert described == installed


def test_the_page_has_every_channel_and_the_lock_of_the_sweep() -> None:
    section = PAGE[PAGE.index("## Notifications") : PAGE.index("## Locks")]
    statements = [path.read_text("utf-8") for path in project_files(SQL, "*.sql")]
    sent = {channel for text in statements for channel in re.findall(r"pg_notify\('([^']+)'", text)}

    assert set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)) == {
        "gw:…" if each.endswith(":") else each for each in sent
    }
    lock = re.findall(r"advisory_xact_lock\(([^)]+)\)", PAGE[PAGE.index("## Locks") :])
    assert lock == re.findall(r"advisory_xact_lock\(([^)]+)\)", "".join(statements))


# -- a worker in another language ------------------------------------------------------------------------------------


class ForeignWorker:
    """Runs the statements of the page."""

    def __init__(self, url: str, worker_id: str = "perl-1", tasks: tuple[str, ...] = ("mail",)) -> None:
        self.id = worker_id
        self._connection = psycopg.connect(url, autocommit=True, row_factory=psycopg.rows.dict_row)
        self._statements = dict(STATEMENT.findall(PAGE))
        self._task_ids = [row["id"] for row in self.run("tasks", identifiers=list(tasks))]

    def run(self, name: str, **values: Any) -> list[dict[str, Any]]:
        text = re.sub(r"(?<!:):(\w+)", r"%(\1)s", self._statements[name])
        cursor = self._connection.execute(text.encode(), {"worker_id": self.id, **values})
        return cursor.fetchall() if cursor.description else []

    def claim(self) -> dict[str, Any] | None:
        found = self.run("claim", task_ids=self._task_ids)
        return found[0] if found else None

    def close(self) -> None:
        self._connection.close()


def mail(function: Callable[..., object]) -> TaskRegistry:
    tasks = TaskRegistry()
    tasks.register("mail", function)
    return tasks


@pytest.fixture
def foreign(database_url: str) -> Any:
    worker = ForeignWorker(database_url)
    yield worker
    worker.close()


def test_ours_runs_no_job_of_a_queue_that_a_foreign_worker_has_locked(
    database_url: str, schema: SchemaFixture, foreign: ForeignWorker
) -> None:
    first, second = (schema.add_job("mail", queue_name="serial")["id"] for _ in range(2))
    ran: list[int] = []
    claimed = foreign.claim()
    assert claimed is not None
    assert (claimed["id"], claimed["attempts"]) == (first, 1)
    assert foreign.claim() is None

    runner = Runner(database_url, tasks=mail(lambda payload, context: ran.append(context.job.id)))
    with Client(database_url) as client:
        assert client.jobs.get(first).locked_by == "perl-1"
    foreign.run("complete", id=first, locked_at=claimed["locked_at"])
    runner.run_once()

    assert ran == [second]
    assert schema.jobs() == []


def test_a_foreign_worker_and_ours_at_the_same_time_run_each_job_once_and_a_queue_serially(
    database_url: str, schema: SchemaFixture, foreign: ForeignWorker
) -> None:
    ids = [schema.add_job("mail", queue_name="serial" if n % 2 else None)["id"] for n in range(200)]
    ran: list[tuple[int, str]] = []
    queue = threading.Lock()

    def run(job_id: int, *, queued: bool, by: str) -> None:
        assert not queued or queue.acquire(blocking=False), "two jobs of the queue run at the same time"
        ran.append((job_id, by))
        if queued:
            queue.release()

    def run_foreign() -> None:
        assert ours_began.wait(60)
        while not over.is_set():
            if (job := foreign.claim()) is not None:
                foreign_began.set()
                run(job["id"], queued=job["id"] in serial, by="foreign")
                foreign.run("complete", id=job["id"], locked_at=job["locked_at"])

    def run_ours(_: Any, context: JobContext) -> None:
        ours_began.set()
        assert foreign_began.wait(60)
        run(context.job.id, queued=context.job.id in serial, by="ours")

    serial = set(ids[1::2])
    ours_began, foreign_began, over = (threading.Event() for _ in range(3))
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(run_foreign)
        try:
            result = Runner(database_url, tasks=mail(run_ours)).run_once()
            wait_until(lambda: not schema.jobs(), what="every job to run")
        finally:
            over.set()
        other.result(60)

    assert result.failed == 0
    assert sorted(job_id for job_id, _ in ran) == sorted(ids)
    assert {by for _, by in ran} == {"foreign", "ours"}


def test_a_foreign_worker_fails_a_job_as_ours_do(schema: SchemaFixture, foreign: ForeignWorker) -> None:
    job = schema.add_job("mail", queue_name="serial")
    claimed = foreign.claim()
    assert claimed is not None

    with MeasuredBlock(lambda: schema.run("select clock_timestamp() as now")[0]["now"]) as block:
        foreign.run("fail", id=job["id"], locked_at=claimed["locked_at"], error="no route to host")

    [left] = schema.jobs()
    assert (left["attempts"], left["last_error"], left["is_available"]) == (1, "no route to host", True)
    assert left["run_at"] in block.later(math.e)
    assert schema.run("select is_available from :S._private_job_queues") == [{"is_available": True}]


def test_a_foreign_result_of_a_lost_claim_changes_nothing(schema: SchemaFixture, foreign: ForeignWorker) -> None:
    schema.add_job("mail")
    lost = foreign.claim()
    assert lost is not None
    schema.call("force_unlock_workers", worker_ids=["perl-1"])
    again = foreign.claim()

    foreign.run("complete", id=lost["id"], locked_at=lost["locked_at"])

    assert again is not None
    assert [(job["locked_by"], job["attempts"]) for job in schema.jobs()] == [("perl-1", 2)]


def test_a_sweep_recovers_the_jobs_of_a_foreign_worker_that_sent_heartbeats(
    database_url: str, schema: SchemaFixture, foreign: ForeignWorker
) -> None:
    schema.add_job("mail")
    foreign.claim()
    foreign.run("heartbeat")
    schema.run("update :S._private_gw_workers set last_heartbeat_at = now() - interval '1 hour'")
    schema.run("update :S._private_jobs set locked_at = locked_at - interval '1 hour'")

    with Client(database_url) as client:
        report = client.workers.sweep()

    assert [worker.id for worker in report.workers] == ["perl-1"]
    assert [(job["locked_by"], job["attempts"]) for job in schema.jobs()] == [(None, 0)]


def test_a_minute_of_the_crontab_is_added_once(schema: SchemaFixture, foreign: ForeignWorker) -> None:
    minute = "2026-01-31T08:00:00Z"
    first, second = (foreign.run("cron", identifier="daily", task="mail", minute=minute) for _ in range(2))

    assert (len(first), second) == (1, [])
    assert len(schema.jobs()) == 1
