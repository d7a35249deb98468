"""A queue with all that an operator meets, in a real database whose time stands still until it is moved.

The console's tests, the pictures of the documentation and the recording of `gw tui --demo` show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self, cast

import psycopg
from msgspec import structs

from gw_core import Client, Job, JobState, Selection, SessionLimits, cron_item
from gw_core.front_ends import (
    AdvisoryLock,
    BackendSession,
    CheckStatus,
    Count,
    FoundJob,
    LockWait,
    LockWaits,
    QueueSnapshot,
    ServerInfo,
    TableCounters,
    retry_delay,
)
from gw_core.operations import Finding, WorkerInfo
from gw_tui.data import source
from support.databases import install_schema
from support.rows import Rows

if TYPE_CHECKING:
    import pytest

START: Final = datetime(2026, 3, 14, 14, 52, 7, tzinfo=UTC)
"""The time at the beginning."""

SECOND: Final = timedelta(seconds=1)
MAX_STEPS: Final = 120
JOBS: Final = 400
ATTEMPTS: Final = 5
TABLE_BYTES: Final = 3_164_800

WORKERS: Final = {
    "gw-app-1-4711-239e39": 3,
    "gw-app-1-4712-23bd28": 8,
    "gw-app-2-1203-915dd5": 5,
    "gw-app-3-977-760e1f": 544,
}
"""How many seconds ago each worker sent a heartbeat; the last one is dead."""
*ALIVE, DEAD = WORKERS
NODE: Final = "worker-4f1d9c2ab8"
"""A worker of Graphile Worker, which sends no heartbeats."""

TASKS: Final = ("charge_card", "reports/weekly", "resize_image", "send_email", "sync_customer", "webhook")
ERRORS: Final = {
    "send_email": "ConnectionError: [mx{n}.example.net] refused\n  at send (mailer.py:41)\n  at run (send_email.py:12)",
    "resize_image": "OSError: image file is truncated ({n} bytes not read)\n  at load (resize_image.py:31)",
    "sync_customer": "ValueError: customer {n} has no address\n  at sync (crm.py:57)",
    "charge_card": "PaymentError: insufficient funds (order {n})\n  at charge (payments.py:203)",
    "reports/weekly": "MemoryError: report {n} is too large\n  at render (reports/weekly.py:77)",
    "webhook": "TimeoutError: no answer from api.example.com within 30 s\n  at call (webhook.py:88)",
}
PAYLOADS: Final = {
    "send_email": (
        '{{"to": "user{n}@example.com", "template": "welcome", "attempt_id": 90071992547409931{n}, '
        '"token": "s3cr3t-{n}"}}'
    ),
    "charge_card": '{{"order": {n}, "amount": 49.90, "currency": "EUR", "card": "4111111111111111"}}',
    "webhook": '[{{"url": "https://example.com/hook/{n}"}}, {{"url": "https://example.org/hook"}}]',
}
OTHER_PAYLOAD: Final = '{{"id": {n}, "options": {{"deep": true, "tags": ["a", "b"]}}}}'
CRONTAB: Final = tuple(
    cron_item(when, task, id=name, fill=fill)
    for when, task, name, fill in (
        ("*/5 * * * *", "sync_customer", "sync_customer", timedelta()),
        ("0 8 * * 1", "reports/weekly", "weekly_report", timedelta(hours=12)),
        ("30 2 * * *", "cleanup", "nightly_cleanup", timedelta(days=1)),
    )
)


def relaxed(limits: SessionLimits) -> SessionLimits:
    """Return limits of a console by which a busy machine ends no query: it would show old rows for half a minute."""
    return structs.replace(
        limits,
        statement_timeout=timedelta(minutes=2),
        lock_timeout=timedelta(minutes=2),
        idle_in_transaction_session_timeout=timedelta(minutes=2),
        connect_timeout=timedelta(seconds=20),
    )


LIMITS: Final = relaxed(source.READ_LIMITS)


def relax_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relax the limits of consoles that begin until the test ends."""
    for name in ("READ_LIMITS", "ACTION_LIMITS"):
        monkeypatch.setattr(source, name, relaxed(getattr(source, name)))


CLOCK: Final = """
create table public.clock (at timestamptz not null);
insert into public.clock values ('epoch');
alter function pg_catalog.now() rename to server_now;
alter function pg_catalog.clock_timestamp() rename to server_clock_timestamp;
create function pg_catalog.now() returns timestamptz language sql stable parallel safe
  as 'select at from public.clock';
create function pg_catalog.clock_timestamp() returns timestamptz language sql stable parallel safe
  as 'select at from public.clock';
"""
"""Make a database read its time from a table. The schema is installed afterwards, and uses these functions."""

COLUMNS: Final = {
    "_run_at": "run_at = to_timestamp(%s)",
    "_created_at": "created_at = to_timestamp(%s)",
    "_updated_at": "updated_at = to_timestamp(%s)",
    "_locked_at": "locked_at = to_timestamp(%s)",
    "queue_name": "job_queue_id = (select id from _private_job_queues where queue_name = %s)",
}
"""How a field of a job is written; the others are columns."""


class QueueClock:
    """The time of the queue."""

    def __init__(self, queue: ConsoleQueue) -> None:
        self._queue = queue

    @property
    def now(self) -> datetime:
        return self._queue.now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._queue.live(timedelta(seconds=seconds))


class ConsoleQueue(Rows):
    """The rows of the queue. It changes from second to second, the same way each time."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.clock = QueueClock(self)
        self.reader = Client(url, session_limits=LIMITS, max_pool_size=1)
        """What consoles read with, one after the other: its connection has planned all statements."""
        self.jobs_at_first: int | None = None
        """With how many jobs it has begun; None when the rows may have changed since."""
        self.tables = ", ".join(
            name
            for (name,) in self.rows(
                f"select relname from pg_class where relnamespace = '{self.schema}'::regnamespace and relkind in"
                " ('r', 'p') and not relispartition and relname not in ('migrations', '_private_gw_migrations')"
            )
        )

    @classmethod
    def made(cls, url: str) -> Self:
        """Make the queue in an empty database."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(CLOCK)
        install_schema(url)
        return cls(url)

    # -- how it begins

    def begin(self, *, jobs: int = JOBS) -> Self:
        """Start again, with this many jobs."""
        if self.jobs_at_first != jobs:
            self._begin(jobs)
        self.jobs_at_first = jobs
        return self

    def run(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Run a statement, which may change rows."""
        self.jobs_at_first = None
        return super().run(statement, *values)

    def close(self) -> None:
        self.reader.close()
        super().close()

    def _begin(self, jobs: int) -> None:
        self.now, self.ticks = START, 0
        self.inserted, self.updated, self.deleted = 9_912_345, 21_034_567, 9_911_020
        with self.hands.transaction():
            self.rows(f"truncate {self.tables} restart identity")
            self._show_time()
            found = _first_jobs(jobs)
            self._name("_private_tasks", "identifier", TASKS)
            self._name("_private_job_queues", "queue_name", sorted({each["queue"] for each in found} - {None}))
            self._insert(found)
            for worker, job in _first_claims(found):
                self._claim(worker, [job])
            self.run("select setval('jobs_id_seq1', (select max(id) from _private_jobs))")
            self._begin_others()

    def _begin_others(self) -> None:
        for worker, age in WORKERS.items():
            host, pid = worker.rsplit("-", 2)[0].removeprefix("gw-"), int(worker.split("-")[3])
            # They confirm each pause and limit: otherwise a pause would wait for them for two seconds.
            self.run(
                "insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version,"
                " claim_rules_revision) values (%s, %s, %s, %s, %s, '0.1.0', 2147483647)",
                worker,
                self.now - timedelta(hours=6, minutes=pid % 60),
                self.now - age * SECOND,
                host,
                pid,
            )
        since = self.now - timedelta(days=30)
        known = (
            ("sync_customer", self.now.replace(minute=self.now.minute // 5 * 5, second=0)),
            ("weekly_report", self.now - timedelta(days=5, hours=6)),
            ("nightly_cleanup", self.now - timedelta(days=1, hours=12)),
            ("retired_task", None),
        )
        for name, latest in known:
            self.run("insert into _private_known_crontabs values (%s, %s, %s)", name, since, latest)
        self._copy("_private_gw_history", HISTORY_COLUMNS, _ended_attempts())
        self._copy("_private_gw_statistics", STATISTICS_COLUMNS, _minutes())

    # -- how it goes on

    def live(self, duration: timedelta) -> None:
        """Let time pass, and each second jobs be added, claimed and settled."""
        end = self.now + duration
        for _ in range(min(MAX_STEPS, int(duration / SECOND))):
            self.ticks += 1
            self.now += SECOND
            with self.hands.transaction():
                self._show_time()
                self._step(Random(f"7/{self.ticks}"))
        self.now = end
        self._show_time()

    def _show_time(self) -> None:
        self.run("update public.clock set at = %s", self.now)

    def _step(self, chance: Random) -> None:
        count = chance.randint(4, 9) if self.ticks % 60 < 40 else chance.randint(0, 3)
        (latest,) = self.rows("select last_value from jobs_id_seq1")[0]
        self._insert([_new_job(chance, latest + 7 * (number + 1), self.now) for number in range(count)])
        self.run("select setval('jobs_id_seq1', %s)", latest + 7 * count + 1)
        self._settle(chance)
        for worker in ALIVE:
            self._claim(worker, self._claimable(chance.randint(1, 3)))
        if self.ticks % 10 == 0:
            self.run("update _private_gw_workers set last_heartbeat_at = %s where id = any(%s)", self.now, ALIVE)
        self.inserted += count

    def _settle(self, chance: Random) -> None:
        running = self.run(
            "select jobs.id, attempts, identifier as task from _private_jobs as jobs"
            " join _private_tasks as tasks on tasks.id = task_id where locked_by = any(%s) order by jobs.id",
            ALIVE,
        )
        ended = [each for each in running if chance.random() < 0.7]
        self._free([each["id"] for each in ended])
        for each in ended:
            if chance.random() < 0.93:
                self.run("delete from _private_jobs where id = %s", each["id"])
                self.deleted += 1
            else:
                again, error = _failed(each["task"], each["attempts"], self.now, chance)
                self.run(
                    "update _private_jobs set locked_by = null, locked_at = null, run_at = %s, last_error = %s,"
                    " updated_at = %s where id = %s",
                    again,
                    error,
                    self.now,
                    each["id"],
                )
                self.updated += 1

    def counts(self) -> tuple[int, int]:
        """Return how many jobs there are, and how many of them wait."""
        total, waiting = self.rows("select count(*), count(*) filter (where is_available) from _private_jobs")[0]
        return total, waiting

    def _free(self, jobs: Sequence[int]) -> None:
        self.run(
            "update _private_job_queues set locked_at = null, locked_by = null"
            " where id in (select job_queue_id from _private_jobs where id = any(%s))",
            list(jobs),
        )

    def _claimable(self, count: int) -> list[int]:
        found = self.rows(
            "select jobs.id from _private_jobs as jobs"
            " left join _private_job_queues as queues on queues.id = job_queue_id"
            " where jobs.is_available and run_at <= now() and queues.is_available is not false"
            f" order by priority, run_at, jobs.id limit {count}"
        )
        return [job for (job,) in found]

    def _claim(self, worker: str, jobs: Sequence[int]) -> None:
        at = self.now - {DEAD: 554, NODE: 41}.get(worker, 0) * SECOND
        self.run(
            "update _private_jobs set locked_by = %s, locked_at = %s, attempts = attempts + 1 where id = any(%s)",
            worker,
            at,
            list(jobs),
        )
        self.run(
            "update _private_job_queues set locked_by = %s, locked_at = %s"
            " where id in (select job_queue_id from _private_jobs where id = any(%s))",
            worker,
            at,
            list(jobs),
        )
        self.updated += len(jobs)

    # -- its rows

    def states(self) -> Iterator[FoundJob]:
        """Yield every job with its state."""
        after = None
        while True:
            page = self.client.jobs.list(Selection(), after=after, limit=1_000, with_payload=True)
            yield from page.jobs
            if (after := page.after) is None:
                return

    def state(self, job: Job) -> JobState:
        """Return a job's state now."""
        report = self.client.jobs.show(job.id)
        assert report is not None
        return report.state

    @property
    def by_id(self) -> dict[int, Job]:
        """The jobs as they are now."""
        return {each.job.id: each.job for each in self.states()}

    @property
    def held(self) -> dict[str, tuple[str, datetime]]:
        """Who holds each locked queue, and since when."""
        found = self.rows(
            "select queue_name, locked_by, locked_at from _private_job_queues where locked_at is not null"
        )
        return {name: (holder, since) for name, holder, since in found}

    def alter(self, job: Job, **values: Any) -> Job:
        """Set fields of a job, and return it as it is then."""
        if values:
            parts = ", ".join(COLUMNS.get(name, f"{name} = %s") for name in values)
            self.run(f"update _private_jobs set {parts} where id = %s", *values.values(), job.id)
        return self.by_id[job.id]

    def insert(self, task: str, **columns: Any) -> int:
        """Add a job with these columns, as no client would; nothing is announced."""
        self._name("_private_tasks", "identifier", [task])
        job: int = self.value("select nextval('jobs_id_seq1')")
        plain = _new_job(Random(job), job, self.now) | {"key": None, "queue": None, "flags": None, "payload": "{}"}
        self._insert([{**plain, "task": task, "priority": 0, **columns}])
        return job

    def delete(self, *jobs: int) -> None:
        """Remove jobs, as another session would."""
        self.run("delete from _private_jobs where id = any(%s)", list(jobs))

    def announce(self, jobs: int) -> None:
        """Notify all listeners of new jobs."""
        self.run("select pg_notify('jobs:insert', json_build_object('r', random(), 'count', %s::int)::text)", jobs)

    def _name(self, table: str, column: str, names: Sequence[str]) -> None:
        self.run(f"insert into {table} ({column}) select * from unnest(%s::text[]) on conflict do nothing", list(names))

    def _insert(self, jobs: Sequence[dict[str, Any]]) -> None:
        tasks = dict(self.rows("select identifier, id from _private_tasks"))
        self._name("_private_job_queues", "queue_name", sorted({each["queue"] for each in jobs} - {None}))
        queues = dict(self.rows("select queue_name, id from _private_job_queues"))
        rows = [{**each, "task_id": tasks[each["task"]], "job_queue_id": queues.get(each["queue"])} for each in jobs]
        self._copy("_private_jobs", JOB_COLUMNS, [[row[name] for name in JOB_COLUMNS] for row in rows])

    def _copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        statement = f"copy {table} ({', '.join(columns)}) from stdin"
        with self.hands.cursor() as cursor, cursor.copy(cast(Any, statement)) as copy:
            for row in rows:
                copy.write_row(row)


# -- its first rows ----------------------------------------------------------------------------------------------------

JOB_COLUMNS: Final = (
    "id",
    "job_queue_id",
    "task_id",
    "payload",
    "priority",
    "run_at",
    "attempts",
    "max_attempts",
    "last_error",
    "created_at",
    "updated_at",
    "key",
    "flags",
)


def _new_job(chance: Random, job_id: int, now: datetime) -> dict[str, Any]:
    task, number = chance.choice(TASKS), chance.randint(1, 999)
    return {
        "id": job_id,
        "task": task,
        "queue": f"customer:{number % 9}" if task == "sync_customer" else None,
        "payload": PAYLOADS.get(task, OTHER_PAYLOAD).format(n=number),
        "priority": chance.choice((-10, 0, 0, 0, 0, 5, 10)),
        "run_at": now,
        "attempts": 0,
        "max_attempts": ATTEMPTS,
        "last_error": None,
        "created_at": now,
        "updated_at": now,
        "key": f"welcome:{job_id}" if task == "send_email" and number % 5 == 0 else None,
        "flags": '{"slow":true}' if task == "reports/weekly" else None,
    }


@cache
def _first_jobs(count: int) -> list[dict[str, Any]]:
    """Return jobs in every state but running: a third is due later, and a thirteenth has failed."""
    chance = Random(7)
    jobs = []
    for number in range(count):
        job = _new_job(chance, 99_007 + 7 * number, START)
        since = START - timedelta(seconds=chance.randint(1, 2_400))
        due = since if number % 3 else START + timedelta(seconds=chance.randint(60, 86_400))
        job |= {"created_at": since - 600 * SECOND, "updated_at": since, "run_at": due}
        if number % 13 == 0:
            attempts = ATTEMPTS if number % 26 == 0 else chance.randint(1, ATTEMPTS - 1)
            again, error = _failed(job["task"], attempts, START if attempts < ATTEMPTS else since, chance)
            job |= {"attempts": attempts, "run_at": again, "last_error": error}
        jobs.append(job)
    for job in _in_turn(jobs)[:7]:
        job["queue"] = "imports"
    return jobs


def _first_claims(jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield what is running: three jobs of a dead worker in one queue, and those of the others."""
    turn = [job["id"] for job in _in_turn(jobs)]
    yield from ((DEAD, job) for job in turn[:3])
    yield from ((NODE, job) for job in turn[8:9])
    held: set[str] = set()
    free = []
    for job in _in_turn(jobs)[9:]:
        if job["queue"] is None or job["queue"] not in held:
            held |= {job["queue"]} - {None}
            free.append(job["id"])
    yield from zip([worker for worker in ALIVE for _ in range(4)], free, strict=False)


def _in_turn(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    due = [job for job in jobs if job["run_at"] <= START and job["attempts"] < ATTEMPTS]
    return sorted(due, key=lambda job: (job["priority"], job["run_at"], job["id"]))


def _failed(task: str, attempts: int, now: datetime, chance: Random) -> tuple[datetime, str]:
    """Return when it is tried again, and the error."""
    return now + retry_delay(attempts), ERRORS[task].format(n=chance.randint(1, 9))


HISTORY_COLUMNS: Final = (
    "job_id",
    "attempt",
    "max_attempts",
    "task",
    "state",
    "final",
    "error",
    "worker_id",
    "created_at",
    "started_at",
    "finished_at",
    "expires_at",
)


@cache
def _ended_attempts() -> list[Sequence[Any]]:
    """Return attempts that ended lately, one every nine seconds."""
    chance, found = Random(7), []
    for number in range(60):
        task, state = chance.choice(TASKS), chance.choice(["completed"] * 8 + ["completed", "retried", "failed"])
        finished = START - timedelta(seconds=9 * number + 4)
        error = None if state == "completed" else ERRORS[task].format(n=number)
        attempt = 25 if state == "failed" else 1
        started = finished - timedelta(milliseconds=chance.randrange(20, 9_000))
        created, expires = finished - timedelta(minutes=2), finished + timedelta(days=7)
        row = (5_000 - number, attempt, 25, task, state, state == "completed", error, ALIVE[0])
        found.append((*row, created, started, finished, expires))
    return found


STATISTICS_COLUMNS: Final = (
    "minute",
    "task",
    "worker_id",
    "completed",
    "failed",
    "permanently_failed",
    "run_seconds",
    "durations",
    "waited",
    "wait_seconds",
)


@cache
def _minutes() -> list[Sequence[Any]]:
    """Return the statistics of an hour with a gap, and with errors that began a while ago."""
    last = START.replace(second=0)
    ago = [number for number in range(1, 61) if number not in range(39, 43)]
    return [_minute(last - timedelta(minutes=each), task, has_errors=each < 17) for each in ago for task in TASKS]


def _minute(minute: datetime, task: str, *, has_errors: bool) -> Sequence[Any]:
    chance = Random(f"{minute}/{task}")
    completed = int(60 * chance.uniform(0.5, 0.9))
    failed = int(60 * chance.uniform(0.05, 0.1)) if has_errors else chance.randint(0, 1)
    slow = completed // (8 if has_errors else 40)
    durations = [0] * 5 + [completed - slow, failed, 0, slow] + [0] * 8
    run_seconds, wait_seconds = completed * 0.04 + slow * 0.4, completed * chance.uniform(0.5, 2.0)
    return minute, task, ALIVE[0], completed, failed, 0, run_seconds, durations, completed, wait_seconds


# -- what belongs to the server: it is different each time -------------------------------------------------------------

SERVER: Final = ServerInfo(
    version="17.2",
    database="shop",
    user="app",
    host="demo",
    port=5432,
    started_at=START - timedelta(days=41),
    in_recovery=False,
    read_only=False,
)


def as_seen(snapshot: QueueSnapshot, queue: ConsoleQueue) -> QueueSnapshot:
    """Return a snapshot with the same server, statistics and durations each time."""
    total, waiting = queue.counts()
    return structs.replace(
        snapshot,
        took=timedelta(milliseconds=3),
        server_time=None,
        locks_age=timedelta(),
        server=structs.replace(SERVER, read_only=snapshot.server.read_only),
        counters=TableCounters(
            inserted=queue.inserted,
            updated=queue.updated,
            deleted=queue.deleted,
            live_rows=total,
            dead_rows=queue.deleted % 977,
            last_vacuum_at=queue.now - timedelta(minutes=3),
        ),
        total=Count(total),
        unclaimed=Count(waiting),
        table_bytes=TABLE_BYTES,
    )


def findings(workers: Sequence[WorkerInfo]) -> Sequence[Finding]:
    """Return what the doctor would say of another server."""
    dead = [worker.id for worker in workers if worker.is_stale]
    locks = Finding("locks", CheckStatus.OK, "no job is locked by a dead worker")
    if dead:
        words = f"{dead[0]} has locked 3 jobs and 1 queue, and its last heartbeat was 9m4s ago"
        locks = Finding("locks", CheckStatus.ERROR, words, f"gw unlock {dead[0]}")
    return (
        Finding("server", CheckStatus.OK, "PostgreSQL 17.2, as role app"),
        Finding("schema", CheckStatus.OK, "revision 20"),
        Finding("row security", CheckStatus.OK, "hides nothing from this role"),
        Finding("indexes", CheckStatus.OK, "all there and valid"),
        locks,
        Finding("vacuum", CheckStatus.WARNING, "_private_jobs was vacuumed 3m ago"),
    )


def _session(pid: int, application: str, statement: str | None, *, minutes: int) -> BackendSession:
    age = timedelta(minutes=minutes, seconds=12)
    return BackendSession(
        pid=pid,
        user="app",
        application=application,
        state="active" if minutes < 10 else "idle in transaction",
        in_state_for=age,
        transaction_age=age,
        statement=statement,
    )


_WAITING = _session(3021, "gw-worker", "update _private_jobs set …", minutes=1)
_BLOCKER = _session(2877, "psql", "begin; lock table graphile_worker._private_jobs", minutes=14)
_SWEEPER = _session(3001, "gw-worker", None, minutes=0)
LOCK_WAITS: Final = LockWaits(
    blocked=(LockWait(session=_WAITING, waits_for="RowExclusiveLock on _private_jobs", blocked_by=(2877,)),),
    blockers=(_BLOCKER,),
    advisory=(AdvisoryLock(name="gw sweep", granted=True, session=_SWEEPER),),
    oldest_transactions=(_BLOCKER,),
)


def open_queue() -> ConsoleQueue:
    """Return the queue of this process; each program that shows it puts its own function here."""
    raise NotImplementedError
