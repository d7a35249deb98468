"""Say what is wrong with a queue, and which command mends it: a finding for each thing that was looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gw_core.domain.durations import format_duration
from gw_core.domain.quoting import shell_command, sql_literal

STALE_LOCK: Final = timedelta(hours=4)
SILENT: Final = timedelta(minutes=5)
"""A heart beats twice a minute; one that has been still for this long belongs to a dead worker."""
LARGEST_SKEW: Final = timedelta(seconds=2)
LONGEST_TRANSACTION: Final = timedelta(minutes=10)
LONGEST_BACKLOG: Final = timedelta(minutes=15)
DEAD_ROWS: Final = 100_000
LATE_VACUUM: Final = 300_000
"""Dead rows that autovacuum may wait for; a claim takes the server thrice as long at that many."""
FULLEST_SEQUENCE: Final = 0.8
NEEDED_INDEXES: Final = {
    "jobs_main_index": "_private_jobs (priority, run_at) include (id, task_id, job_queue_id) where is_available = true",
    "jobs_no_queue_index": "_private_jobs (priority, run_at) include (id, task_id) "
    "where is_available = true and job_queue_id is null",
}
"""Those of the shared line, which no migration makes again; our own are a step of `gw migrate`, checked as such."""


class CheckStatus(StrEnum):
    """How a thing was found."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing, and perhaps meant so."""
    WRONG = "wrong"
    """Needs somebody's hand; the queue is not healthy."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it was found, in words, and what to do about it."""

    check: str
    verdict: CheckStatus
    words: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """Who holds jobs and queues; `last_beat` is None for a worker without a heart, such as one of Node.js."""

    worker_id: str
    jobs: int
    queues: int
    oldest: timedelta
    last_beat: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """How full of dead rows a table is, and whether it is vacuumed by itself."""

    name: str
    live_rows: int
    dead_rows: int
    last_vacuum: timedelta | None
    autovacuum: bool
    vacuum_after: int = 0
    """How many rows are dead when autovacuum comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRights:
    """What our role may do with a table."""

    name: str
    everything: bool
    rows_hidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    """What an examination saw. What could not be looked at is None, and named with its reason in `unseen`."""

    schema: str
    server: str
    revision: int | None
    schema_behind: bool
    """Whether the schema is one that `gw migrate`, or the start of a worker, brings up to date."""
    schema_problem: str | None
    schema_warnings: Sequence[str] = ()
    role: str
    read_only: bool
    clock_skew: timedelta
    uncertainty: timedelta
    """Half of the time the question about the clock took."""
    through_pooler: bool
    prepared_statements: bool
    autovacuum: bool
    has_heartbeats: bool
    rights: Sequence[TableRights] = ()
    tables: Sequence[TableHealth] = ()
    distributed_tables: Sequence[str] = ()
    """Tables of the queue that Citus distributes."""
    invalid_indexes: Sequence[str] = ()
    missing_indexes: Sequence[str] = ()
    holders: Sequence[LockHolder] = ()
    silent_workers: Sequence[str] = ()
    live_workers: int = 0
    oldest_transaction: tuple[str, timedelta] | None = None
    fullest_sequence: tuple[str, float] | None = None
    backlog: timedelta | None = None
    unseen: Sequence[tuple[str, str]] = field(default=())
    allows_transactions: bool = True
    """False behind a pooler that lends its connections for one statement; then nothing else can be looked at."""


def diagnose(facts: DoctorFacts) -> list[Finding]:
    """Return a finding for everything that was looked at, in the order of a page that is read from the top."""
    findings = [*_server(facts), *_schema(facts)]
    if facts.revision is not None and facts.allows_transactions:
        findings += [
            *_citus(facts),
            *_rights(facts),
            *_indexes(facts),
            *_locks(facts),
            *_workers(facts),
            *_backlog(facts),
            *_vacuum(facts),
            *_transactions(facts),
            *_sequences(facts),
        ]
    unseen = {check for check, _ in facts.unseen}
    seen = [each for each in findings if each.check not in unseen]
    return seen + [Finding(check, CheckStatus.NOTE, f"could not be looked at: {why}") for check, why in facts.unseen]


def is_healthy(findings: Sequence[Finding]) -> bool:
    """True when nothing needs somebody's hand."""
    return all(each.verdict is not CheckStatus.WRONG for each in findings)


# -- the checks ------------------------------------------------------------------------------------------------------


def _server(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.read_only:
        yield Finding(
            "server", CheckStatus.WRONG, f"PostgreSQL {facts.server} takes no writes", "connect to the primary server"
        )
    else:
        yield Finding("server", CheckStatus.OK, f"PostgreSQL {facts.server}, as role {facts.role}")
    skew = max(abs(facts.clock_skew) - facts.uncertainty, timedelta())
    if skew > LARGEST_SKEW:
        way = "ahead of" if facts.clock_skew > timedelta() else "behind"
        yield Finding(
            "clock",
            CheckStatus.WRONG,
            f"the server's clock is {_span(skew)} {way} this machine's",
            "synchronise both clocks (NTP); until then run workers without --client-time",
        )
    else:
        yield Finding("clock", CheckStatus.OK, "the clocks agree")
    if not facts.allows_transactions:
        words = "a pooler stands between that lends its connections for one statement, and a queue needs transactions"
        yield Finding("pooler", CheckStatus.WRONG, words, "set its pool_mode to transaction, or connect to the server")
    elif facts.through_pooler:
        words = "a pooler stands between; in transaction mode it passes on no news of jobs, so workers poll"
        remedy = "give workers a direct --listen-connection"
        if facts.prepared_statements:
            words += ", and prepared statements may fail in programs of your own"
            remedy += ", and your own Client prepared_statements=False"
        yield Finding("pooler", CheckStatus.NOTE, words, remedy)
    else:
        yield Finding("pooler", CheckStatus.OK, "no pooler between us and the server")


def _schema(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.schema_problem is not None:
        # A queue that only others work on may well stay as they made it.
        verdict = CheckStatus.NOTE if facts.schema_behind else CheckStatus.WRONG
        can_migrate = facts.schema_behind or facts.revision is None
        remedy = _command(facts, "migrate") if can_migrate else "do as it says before anything else"
        yield Finding("schema", verdict, facts.schema_problem, remedy)
        return
    yield Finding("schema", CheckStatus.OK, f"revision {facts.revision}")
    for warning in facts.schema_warnings:
        yield Finding("upstream", CheckStatus.NOTE, warning, "look for a newer version of gw")


def _citus(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.distributed_tables:
        yield Finding(
            "citus",
            CheckStatus.WRONG,
            f"Citus distributes {_some(facts.distributed_tables)}, and adding jobs fails",
            f"keep the queue local to the coordinator: select citus_schema_undistribute('{facts.schema}')",
        )


def _rights(facts: DoctorFacts) -> Iterator[Finding]:
    hidden = [each.name for each in facts.rights if each.rows_hidden]
    if hidden:
        yield Finding(
            "row security",
            CheckStatus.WRONG,
            f"row level security hides the rows of {_some(hidden)} from role {facts.role}, without any error",
            f"connect as the owner, or: alter role {_identifier(facts.role)} bypassrls",
        )
    else:
        yield Finding("row security", CheckStatus.OK, "hides nothing from this role")
    lacking = [each.name for each in facts.rights if not each.everything]
    if lacking:
        yield Finding(
            "rights",
            CheckStatus.WRONG,
            f"role {facts.role} may not read and write {_some(lacking)}",
            f"grant usage on the schema, and select, insert, update, delete on its tables, to {facts.role}",
        )
    else:
        yield Finding("rights", CheckStatus.OK, "the role may do everything a worker does")


def _indexes(facts: DoctorFacts) -> Iterator[Finding]:
    for name in facts.invalid_indexes:
        yield Finding(
            "indexes",
            CheckStatus.WRONG,
            f"index {name} is invalid and not used",
            f"reindex index {_identifier(facts.schema)}.{_identifier(name)}",
        )
    for name in facts.missing_indexes:
        remedy = f"create index concurrently {name} on {_identifier(facts.schema)}.{NEEDED_INDEXES[name]}"
        yield Finding("indexes", CheckStatus.WRONG, f"index {name} is missing, and claims are slow without it", remedy)
    if not (facts.invalid_indexes or facts.missing_indexes):
        yield Finding("indexes", CheckStatus.OK, "all there and valid")


def _locks(facts: DoctorFacts) -> Iterator[Finding]:
    found = False
    for each in facts.holders:
        what = f"{each.worker_id} holds {each.jobs} jobs and {each.queues} queues, the oldest for {_span(each.oldest)}"
        unlock = _unlock(facts, each.worker_id)
        if each.last_beat is not None and each.last_beat > SILENT:
            found = True
            why = f"{what}, and its heart has been still for {_span(each.last_beat)}"
            yield Finding("locks", CheckStatus.WRONG, why, unlock)
        elif each.oldest > STALE_LOCK and each.last_beat is None:
            found = True
            yield Finding(
                "locks",
                CheckStatus.WRONG,
                f"{what}, and has no heart",
                unlock,
            )
    if not found:
        held = sum(each.jobs for each in facts.holders)
        yield Finding("locks", CheckStatus.OK, f"{held} jobs are held, none by a dead worker")


def _workers(facts: DoctorFacts) -> Iterator[Finding]:
    if not facts.has_heartbeats:
        words = "the schema has no table for heartbeats, so a dead worker is known only by locks of four hours"
        yield Finding("workers", CheckStatus.NOTE, words, _command(facts, "migrate"))
    elif facts.silent_workers:
        words = f"{_some(facts.silent_workers)} ended without taking leave"
        yield Finding("workers", CheckStatus.NOTE, words, _command(facts, "sweep"))
    else:
        yield Finding("workers", CheckStatus.OK, f"{facts.live_workers} alive")


def _backlog(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.backlog is not None and facts.backlog > LONGEST_BACKLOG:
        alone = facts.has_heartbeats and not facts.live_workers
        why = "and no worker's heart beats" if alone else "and nobody took it"
        remedy = (
            _command(facts, "run")
            if alone
            else "gw queues; gw tasks: a held queue, an unknown task, or too few workers"
        )
        yield Finding(
            "backlog", CheckStatus.WRONG, f"the next job has been due for {_span(facts.backlog)}, {why}", remedy
        )
    else:
        yield Finding("backlog", CheckStatus.OK, "no job waits long")


def _vacuum(facts: DoctorFacts) -> Iterator[Finding]:
    if not facts.autovacuum:
        yield Finding(
            "vacuum", CheckStatus.WRONG, "autovacuum is off on this server", "alter system set autovacuum = on"
        )
    for table in facts.tables:
        if not table.autovacuum:
            yield Finding(
                "vacuum",
                CheckStatus.WRONG,
                f"autovacuum is off for {table.name}",
                f"alter table {_identifier(facts.schema)}.{table.name} reset (autovacuum_enabled)",
            )
        if table.dead_rows > max(DEAD_ROWS, table.live_rows):
            ago = "never vacuumed" if table.last_vacuum is None else f"vacuumed {_span(table.last_vacuum)} ago"
            yield Finding(
                "vacuum",
                CheckStatus.WRONG,
                f"{table.name} has {table.dead_rows} dead rows beside {table.live_rows} live ones, {ago}",
                f"vacuum analyze {_identifier(facts.schema)}.{table.name}",
            )
        elif table.autovacuum and table.vacuum_after > LATE_VACUUM:
            yield Finding(
                "vacuum",
                CheckStatus.NOTE,
                f"autovacuum comes to {table.name} when {table.vacuum_after} rows are dead; claims step over them",
                f"alter table {_identifier(facts.schema)}.{table.name} set (autovacuum_vacuum_scale_factor = 0.01)",
            )
    healthy = facts.autovacuum and all(
        table.autovacuum and table.dead_rows <= max(DEAD_ROWS, table.live_rows) and table.vacuum_after <= LATE_VACUUM
        for table in facts.tables
    )
    if healthy:
        yield Finding("vacuum", CheckStatus.OK, "dead rows are cleared away")


def _transactions(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.oldest_transaction is not None and facts.oldest_transaction[1] > LONGEST_TRANSACTION:
        what, age = facts.oldest_transaction
        words = f"{what} has had a transaction open for {_span(age)}; dead rows stay while it lasts"
        yield Finding("transactions", CheckStatus.WRONG, words, "end it, or: select pg_terminate_backend(PROCESS)")
    else:
        yield Finding("transactions", CheckStatus.OK, "none is old")


def _sequences(facts: DoctorFacts) -> Iterator[Finding]:
    if facts.fullest_sequence is not None and facts.fullest_sequence[1] > FULLEST_SEQUENCE:
        table, share = facts.fullest_sequence
        words = f"{share:.0%} of the ids of {table} are used up"
        yield Finding(
            "ids", CheckStatus.WRONG, words, "stop adding under new names, and restart the identity column's sequence"
        )
    else:
        yield Finding("ids", CheckStatus.OK, "plenty left")


def _command(facts: DoctorFacts, verb: str) -> str:
    return _typed(facts, verb) or f"gw {verb}, with --schema"


def _unlock(facts: DoctorFacts, worker_id: str) -> str:
    """Return the command that unlocks a worker, or the SQL when its id has characters that cannot be typed."""
    names = ("--", worker_id) if worker_id.startswith("-") else (worker_id,)
    schema = _identifier(facts.schema)
    sql = f"select * from {schema}.force_unlock_workers(array[{sql_literal(worker_id)}]);"  # noqa: S608 - a person runs it
    return _typed(facts, "unlock", *names) or sql


def _typed(facts: DoctorFacts, verb: str, *names: str) -> str | None:
    where = () if facts.schema == "graphile_worker" else (f"--schema={facts.schema}",)
    return shell_command(("gw", verb, *where, *names))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _span(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
