"""Diagnose a queue: a finding for each check, with the command that fixes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec

from gw_core.domain.counted import counted, some
from gw_core.domain.durations import format_duration
from gw_core.domain.job.group import GroupStatus
from gw_core.domain.reports.failures import MIN_FAILURES
from gw_core.domain.reports.job_status import STALE_AFTER, ReasonCode, is_live, why_task_waits
from gw_core.domain.reports.lock_waits import AdvisoryLock, LockWaits
from gw_core.domain.reports.query_results import Count, HistoryStatus, Quality
from gw_core.domain.reports.run_statistics import StatisticsStatus
from gw_core.domain.rules.pause import Pause
from gw_core.domain.rules.roles import RoleKind
from gw_core.domain.rules.sweep_rules import OrphanedQueue, RecoverySettings, WorkerInfo, is_dead
from gw_core.domain.rules.task_limit import TaskLimit
from gw_core.domain.safe_text import shell_command, sql_identifier, sql_literal

STALE_LOCK: Final = timedelta(hours=4)
MAX_SKEW: Final = timedelta(seconds=2)
LONG_JOB: Final = timedelta(minutes=1)
"""Jobs that are locked for longer may still run when graphile_worker_rs starts them again, after five minutes."""
MAX_TRANSACTION_AGE: Final = timedelta(minutes=10)
MAX_BACKLOG: Final = timedelta(minutes=15)
MAX_UNSERVED: Final = timedelta(minutes=1)
"""How long jobs of a task that no live worker has may be due: workers report a new task with their next heartbeat."""
DEAD_ROWS: Final = 100_000
LATE_VACUUM: Final = 300_000
"""Dead rows that autovacuum may wait for; with this many, a claim takes the server three times as long."""
BYPASS_SHARE: Final = 0.02
"""Vacuum leaves the index entries of dead rows while they are on fewer of a table's pages; PostgreSQL 14 and later."""
EARLY_VACUUM: Final = "autovacuum_vacuum_scale_factor = 0.01, vacuum_index_cleanup = on"
MAX_WAITING_ROWS: Final = 10_000
"""Rows of history without a partition; workers move up to 5,000 of a day."""
MAX_EXPIRED_PARTITIONS: Final = 1
"""One is over each midnight, and dropped within the hour."""
ROUGHLY: Final = {
    Quality.EXACT: "",
    Quality.AT_LEAST: "at least ",
    Quality.ESTIMATE: "about ",
    Quality.ROUGH: "about ",
}
MAX_SEQUENCE_USE: Final = 0.8
MAX_FAILED: Final = 2_000
"""How many failed jobs are counted, the latest ones; the console counts them every 15 seconds."""
RUST_WORKER: Final = "graphile_worker_"
"""How the ids of graphile_worker_rs begin."""
NEEDED_INDEXES: Final = {
    "jobs_main_index": "_private_jobs (priority, run_at) include (id, task_id, job_queue_id) where is_available = true",
    "jobs_no_queue_index": "_private_jobs (priority, run_at) include (id, task_id) "
    "where is_available = true and job_queue_id is null",
}
"""Indexes of Graphile Worker, which no migration creates again; gw's own are checked as steps of `gw migrate`."""


class CheckStatus(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    """Worth knowing, and possibly intended."""
    ERROR = "error"
    """Needs an operator; the queue is not healthy."""


class Finding(msgspec.Struct, frozen=True):
    """The result of one check as a message, and how to fix it.

    Example: docs/api/parts.md
    """

    check: str
    status: CheckStatus
    message: str
    fix: str | None = None


class TableHealth(msgspec.Struct, frozen=True):
    """How many dead rows a table has, and whether autovacuum cleans it."""

    name: str
    live_rows: int
    dead_rows: int
    last_vacuum: timedelta | None
    autovacuum: bool
    vacuum_after: int = 0
    """The number of dead rows at which autovacuum starts."""
    index_cleanup: bool = True
    """Whether each vacuum removes the index entries of dead rows, however few there are."""


class DoctorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor read. A check that could not run is listed in `not_checked` with its reason."""

    schema: str
    server: str
    revision: int | None
    schema_behind: bool
    """Whether `gw migrate`, or a starting worker, can update the schema."""
    schema_problem: str | None
    schema_warnings: Sequence[str] = ()
    role: str
    read_only: bool
    clock_skew: timedelta
    uncertainty: timedelta
    """Half of the duration of the query that read the clock."""
    through_pooler: bool
    autovacuum: bool
    has_heartbeats: bool
    kinds: Sequence[RoleKind] = (RoleKind.WORKER,)
    """What the role is meant for, which decides the rights that it needs."""
    lacking: Sequence[str] = ()
    """The privileges that it lacks, each with the object: `select _private_jobs`."""
    hidden_tables: Sequence[str] = ()
    """Tables whose rows row security hides from it, all or some."""
    tables: Sequence[TableHealth] = ()
    distributed_tables: Sequence[str] = ()
    """Tables of the queue that Citus distributes."""
    tables_without_identity: Sequence[str] = ()
    """Tables that are published for logical replication, in which rows cannot be changed."""
    parallel_queues: Sequence[str] = ()
    """Named queues of which a Node.js worker locks several jobs at the same time."""
    invalid_indexes: Sequence[str] = ()
    missing_indexes: Sequence[str] = ()
    holders: Sequence[WorkerInfo] = ()
    orphaned_queues: Sequence[OrphanedQueue] = ()
    """Named queues that are locked although none of their jobs is."""
    stale_workers: Sequence[str] = ()
    live_workers: int = 0
    workers_with_overruns: Sequence[WorkerInfo] = ()
    """Live workers whose threads are held by tasks that have timed out or were cancelled."""
    known_to_rust: Sequence[WorkerInfo] = ()
    """The workers whose heartbeats graphile_worker_rs reads; it recovers the jobs of all others."""
    sweep_locks: Sequence[AdvisoryLock] = ()
    """The sessions that have the lock of sweeps."""
    oldest_transaction: tuple[str, timedelta] | None = None
    most_used_sequence: tuple[str, float] | None = None
    served_tasks: frozenset[str] | None = None
    """The tasks of the live workers; None if not all of them report theirs."""
    due_tasks: Sequence[tuple[str, timedelta]] = ()
    """The tasks of the jobs that are next in line, and how long the first job of each has been due."""
    failed_tasks: Sequence[tuple[str, int]] = ()
    """The tasks of permanently failed jobs with their numbers, counted up to a limit."""
    lock_waits: LockWaits = LockWaits()
    """Which sessions wait for locks."""
    not_checked: Sequence[tuple[str, str]] = msgspec.field(default=())
    left_out: Sequence[str] = ()
    """Checks that need more rights than roles of these kinds have."""
    pauses: Sequence[Pause] = ()
    limits: Sequence[TaskLimit] = ()
    unconfirmed_workers: Sequence[WorkerInfo] = ()
    """Workers that may start jobs and have not confirmed the pauses."""
    groups: GroupStatus | None = None
    """None where groups were not checked."""
    history: HistoryStatus | None = None
    """What history holds; None where the schema has none."""
    statistics: StatisticsStatus | None = None
    """What the statistics hold; None where they were not checked."""
    future: Sequence[tuple[str, str, timedelta]] = ()
    """What has a time in the future that the server wrote: its kind, its name, and how far."""
    allows_transactions: bool = True
    """False behind a pooler in statement mode; nothing else can be checked then."""

    def is_known(self, check: str) -> bool:
        """Return whether a check could read what it needs."""
        return check not in self.left_out and all(check != name for name, _ in self.not_checked)

    @property
    def has_workers_without_heartbeat(self) -> bool:
        """Whether a worker without heartbeats holds a job, as in other languages: it may have any task."""
        return any(not each.has_heartbeat and (each.lock_age or STALE_LOCK) < STALE_LOCK for each in self.holders)


def diagnose(facts: DoctorFacts) -> list[Finding]:
    """Return a finding for each check, in the order of the report."""
    is_readable = facts.revision is not None and facts.allows_transactions
    findings = [each for check in (*_SERVER, *(_QUEUE if is_readable else ())) for each in check.findings(facts)]
    seen = [each for each in findings if facts.is_known(each.check)]
    return seen + [Finding(check, CheckStatus.WARNING, f"not checked: {why}") for check, why in facts.not_checked]


def is_healthy(findings: Sequence[Finding]) -> bool:
    """True when no check found an error."""
    return all(each.status is not CheckStatus.ERROR for each in findings)


# -- the checks ------------------------------------------------------------------------------------------------------

Found = Iterator[tuple[CheckStatus, str, str | None]]
"""Status, message, and how to fix it."""

ERROR: Final = CheckStatus.ERROR
WARNING: Final = CheckStatus.WARNING


class _Check(msgspec.Struct, frozen=True):
    """A check by its name: what it finds, and the message if there is none; None reports nothing then."""

    name: str
    search: Callable[[DoctorFacts], Found]
    healthy: Callable[[DoctorFacts], str | None] = lambda facts: None

    def findings(self, facts: DoctorFacts) -> list[Finding]:
        """Return what the check has found."""
        found = [Finding(self.name, *each) for each in self.search(facts)]
        message = None if found else self.healthy(facts)
        return found if message is None else [Finding(self.name, CheckStatus.OK, message)]


def _server(facts: DoctorFacts) -> Found:
    if facts.read_only:
        yield ERROR, f"PostgreSQL {facts.server} is read-only", "connect to the primary server"


def _clock(facts: DoctorFacts) -> Found:
    skew = max(abs(facts.clock_skew) - facts.uncertainty, timedelta())
    if skew > MAX_SKEW:
        way = "ahead of" if facts.clock_skew > timedelta() else "behind"
        message = f"the server's clock is {_rounded(skew)} {way} this machine's"
        yield ERROR, message, "synchronise both clocks (NTP); until then run workers without --client-time"


def _pooler(facts: DoctorFacts) -> Found:
    if not facts.allows_transactions:
        message = "the connection goes through a pooler in statement mode, and a queue needs transactions"
        yield ERROR, message, "set pool_mode to transaction, or connect directly"
    elif facts.through_pooler:
        message = "the connection goes through a pooler in transaction mode, which drops notifications, so workers poll"
        yield WARNING, message, "give workers a direct --listen-connection"


def _schema(facts: DoctorFacts) -> Found:
    if facts.schema_problem is not None:
        # A queue that only other implementations work on may stay at its revision.
        status = WARNING if facts.schema_behind else ERROR
        can_migrate = facts.schema_behind or facts.revision is None
        yield status, facts.schema_problem, _command(facts, "migrate") if can_migrate else "follow that message first"
    elif facts.schema_behind:
        for warning in facts.schema_warnings:
            yield WARNING, warning, _command(facts, "migrate")


def _upstream(facts: DoctorFacts) -> Found:
    for warning in facts.schema_warnings if facts.schema_problem is None and not facts.schema_behind else ():
        yield WARNING, warning, "check for a newer version of gw"


def _citus(facts: DoctorFacts) -> Found:
    if facts.distributed_tables:
        fix = f"keep the queue local to the coordinator: select citus_schema_undistribute('{facts.schema}')"
        yield ERROR, f"Citus distributes {some(facts.distributed_tables)}, and adding jobs fails", fix


def _node(facts: DoctorFacts) -> Found:
    if facts.parallel_queues:
        message = f"a Node.js or Rust worker runs several jobs of {some(facts.parallel_queues)} at the same time"
        yield (
            ERROR,
            message,
            "upgrade graphile-worker to 0.18 or graphile_worker_rs to 0.13.6, or turn off the local queue",
        )


def _replication(facts: DoctorFacts) -> Found:
    for name in facts.tables_without_identity:
        table = f"{sql_identifier(facts.schema)}.{name}"
        message = f"{name} is published without a replica identity, so PostgreSQL rejects updates and deletes there"
        yield ERROR, message, f"alter table {table} replica identity full"


def _row_security(facts: DoctorFacts) -> Found:
    if facts.hidden_tables:
        message = f"row security hides rows of {some(facts.hidden_tables)} from role {facts.role}, without any error"
        yield ERROR, message, _grants(facts)


def _rights(facts: DoctorFacts) -> Found:
    if facts.lacking:
        lacking = [each.replace(" ", " on ") for each in facts.lacking]
        yield ERROR, f"role {facts.role} lacks {some(lacking)}, which {_kinds(facts)} needs", _grants(facts)


def _indexes(facts: DoctorFacts) -> Found:
    schema = sql_identifier(facts.schema)
    for name in facts.invalid_indexes:
        yield ERROR, f"index {name} is invalid and not used", f"reindex index {schema}.{sql_identifier(name)}"
    for name in facts.missing_indexes:
        fix = f"create index concurrently {name} on {schema}.{NEEDED_INDEXES[name]}"
        yield ERROR, f"index {name} is missing, and claims are slow without it", fix


def _locks(facts: DoctorFacts) -> Found:
    for each in facts.holders:
        oldest = each.oldest_lock_age or timedelta()
        locked = f"{counted(each.jobs, 'job')} and {counted(each.queues, 'queue')}"
        what = f"{each.id} has locked {locked}, the oldest for {_rounded(oldest)}"
        # A sweep does not count the attempts; what it would leave needs gw unlock.
        fix = _command(facts, "sweep") if is_dead(each, RecoverySettings()) else _unlock(facts, each.id)
        if each.heartbeat_age is not None and each.heartbeat_age > STALE_AFTER:
            yield ERROR, f"{what}, last heartbeat {_rounded(each.heartbeat_age)} ago", fix
        elif oldest > STALE_LOCK and each.heartbeat_age is None:
            yield ERROR, f"{what}, and sends no heartbeats", fix


def _orphaned_queues(facts: DoctorFacts) -> Found:
    ages = {each.id: each.heartbeat_age for each in facts.holders}
    for worker_id in dict.fromkeys(queue.worker_id for queue in facts.orphaned_queues):
        names = [queue.name for queue in facts.orphaned_queues if queue.worker_id == worker_id]
        message = f"{worker_id} has locked {some(names)}, and no job there is locked, so all wait"
        age = ages.get(worker_id)
        is_alive = age is not None and age <= STALE_AFTER
        yield (
            ERROR,
            message,
            "restart that worker, unless it releases them within two minutes" if is_alive else _command(facts, "sweep"),
        )


def _workers(facts: DoctorFacts) -> Found:
    if not facts.has_heartbeats:
        message = "the schema has no heartbeats table, so dead workers are only found by locks older than 4 hours"
        yield WARNING, message, _command(facts, "migrate")
    elif idle := [each for each in facts.stale_workers if each not in {holder.id for holder in facts.holders}]:
        yield WARNING, f"{some(idle)} exited without unregistering", _command(facts, "sweep")


def _overruns(facts: DoctorFacts) -> Found:
    for worker in facts.workers_with_overruns:
        jobs = some([str(each.job_id) for each in worker.overruns])
        oldest = _rounded(max(each.age for each in worker.overruns))
        message = f"{worker.id} still runs jobs that have timed out or were cancelled, for up to {oldest}: {jobs}"
        yield WARNING, message, f"restart {worker.id}: Python cannot end the threads that these tasks hold"


def _rust(facts: DoctorFacts) -> Found:
    known = {each.id: each for each in facts.known_to_rust}
    is_recovering = any(name.startswith(RUST_WORKER) and is_live(each) for name, each in known.items())
    with_long_jobs = [each for each in facts.holders if each.jobs and (each.oldest_lock_age or timedelta()) > LONG_JOB]
    unknown = [each.id for each in with_long_jobs if each.id not in known]
    if is_recovering and unknown:
        message = f"graphile_worker_rs gets no heartbeats from {some(unknown)} and starts jobs again after 5 minutes"
        yield WARNING, message, "turn off the recovery of graphile_worker_rs, or keep the jobs of these workers short"


def _sweeps(facts: DoctorFacts) -> Found:
    for lock in facts.sweep_locks:
        if lock.granted and not lock.is_respected:
            message = (
                f"{lock.session} has the lock of sweeps, and is not sweeping; gw sweeps anyway, but "
                "graphile_worker_rs recovers no jobs"
            )
            yield WARNING, message, f"select pg_terminate_backend({lock.session.pid})"


def _pauses(facts: DoctorFacts) -> Found:
    for pause in facts.pauses:
        fix = _typed(facts, "resume", str(pause.target)) or "gw resume, with the target as gw pauses prints it"
        yield WARNING, f"{pause.target} is {pause.description}", fix


def _unconfirmed(facts: DoctorFacts) -> Found:
    if not (facts.pauses or facts.limits):
        return
    # A worker that was killed looks like one that hangs, until its heartbeat is old.
    threshold = format_duration(RecoverySettings().sweep_threshold)
    fix = (
        "restart it with the newest version of gw if its process still runs; "
        f"otherwise, a live worker or gw sweep recovers its jobs {threshold} after that heartbeat"
    )
    for each in facts.unconfirmed_workers:
        age = _rounded(each.heartbeat_age or timedelta())
        message = f"{each.id} has not confirmed the pauses and limits, last heartbeat {age} ago"
        yield ERROR, f"{message}: it may ignore them, or may have died", fix


def _locked_jobs(facts: DoctorFacts) -> str:
    locked = sum(each.jobs for each in facts.holders)
    return f"{counted(locked, 'job is', 'jobs are')} locked, none by a worker known to be dead"


def _groups(facts: DoctorFacts) -> Found:
    found = facts.groups
    if found is not None and found.held:
        message = (
            f"{counted(found.held, 'job that waits for others is', 'jobs that wait for others are')} held by jobs "
            f"that failed permanently, the first, {found.first_held}, by job {found.first_failed_job}"
        )
        fix = _typed(facts, "retry", str(found.first_failed_job)) or f"gw retry {found.first_failed_job}"
        yield WARNING, message, fix


def _waiting_groups(facts: DoctorFacts) -> str | None:
    if facts.groups is None or not facts.groups.waiting:
        return None
    return f"jobs that wait for others: {facts.groups.waiting}"


def _recording(facts: DoctorFacts) -> Found:
    if facts.history is not None and facts.history.records_others is not None:
        kept = format_duration(facts.history.records_others)
        message = (
            f"jobs ended by other programs are recorded and kept for {kept}, by the "
            "trigger _private_gw_record_others of the jobs table"
        )
        yield CheckStatus.OK, message, None


def _history(facts: DoctorFacts) -> Found:
    found = facts.history
    if found is not None and not found.has_default:
        message = (
            "the default partition of history is detached: a job whose day has no partition is not recorded, and stays "
            "locked until its worker stops"
        )
        table = f"{sql_identifier(facts.schema)}._private_gw_history"
        yield ERROR, message, f"alter table {table} attach partition {table}_default default"
    if found is not None and found.waiting_rows > MAX_WAITING_ROWS:
        message = f"at least {MAX_WAITING_ROWS:,} rows wait for a partition, so expiry has to delete them one by one"
        yield WARNING, message, "start a worker that keeps history; it makes partitions"
    if found is not None and found.expired_partitions > MAX_EXPIRED_PARTITIONS:
        fix = _typed(facts, "cleanup", "expired-history") or "gw cleanup expired-history, with --schema"
        yield WARNING, f"{found.expired_partitions} partitions are expired and still there", fix


def _history_size(facts: DoctorFacts) -> str | None:
    found = facts.history
    if found is None or found.latest_at is None:
        return None if found is None else "history is empty"
    return f"{_rows(found.rows)}, {_megabytes(found.size_bytes)}"


def _rows(count: Count) -> str:
    return f"{ROUGHLY[count.quality]}{counted(count.value, 'row')}"


def _megabytes(size: int) -> str:
    return "less than 1 MB" if size < 1_000_000 else f"{size / 1_000_000:,.0f} MB"


def _statistics(facts: DoctorFacts) -> Found:
    found = facts.statistics
    if found is not None and found.recording_workers and (missing := found.live_workers - found.recording_workers):
        message = f"{missing} of {found.live_workers} live workers record no statistics, so charts leave out their jobs"
        yield WARNING, message, "set statistics on every worker, or on none"


def _statistics_size(facts: DoctorFacts) -> str | None:
    found = facts.statistics
    if found is None:
        return None
    who = "live workers record statistics" if found.recording_workers else "no live worker records statistics"
    if found.oldest_age is None or found.latest_age is None:
        return f"{who}; there are none"
    times = f"from {_rounded(found.oldest_age)} to {_rounded(found.latest_age)} ago"
    return f"{who}; {_rows(found.rows)}, {_megabytes(found.size_bytes)}, {times}"


def _future(facts: DoctorFacts) -> Found:
    if not facts.future:
        return
    items = [name for kind, name, _ in facts.future if kind == "cron"]
    holders = {each.id for each in facts.holders}
    workers = [name for kind, name, _ in facts.future if kind == "worker" and name in holders]
    follows = [
        *([f"no run of {some(items)} is added"] if items else ()),
        *([f"{some(workers)} is not presumed dead"] if workers else ()),
    ]
    fixes = [
        *([_typed(facts, "cron forget", items[0]) or "gw cron forget, with the item"] if items else ()),
        *([f"if the worker is dead: {_unlock(facts, workers[0])}"] if workers else ()),
    ]
    ahead = _rounded(max(each for _, _, each in facts.future))
    message = f"the server's clock was set back: times in the queue are up to {ahead} in the future"
    until = f"{message}; until then {' and '.join(follows)}"
    yield (ERROR, until, "; ".join(fixes)) if follows else (WARNING, message, "synchronise the server's clock (NTP)")


def _limits(facts: DoctorFacts) -> Found:
    for limit in facts.limits:
        if limit.has_index:
            yield CheckStatus.OK, f"task {limit.task}: {limit.description}", None
        else:
            message = f"task {limit.task}: no jobs are claimed, because the index of {limit.field} is missing"
            yield ERROR, message, "set the limit again with gw limit"


def _blocked(facts: DoctorFacts) -> Found:
    for blocker in facts.lock_waits.blockers_of(facts.schema):
        message = f"for up to {_rounded(blocker.age)}, {blocker.description}"
        yield ERROR, message, f"select pg_terminate_backend({blocker.session.pid})"


def _failed(facts: DoctorFacts) -> Found:
    at_least = "at least " if sum(number for _, number in facts.failed_tasks) >= MAX_FAILED else ""
    for task, number in facts.failed_tasks:
        if number >= MIN_FAILURES:
            message = f"{at_least}{counted(number, 'job')} of the task {task} have failed permanently"
            yield WARNING, message, f"{_command(facts, 'list state:failed')} shows them, and gw retry runs them again"


def _backlog(facts: DoctorFacts) -> Found:
    served = []
    for task, age in facts.due_tasks:
        if (reason := why_task_waits(task, facts.pauses, facts.limits)) is not None:
            if age > MAX_BACKLOG:
                is_paused = reason.code is ReasonCode.PAUSED
                fix = "gw resume, with the target" if is_paused else "gw limit changes it"
                message = f"jobs of the task {task} have been due for {_rounded(age)}, because {reason.message}"
                yield WARNING, message, fix
        elif facts.served_tasks is None or task in facts.served_tasks or facts.has_workers_without_heartbeat:
            served.append((task, age))
        elif age > MAX_UNSERVED:
            message = f"jobs of the task {task} have been due for {_rounded(age)}, and no live worker has this task"
            yield ERROR, message, "run a worker that has it, or add the jobs again under the right identifier; gw tasks"
    if served and served[0][1] > MAX_BACKLOG:
        task, age = served[0]
        why, fix = "no worker claimed it", "gw queues; gw tasks: a locked queue, an unknown task, or too few workers"
        is_known = facts.has_heartbeats and facts.is_known("workers") and not facts.has_workers_without_heartbeat
        if is_known and not facts.live_workers:
            why, fix = "there is no live worker", _command(facts, "run")
        elif field := next((each.field for each in facts.limits if each.task == task), None):
            why = f"{why}; its task, {task}, is limited for each {field}"
        yield ERROR, f"the next job has been due for {_rounded(age)}, and {why}", fix


def _vacuum(facts: DoctorFacts) -> Found:
    if not facts.autovacuum:
        yield ERROR, "autovacuum is off on this server", "alter system set autovacuum = on"
    for table in facts.tables:
        name = f"{sql_identifier(facts.schema)}.{table.name}"
        if not table.autovacuum:
            yield ERROR, f"autovacuum is off for {table.name}", f"alter table {name} reset (autovacuum_enabled)"
        if table.dead_rows > max(DEAD_ROWS, table.live_rows):
            ago = "never vacuumed" if table.last_vacuum is None else f"vacuumed {_rounded(table.last_vacuum)} ago"
            message = f"{table.name} has {table.dead_rows} dead rows beside {table.live_rows} live ones, {ago}"
            yield ERROR, message, f"vacuum analyze {name}"
        elif table.autovacuum and table.vacuum_after > LATE_VACUUM:
            message = (
                f"autovacuum of {table.name} starts when {table.vacuum_after:,} rows are dead, which slows claims down"
            )
            yield WARNING, message, f"alter table {name} set ({EARLY_VACUUM})"
        elif not table.index_cleanup and BYPASS_SHARE * table.live_rows > DEAD_ROWS:
            message = f"vacuum of {table.name} leaves index entries of dead rows while few pages have them"
            yield WARNING, f"{message}, which slows claims down", f"alter table {name} set (vacuum_index_cleanup = on)"


def _transactions(facts: DoctorFacts) -> Found:
    if facts.oldest_transaction is not None and facts.oldest_transaction[1] > MAX_TRANSACTION_AGE:
        what, age = facts.oldest_transaction
        message = f"{what} has had a transaction open for {_rounded(age)}, which keeps vacuum from removing dead rows"
        yield ERROR, message, "end it, or: select pg_terminate_backend(PROCESS)"


def _ids(facts: DoctorFacts) -> Found:
    if facts.most_used_sequence is not None and facts.most_used_sequence[1] > MAX_SEQUENCE_USE:
        table, share = facts.most_used_sequence
        fix = "stop adding new names, and restart the identity column's sequence"
        yield ERROR, f"{share:.0%} of the ids of {table} are used up", fix


_SERVER: Final = (
    _Check("server", _server, lambda facts: f"PostgreSQL {facts.server}, as role {facts.role}"),
    _Check("clock", _clock, lambda facts: "the clocks agree"),
    _Check("pooler", _pooler, lambda facts: "no pooler"),
    _Check("schema", _schema, lambda facts: f"revision {facts.revision}"),
    _Check("upstream", _upstream),
)
_QUEUE: Final = (
    _Check("citus", _citus),
    _Check("node", _node),
    _Check("replication", _replication),
    _Check("row security", _row_security, lambda facts: "hides no rows from this role"),
    _Check("rights", _rights, lambda facts: f"the role has all rights of {_kinds(facts)}"),
    _Check("indexes", _indexes, lambda facts: "all present and valid"),
    _Check("locks", _locks, _locked_jobs),
    _Check("locks", _orphaned_queues),
    _Check("workers", _workers, lambda facts: f"{facts.live_workers} alive"),
    _Check("overruns", _overruns),
    _Check("rust", _rust),
    _Check("sweeps", _sweeps),
    _Check("pauses", _pauses, lambda facts: "nothing is paused"),
    _Check("pauses", _unconfirmed),
    _Check("history", _recording),
    _Check("history", _history, _history_size),
    _Check("statistics", _statistics, _statistics_size),
    _Check("future", _future),
    _Check("limits", _limits, lambda facts: "no task has a limit"),
    _Check("groups", _groups, _waiting_groups),
    _Check("blocked", _blocked, lambda facts: "no session of the queue waits for a lock"),
    _Check("failed", _failed, lambda facts: f"fewer than {MIN_FAILURES} jobs of each task have failed permanently"),
    _Check("backlog", _backlog, lambda facts: "no job is overdue"),
    _Check("vacuum", _vacuum, lambda facts: "dead rows are vacuumed"),
    _Check("transactions", _transactions, lambda facts: "none is long"),
    _Check("ids", _ids, lambda facts: "enough left"),
)


def _kinds(facts: DoctorFacts) -> str:
    return " and ".join(f"an {each}" if each[0] in "ao" else f"a {each}" for each in facts.kinds)


def _grants(facts: DoctorFacts) -> str:
    """Return the commands that give the role what it lacks."""
    commands = (_typed(facts, "grant", kind, facts.role) or f"gw grant {kind} ROLE" for kind in facts.kinds)
    return f"as the queue's owner: {'; '.join(commands)}"


def _command(facts: DoctorFacts, verb: str) -> str:
    return _typed(facts, verb) or f"gw {verb}, with --schema"


def _unlock(facts: DoctorFacts, worker_id: str) -> str:
    """Return the command that unlocks a worker, or the SQL when its id has characters that cannot be typed."""
    names = ("--", worker_id) if worker_id.startswith("-") else (worker_id,)
    schema = sql_identifier(facts.schema)
    sql = f"select * from {schema}.force_unlock_workers(array[{sql_literal(worker_id)}]);"  # noqa: S608 - a person runs it
    return _typed(facts, "unlock", *names) or sql


def _typed(facts: DoctorFacts, verb: str, *names: str) -> str | None:
    where = () if facts.schema == "graphile_worker" else (f"--schema={facts.schema}",)
    return shell_command(("gw", *verb.split(), *where, *names))


def _rounded(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=round(duration.total_seconds())))
