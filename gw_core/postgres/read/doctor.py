"""Examine a queue: gather the facts a diagnosis needs, and check in a millisecond that it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final

from msgspec import structs
from msgspec.structs import replace

from gw_core.domain.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    PermissionDeniedError,
    ReadOnlyError,
)
from gw_core.domain.job.group import GroupStatus
from gw_core.domain.job.job import named
from gw_core.domain.reports.diagnosis import (
    MAX_FAILED,
    NEEDED_INDEXES,
    DoctorFacts,
    Finding,
    TableHealth,
    diagnose,
)
from gw_core.domain.reports.job_status import STALE_AFTER
from gw_core.domain.reports.lock_waits import LockWaits
from gw_core.domain.rules.roles import RoleKind, policy_name, rights_of
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.domain.rules.sweep_rules import tasks_of
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.database import Connection, allows_transactions, in_one_trip
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import uses_of_kind, visible_rows
from gw_core.postgres.read.history import history_status
from gw_core.postgres.read.lock_waits import MOST, find_lock_waits, oldest_transaction, sweep_locks
from gw_core.postgres.read.statistics_queries import statistics_status, status_values
from gw_core.postgres.road.limits import limit_of
from gw_core.postgres.road.pauses import pause_of
from gw_core.postgres.road.worker_store import (
    list_heartbeats,
    list_orphaned_queues,
    list_rust_heartbeats,
    list_worker_locks,
)
from gw_core.postgres.schema.schema_state import (
    TABLES_STEP,
    TABLES_TURN_PRIVATE,
    SchemaState,
    SchemaStatus,
    check,
)

FAILED_INDEX: Final = "jobs_gw_failed_index"

QUERY_TIMEOUT: Final = timedelta(seconds=10)
"""The timeout of one query, for large tables."""

READERS: Final = frozenset({RoleKind.WORKER, RoleKind.VIEWER, RoleKind.OPERATOR})
"""Kinds of roles that may read everything; for the others, checks of what they may not read are left out."""

_Check = Callable[[Connection, DoctorFacts], DoctorFacts]


class Examination(QueueOperations, frozen=True):
    """Checks the whole queue and changes nothing. Safe from any thread."""

    def health_check(self) -> timedelta:
        """Return how long a cheap query on the jobs table took."""
        with self._connection() as connection:
            began = time.perf_counter()
            [(_, is_standby, is_read_only)] = visible_rows(connection, self.schema, "health_check")
            took = timedelta(seconds=time.perf_counter() - began)
        # A client that may only read has asked for that itself.
        if is_standby or (is_read_only and not self.connections.database.limits.read_only):
            kind = "a standby" if is_standby else "read-only"
            raise ReadOnlyError(f"the server is {kind}, so no worker can use the queue there; connect to the primary")
        return took

    def findings(self, kind: RoleKind | str | None = None) -> list[Finding]:
        """Return a finding for each check."""
        return diagnose(self.examine(kind))

    def lock_waits(self) -> LockWaits:
        """Return which sessions block others in this database, and the longest open transactions."""
        with self._connection() as connection, in_one_trip(connection):
            self._limit_time(connection)
            return find_lock_waits(connection, self.schema)

    def examine(self, kind: RoleKind | str | None = None) -> DoctorFacts:
        """Gather the facts; what the role may not see, or what takes too long, is named as not_checked."""
        wanted = None if kind is None else named(RoleKind, kind, "a kind of role")
        with self._connection() as connection:
            state = check(connection, self.schema, kind=wanted)
            facts = self._server(connection, state)
            if state.revision is None or not facts.allows_transactions:
                return facts
            facts = replace(facts, kinds=self._kinds(connection, wanted))
            for name, check_facts in self._checks(state):
                facts = self._guarded(connection, facts, name, check_facts)
        return facts

    def _checks(self, state: SchemaState) -> Iterator[tuple[str, _Check]]:
        """Yield the checks for what the schema has."""
        yield from (
            ("blocked", self._blocked),
            ("citus", self._citus),
            ("node", self._node),
            ("replication", self._replication),
            ("rights", self._rights),
            ("indexes", self._indexes),
            ("workers", self._workers),
            ("locks", self._locks),
        )
        if state.has_rust_workers:
            yield "rust", self._rust
        yield "sweeps", self._sweeps
        if TABLES_STEP in state.own_present:
            yield from (
                ("pauses", self._pauses),
                ("history", self._history),
                ("statistics", self._statistics),
                ("limits", self._limits),
                ("groups", self._groups),
                ("future", self._future),
            )
        yield from (
            ("failed", self._failed),
            ("backlog", self._backlog),
            ("vacuum", self._tables),
            ("transactions", self._transactions),
            ("ids", self._sequences),
        )

    def _kinds(self, connection: Connection, wanted: RoleKind | None) -> Sequence[RoleKind]:
        """Return what our role is meant for."""
        if wanted is not None:
            return (wanted,)
        values = {"schema": self.schema, "policies": [policy_name(kind) for kind in RoleKind]}
        [(granted, is_owner, may_change)] = visible_rows(connection, self.schema, "doctor_role", values)
        if is_owner or not granted:
            return (RoleKind.WORKER if is_owner or may_change else RoleKind.VIEWER,)
        return [RoleKind(each) for each in granted]

    def _guarded(self, connection: Connection, facts: DoctorFacts, name: str, check_facts: _Check) -> DoctorFacts:
        try:
            with translated(self.schema), in_one_trip(connection):
                self._limit_time(connection)
                return check_facts(connection, facts)
        except DatabaseUnavailableError:
            raise
        except PermissionDeniedError as error:
            if READERS.isdisjoint(facts.kinds):
                return replace(facts, left_out=(*facts.left_out, name))
            return replace(facts, not_checked=(*facts.not_checked, (name, str(error))))
        except DatabaseError as error:
            return replace(facts, not_checked=(*facts.not_checked, (name, str(error))))

    def _limit_time(self, connection: Connection) -> None:
        """Bound what follows in this pipeline, which is one transaction; the server does not wait for us in it."""
        limits = self.connections.database.limits
        connection.execute(
            "select set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)",
            (
                milliseconds(limits.cap_statement_timeout(QUERY_TIMEOUT)),
                milliseconds(limits.cap_lock_timeout(QUERY_TIMEOUT)),
            ),
        )

    def _server(self, connection: Connection, state: SchemaState) -> DoctorFacts:
        before = time.time()
        [[version, clock, pid, role, read_only, autovacuum]] = self._ask(connection, "doctor_server")
        after = time.time()
        # The check of row security reports a hidden ledger, with the grant for the kind of role.
        is_hidden = state.revision is not None and state.visibility_problem() is not None
        problem = None if is_hidden else state.problem()
        # A pooler shows its clients an invented process number, because it serves them from many processes.
        through_pooler = connection.info.backend_pid != pid
        return DoctorFacts(
            schema=self.schema,
            server=version,
            revision=state.revision,
            schema_behind=state.status is SchemaStatus.BEHIND,
            schema_problem=None if problem is None else str(problem),
            schema_warnings=state.warnings(),
            role=role,
            read_only=read_only,
            clock_skew=timedelta(seconds=clock - (before + after) / 2),
            uncertainty=timedelta(seconds=(after - before) / 2),
            through_pooler=through_pooler,
            allows_transactions=not through_pooler or allows_transactions(connection),
            autovacuum=autovacuum,
            has_heartbeats=TABLES_STEP in state.own_present,
        )

    def _rights(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        needed = [f"{each} {name}" for kind in facts.kinds for name, each in rights_of(kind)]
        uses = [use for kind in facts.kinds for use in uses_of_kind(kind)]
        values = {"schema": self.schema, "rights": needed, "uses": uses}
        lacking = visible_rows(connection, self.schema, "doctor_permissions", values)
        hidden = visible_rows(connection, self.schema, "doctor_hidden_rows", values)
        tables = dict.fromkeys(use[2:] for (use,) in hidden)
        return replace(facts, lacking=[each for _, each in lacking], hidden_tables=list(tables))

    def _indexes(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        known = dict(visible_rows(connection, self.schema, "index_list", {"schema": self.schema, "prefix": ""}))
        invalid = [name for name, is_valid in known.items() if not is_valid]
        # Before revision 16 there is no such table, and its indexes come with the upgrade.
        has_jobs = (facts.revision or 0) >= TABLES_TURN_PRIVATE
        missing = [name for name in NEEDED_INDEXES if has_jobs and name not in known]
        return replace(facts, invalid_indexes=invalid, missing_indexes=missing)

    def _workers(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        known = list_heartbeats(connection, self.schema)
        live = [worker for worker in known if worker.inactive_for <= STALE_AFTER]
        return replace(
            facts,
            stale_workers=[worker.id for worker in known if worker not in live],
            live_workers=len(live),
            workers_with_overruns=[worker for worker in live if worker.overruns],
            served_tasks=tasks_of(live),
        )

    def _citus(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        catalog = connection.execute("select to_regclass('pg_catalog.pg_dist_partition') is not null").fetchone()
        if catalog is None or not catalog[0]:
            return facts
        found = self._ask(connection, "doctor_distributed_tables")
        return replace(facts, distributed_tables=[name for (name,) in found])

    def _node(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, parallel_queues=[name for (name,) in self._ask(connection, "doctor_parallel_queues")])

    def _replication(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, tables_without_identity=[name for (name,) in self._ask(connection, "doctor_replication")])

    def _locks(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        heartbeats = list_heartbeats(connection, self.schema) if facts.is_known("workers") else ()
        ages = {worker.id: worker.heartbeat_age for worker in heartbeats}
        locks = list_worker_locks(connection, self.schema)
        holders = [structs.replace(each, heartbeat_age=ages.get(each.id)) for each in locks]
        return replace(
            facts,
            holders=sorted(holders, key=attrgetter("oldest_lock_age"), reverse=True),
            orphaned_queues=list_orphaned_queues(connection, self.schema),
        )

    def _rust(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, known_to_rust=list_rust_heartbeats(connection, self.schema))

    def _sweeps(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        values = {"schema": self.schema, "most": MOST}
        return replace(
            facts, sweep_locks=sweep_locks(visible_rows(connection, self.schema, "sweep_lock_sessions", values))
        )

    def _pauses(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        pauses = [pause_of(*row) for row in visible_rows(connection, self.schema, "pause_list")]
        values = {"revision": None, "recent_seconds": STALE_AFTER.total_seconds()}
        names = {name for (name,) in visible_rows(connection, self.schema, "claim_rules_unconfirmed", values)}
        unconfirmed = [worker for worker in list_heartbeats(connection, self.schema) if worker.id in names]
        return replace(facts, pauses=pauses, unconfirmed_workers=unconfirmed)

    def _history(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        found = visible_rows(connection, self.schema, "history_status", {"schema": self.schema})
        return replace(facts, history=history_status(found[0]))

    def _statistics(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        [row] = visible_rows(connection, self.schema, "statistics_status", status_values(self.schema))
        return replace(facts, statistics=statistics_status(row))

    def _limits(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, limits=[limit_of(row) for row in visible_rows(connection, self.schema, "limit_list")])

    def _groups(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        [[waiting, held, first, job]] = visible_rows(connection, self.schema, "doctor_waiting")
        return replace(facts, groups=GroupStatus(waiting, held, first, job))

    def _future(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        found = visible_rows(connection, self.schema, "doctor_future")
        return replace(facts, future=[(kind, name, timedelta(seconds=ahead)) for kind, name, ahead in found])

    def _blocked(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, lock_waits=find_lock_waits(connection, self.schema))

    def _failed(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        values = {"schema": self.schema, "prefix": FAILED_INDEX}
        if not visible_rows(connection, self.schema, "index_list", values):  # they are not counted by a scan
            return facts
        found = visible_rows(connection, self.schema, "doctor_failed", {"most": MAX_FAILED})
        return replace(facts, failed_tasks=[(task, number) for task, number in found])

    def _backlog(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        found = self._ask(connection, "doctor_backlog")
        return replace(facts, due_tasks=[(task, timedelta(seconds=age)) for task, age in found])

    def _tables(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        tables = [
            TableHealth(
                name=name,
                live_rows=live,
                dead_rows=dead,
                last_vacuum=None if age is None else timedelta(seconds=age),
                autovacuum=autovacuum,
                vacuum_after=int(threshold),
                index_cleanup=index_cleanup,
            )
            for name, live, dead, age, autovacuum, threshold, index_cleanup in self._ask(connection, "doctor_tables")
        ]
        return replace(facts, tables=tables)

    def _transactions(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        return replace(facts, oldest_transaction=oldest_transaction(connection, self.schema))

    def _sequences(self, connection: Connection, facts: DoctorFacts) -> DoctorFacts:
        found = self._ask(connection, "doctor_sequences")
        return replace(facts, most_used_sequence=max(found, key=lambda row: row[1], default=None))

    def _ask(self, connection: Connection, name: str) -> list[Any]:
        return visible_rows(connection, self.schema, name, {"schema": self.schema})
