"""Diagnose a queue: a finding for each check, with the command that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gw_core.domain.durations import format_duration
from gw_core.domain.group import GroupStatus
from gw_core.domain.history import HistoryStatus
from gw_core.domain.pause import Pause
from gw_core.domain.run_statistics import StatisticsStatus
from gw_core.domain.task_limit import TaskLimit
from gw_core.domain.text import shell_command, sql_identifier, sql_literal

STALE_LOCK: Final = timedelta(hours=4)
STALE_AFTER: Final = timedelta(minutes=5)
"""Workers send a heartbeat twice a minute; one whose last is older than this is presumed dead."""
MAX_SKEW: Final = timedelta(seconds=2)
MAX_TRANSACTION_AGE: Final = timedelta(minutes=10)
MAX_BACKLOG: Final = timedelta(minutes=15)
DEAD_ROWS: Final = 100_000
LATE_VACUUM: Final = 300_000
"""Dead rows that autovacuum may wait for; with so many, a claim takes the server three times as long."""
MAX_WAITING_ROWS: Final = 10_000
"""Rows of history without a partition; workers move up to 20,000 of a day."""
MAX_EXPIRED_PARTITIONS: Final = 1
"""One is over each midnight, and dropped within the hour."""
MAX_SEQUENCE_USE: Final = 0.8
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


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check as a message, and how to fix it."""

    check: str
    status: CheckStatus
    message: str
    fix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """A worker that locks jobs and queues; `last_heartbeat` is None without heartbeats, as in Node.js."""

    worker_id: str
    jobs: int
    queues: int
    oldest: timedelta
    last_heartbeat: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """How many dead rows a table has, and whether autovacuum cleans it."""

    name: str
    live_rows: int
    dead_rows: int
    last_vacuum: timedelta | None
    autovacuum: bool
    vacuum_after: int = 0
    """The number of dead rows at which autovacuum starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRights:
    """The privileges of our role on a table."""

    name: str
    everything: bool
    rows_hidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
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
    prepared_statements: bool
    autovacuum: bool
    has_heartbeats: bool
    rights: Sequence[TableRights] = ()
    tables: Sequence[TableHealth] = ()
    distributed_tables: Sequence[str] = ()
    """Tables of the queue that Citus distributes."""
    parallel_queues: Sequence[str] = ()
    """Named queues of which a Node.js worker locks several jobs at the same time."""
    invalid_indexes: Sequence[str] = ()
    missing_indexes: Sequence[str] = ()
    holders: Sequence[LockHolder] = ()
    stale_workers: Sequence[str] = ()
    live_workers: int = 0
    oldest_transaction: tuple[str, timedelta] | None = None
    most_used_sequence: tuple[str, float] | None = None
    backlog: timedelta | None = None
    not_checked: Sequence[tuple[str, str]] = field(default=())
    has_pauses: bool = False
    """Whether the schema has the table of pauses."""
    pauses: Sequence[Pause] = ()
    has_limits: bool = False
    """Whether the schema has the table of limits."""
    limits: Sequence[TaskLimit] = ()
    unconfirmed_workers: Sequence[str] = ()
    """Live workers that have not confirmed the pauses."""
    has_groups: bool = False
    """Whether the schema has the tables of groups."""
    groups: GroupStatus | None = None
    """None where groups were not checked."""
    has_history: bool = False
    """Whether the schema has the tables of history."""
    history: HistoryStatus | None = None
    """What history holds; None where the schema has none."""
    has_statistics: bool = False
    """Whether the schema has the table of statistics."""
    statistics: StatisticsStatus | None = None
    """What the statistics hold; None where they were not checked."""
    allows_transactions: bool = True
    """False behind a pooler in statement mode; nothing else can be checked then."""


def diagnose(facts: DoctorFacts) -> list[Finding]:
    """Return a finding for each check, in the order of the report."""
    findings = [*_server(facts), *_schema(facts)]
    if facts.revision is not None and facts.allows_transactions:
        findings += [
            *_citus(facts),
            *_node(facts),
            *_rights(facts),
            *_indexes(facts),
            *_locks(facts),
            *_workers(facts),
            *_pauses(facts),
            *_history(facts),
            *_statistics(facts),
            *_limits(facts),
            *_groups(facts),
            *_backlog(facts),
            *_vacuum(facts),
            *_transactions(facts),
            *_sequences(facts),
        ]
    not_checked = {check for check, _ in facts.not_checked}
    seen = [each for each in findings if each.check not in not_checked]
    return seen + [Finding(check, CheckStatus.WARNING, f"not checked: {why}") for check, why in facts.not_checked]


def is_healthy(findings: Sequence[Finding]) -> bool:
    """True when no check found an error."""
    return all(each.status is not CheckStatus.ERROR for each in findings)


# -- the checks ------------------------------------------------------------------------------------------------------


def _server(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.read_only:
        yield Finding(
            "server", CheckStatus.ERROR, f"PostgreSQL {facts.server} is read-only", "connect to the primary server"
        )
    else:
        yield Finding("server", CheckStatus.OK, f"PostgreSQL {facts.server}, as role {facts.role}")
    skew = max(abs(facts.clock_skew) - facts.uncertainty, timedelta())
    if skew > MAX_SKEW:
        way = "ahead of" if facts.clock_skew > timedelta() else "behind"
        yield Finding(
            "clock",
            CheckStatus.ERROR,
            f"the server's clock is {_rounded(skew)} {way} this machine's",
            "synchronise both clocks (NTP); until then run workers without --client-time",
        )
    else:
        yield Finding("clock", CheckStatus.OK, "the clocks agree")
    if not facts.allows_transactions:
        message = "the connection goes through a pooler in statement mode, and a queue needs transactions"
        yield Finding("pooler", CheckStatus.ERROR, message, "set pool_mode to transaction, or connect directly")
    elif facts.through_pooler:
        message = "the connection goes through a pooler in transaction mode, which drops notifications, so workers poll"
        fix = "give workers a direct --listen-connection"
        if facts.prepared_statements:
            message += "; prepared statements may fail in your programs"
            fix += ", and your Client prepared_statements=False"
        yield Finding("pooler", CheckStatus.WARNING, message, fix)
    else:
        yield Finding("pooler", CheckStatus.OK, "no pooler")


def _schema(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.schema_problem is not None:
        # A queue that only other implementations work on may stay at its revision.
        status = CheckStatus.WARNING if facts.schema_behind else CheckStatus.ERROR
        can_migrate = facts.schema_behind or facts.revision is None
        fix = _command(facts, "migrate") if can_migrate else "follow that message first"
        yield Finding("schema", status, facts.schema_problem, fix)
        return
    yield Finding("schema", CheckStatus.OK, f"revision {facts.revision}")
    for warning in facts.schema_warnings:
        yield Finding("upstream", CheckStatus.WARNING, warning, "check for a newer version of gw")


def _citus(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.distributed_tables:
        yield Finding(
            "citus",
            CheckStatus.ERROR,
            f"Citus distributes {_some(facts.distributed_tables)}, and adding jobs fails",
            f"keep the queue local to the coordinator: select citus_schema_undistribute('{facts.schema}')",
        )


def _node(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.parallel_queues:
        yield Finding(
            "node",
            CheckStatus.ERROR,
            f"a Node.js worker runs several jobs of {_some(facts.parallel_queues)} at the same time",
            "upgrade graphile-worker to 0.18, or set its worker.localQueue.size to -1",
        )


def _rights(facts: DoctorFacts) -> Iterator[Finding]:
    hidden = [each.name for each in facts.rights if each.rows_hidden]
    if hidden:
        yield Finding(
            "row security",
            CheckStatus.ERROR,
            f"row level security hides the rows of {_some(hidden)} from role {facts.role}, without any error",
            f"connect as the owner, or: alter role {sql_identifier(facts.role)} bypassrls",
        )
    else:
        yield Finding("row security", CheckStatus.OK, "hides no rows from this role")
    lacking = [each.name for each in facts.rights if not each.everything]
    if lacking:
        yield Finding(
            "rights",
            CheckStatus.ERROR,
            f"role {facts.role} cannot read and write {_some(lacking)}",
            f"grant usage on the schema, and select, insert, update, delete on its tables, to {facts.role}",
        )
    else:
        yield Finding("rights", CheckStatus.OK, "the role has all privileges of a worker")


def _indexes(facts: DoctorFacts) -> Iterator[Finding]:
    for name in facts.invalid_indexes:
        yield Finding(
            "indexes",
            CheckStatus.ERROR,
            f"index {name} is invalid and not used",
            f"reindex index {sql_identifier(facts.schema)}.{sql_identifier(name)}",
        )
    for name in facts.missing_indexes:
        fix = f"create index concurrently {name} on {sql_identifier(facts.schema)}.{NEEDED_INDEXES[name]}"
        yield Finding("indexes", CheckStatus.ERROR, f"index {name} is missing, and claims are slow without it", fix)
    if not (facts.invalid_indexes or facts.missing_indexes):
        yield Finding("indexes", CheckStatus.OK, "all present and valid")


def _locks(facts: DoctorFacts) -> Iterator[Finding]:
    found = False
    for each in facts.holders:
        oldest = _rounded(each.oldest)
        what = f"{each.worker_id} has locked {each.jobs} jobs and {each.queues} queues, the oldest for {oldest}"
        unlock = _unlock(facts, each.worker_id)
        if each.last_heartbeat is not None and each.last_heartbeat > STALE_AFTER:
            found = True
            why = f"{what}, last heartbeat {_rounded(each.last_heartbeat)} ago"
            yield Finding("locks", CheckStatus.ERROR, why, unlock)
        elif each.oldest > STALE_LOCK and each.last_heartbeat is None:
            found = True
            yield Finding(
                "locks",
                CheckStatus.ERROR,
                f"{what}, and sends no heartbeats",
                unlock,
            )
    if not found:
        held = sum(each.jobs for each in facts.holders)
        yield Finding("locks", CheckStatus.OK, f"{held} jobs are locked, none by a dead worker")


def _workers(facts: DoctorFacts) -> Iterator[Finding]:
    if not facts.has_heartbeats:
        message = "the schema has no heartbeats table, so dead workers are only found by locks older than 4 hours"
        yield Finding("workers", CheckStatus.WARNING, message, _command(facts, "migrate"))
    elif facts.stale_workers:
        message = f"{_some(facts.stale_workers)} exited without unregistering"
        yield Finding("workers", CheckStatus.WARNING, message, _command(facts, "sweep"))
    else:
        yield Finding("workers", CheckStatus.OK, f"{facts.live_workers} alive")


def _pauses(facts: DoctorFacts) -> Iterator[Finding]:
    for pause in facts.pauses:
        fix = _typed(facts, "resume", str(pause.target)) or "gw resume, with the target as gw pauses prints it"
        yield Finding("pauses", CheckStatus.WARNING, f"{pause.target} is {pause.description}", fix)
    if (facts.pauses or facts.limits) and facts.unconfirmed_workers:
        message = f"{_some(facts.unconfirmed_workers)} has not confirmed the pauses and limits and may ignore them"
        yield Finding("pauses", CheckStatus.ERROR, message, "restart it, with the newest version of gw")
    if not facts.pauses:
        yield Finding("pauses", CheckStatus.OK, "nothing is paused")


def _groups(facts: DoctorFacts) -> Iterator[Finding]:
    found = facts.groups
    if found is None or not found.waiting:
        return
    if found.held:
        message = (
            f"{found.held} of {found.waiting} waiting groups are held by members that failed permanently, "
            f"the first, {found.first_held}, by job {found.first_failed_job}"
        )
        fix = _typed(facts, "retry", str(found.first_failed_job)) or f"gw retry {found.first_failed_job}"
        yield Finding("groups", CheckStatus.WARNING, message, fix)
        return
    yield Finding("groups", CheckStatus.OK, f"groups whose last job waits for members: {found.waiting}")


def _history(facts: DoctorFacts) -> Iterator[Finding]:
    found = facts.history
    if found is None:
        return
    if found.records_others is not None:
        message = (
            f"jobs ended by other programs are recorded and kept for {format_duration(found.records_others)}, by the "
            "trigger _private_gw_record_others of the jobs table"
        )
        yield Finding("history", CheckStatus.OK, message)
    if found.waiting_rows > MAX_WAITING_ROWS:
        message = f"at least {MAX_WAITING_ROWS:,} rows wait for a partition, so expiry has to delete them one by one"
        yield Finding("history", CheckStatus.WARNING, message, "start a worker that keeps history; it makes partitions")
    if found.expired_partitions > MAX_EXPIRED_PARTITIONS:
        message = f"{found.expired_partitions} partitions are expired and still there"
        fix = _typed(facts, "cleanup", "expired-history") or "gw cleanup expired-history, with --schema"
        yield Finding("history", CheckStatus.WARNING, message, fix)
    elif found.waiting_rows <= MAX_WAITING_ROWS:
        size = f"{found.size_bytes / 1_000_000:,.0f} MB"
        held = "history is empty" if found.latest_at is None else f"about {found.rows:,} rows, {size}"
        yield Finding("history", CheckStatus.OK, held)


def _statistics(facts: DoctorFacts) -> Iterator[Finding]:
    found = facts.statistics
    if found is None:
        return
    missing = found.live_workers - found.recording_workers
    if found.recording_workers and missing:
        message = f"{missing} of {found.live_workers} live workers record no statistics, so charts leave out their jobs"
        yield Finding("statistics", CheckStatus.WARNING, message, "set statistics on every worker, or on none")
        return
    who = "live workers record statistics" if found.recording_workers else "no live worker records statistics"
    if found.oldest_age is None or found.latest_age is None:
        yield Finding("statistics", CheckStatus.OK, f"{who}; there are none")
        return
    times = f"from {_rounded(found.oldest_age)} to {_rounded(found.latest_age)} ago"
    size = f"{found.size_bytes / 1_000_000:,.1f} MB"
    rows = "" if found.rows is None else f"about {found.rows:,} rows, "
    yield Finding("statistics", CheckStatus.OK, f"{who}; {rows}{size}, {times}")


def _limits(facts: DoctorFacts) -> Iterator[Finding]:
    for limit in facts.limits:
        if limit.has_index:
            yield Finding("limits", CheckStatus.OK, f"task {limit.task}: {limit.description}")
        else:
            message = f"task {limit.task}: no jobs are claimed, because the index of {limit.field} is missing"
            yield Finding("limits", CheckStatus.ERROR, message, "set the limit again with gw limit")
    if not facts.limits:
        yield Finding("limits", CheckStatus.OK, "no task has a limit")


def _backlog(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.backlog is not None and facts.backlog > MAX_BACKLOG:
        alone = facts.has_heartbeats and not facts.live_workers
        why = "and there is no live worker" if alone else "and no worker claimed it"
        fix = (
            _command(facts, "run")
            if alone
            else "gw queues; gw tasks: a locked queue, an unknown task, or too few workers"
        )
        yield Finding(
            "backlog", CheckStatus.ERROR, f"the next job has been due for {_rounded(facts.backlog)}, {why}", fix
        )
    else:
        yield Finding("backlog", CheckStatus.OK, "no job is overdue")


def _vacuum(facts: DoctorFacts) -> Iterator[Finding]:
    if not facts.autovacuum:
        yield Finding(
            "vacuum", CheckStatus.ERROR, "autovacuum is off on this server", "alter system set autovacuum = on"
        )
    for table in facts.tables:
        if not table.autovacuum:
            yield Finding(
                "vacuum",
                CheckStatus.ERROR,
                f"autovacuum is off for {table.name}",
                f"alter table {sql_identifier(facts.schema)}.{table.name} reset (autovacuum_enabled)",
            )
        if table.dead_rows > max(DEAD_ROWS, table.live_rows):
            ago = "never vacuumed" if table.last_vacuum is None else f"vacuumed {_rounded(table.last_vacuum)} ago"
            yield Finding(
                "vacuum",
                CheckStatus.ERROR,
                f"{table.name} has {table.dead_rows} dead rows beside {table.live_rows} live ones, {ago}",
                f"vacuum analyze {sql_identifier(facts.schema)}.{table.name}",
            )
        elif table.autovacuum and table.vacuum_after > LATE_VACUUM:
            yield Finding(
                "vacuum",
                CheckStatus.WARNING,
                f"autovacuum of {table.name} starts when {table.vacuum_after} rows are dead, which slows claims down",
                f"alter table {sql_identifier(facts.schema)}.{table.name} set (autovacuum_vacuum_scale_factor = 0.01)",
            )
    healthy = facts.autovacuum and all(
        table.autovacuum and table.dead_rows <= max(DEAD_ROWS, table.live_rows) and table.vacuum_after <= LATE_VACUUM
        for table in facts.tables
    )
    if healthy:
        yield Finding("vacuum", CheckStatus.OK, "dead rows are vacuumed")


def _transactions(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.oldest_transaction is not None and facts.oldest_transaction[1] > MAX_TRANSACTION_AGE:
        what, age = facts.oldest_transaction
        message = f"{what} has had a transaction open for {_rounded(age)}, which keeps vacuum from removing dead rows"
        yield Finding("transactions", CheckStatus.ERROR, message, "end it, or: select pg_terminate_backend(PROCESS)")
    else:
        yield Finding("transactions", CheckStatus.OK, "none is long")


def _sequences(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.most_used_sequence is not None and facts.most_used_sequence[1] > MAX_SEQUENCE_USE:
        table, share = facts.most_used_sequence
        message = f"{share:.0%} of the ids of {table} are used up"
        yield Finding(
            "ids", CheckStatus.ERROR, message, "stop adding new names, and restart the identity column's sequence"
        )
    else:
        yield Finding("ids", CheckStatus.OK, "enough left")


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
    return shell_command(("gw", verb, *where, *names))


def _rounded(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=round(duration.total_seconds())))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
