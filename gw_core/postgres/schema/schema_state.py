"""What is installed in a schema, and whether this version can work on it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.errors import (
    DatabaseError,
    GraphileWorkerError,
    MigrationError,
    PermissionDeniedError,
    SchemaMissingError,
    SchemaTooNewError,
    SchemaTooOldError,
    ServerTooOldError,
)
from gw_core.domain.rules.roles import RoleKind
from gw_core.postgres.connection.database import DEFAULT_SCHEMA
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import LEDGER_USES, Uses, lacking_right, owner_runs, rows_hidden
from gw_core.postgres.connection.statement_steps import Steps
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.add_calls import Call

REVISION: Final = 20
"""The revision of the shared line that we install and upgrade to."""

MIN_REVISION: Final = 11
"""The oldest revision we can upgrade; before it the jobs table had another shape."""

TABLES_TURN_PRIVATE: Final = 16
"""The revision whose tables have the prefix `_private_`."""

RUST_REVISION: Final = 22
"""The latest revision of graphile_worker_rs that we know: 21 and 22 are its own, and 22 brings `RETIREMENTS`."""

RETIREMENTS: Final = "_private_job_retirements"
"""Its table of jobs that must never run again."""

INSTALLING_SECONDS: Final = 10
"""Graphile Worker (Node.js) commits each revision; one that is younger than this may be followed by the next."""

MIN_SERVER_VERSION: Final = 120_000

LEDGER_STEP: Final = 1
FUNCTIONS_STEP: Final = 2
TABLES_STEP: Final = 3
INDEXES_STEP: Final = 4
HISTORY_FUNCTIONS_STEP: Final = 5
WAITING_STEP: Final = 6
UNIQUE_STEP: Final = 7
OWN_STEPS: Final = {
    LEDGER_STEP: "gw_0001_ledger",
    FUNCTIONS_STEP: "gw_0002_functions",
    TABLES_STEP: "gw_0003_tables",
    INDEXES_STEP: "gw_0004_indexes",
    HISTORY_FUNCTIONS_STEP: "gw_0005_history_functions",
    WAITING_STEP: "gw_0006_waiting_jobs",
    UNIQUE_STEP: "gw_0007_unique_jobs",
}
"""gw's additions, by their numbers in a ledger of its own."""

REPAIR_MARKER: Final = "gw:add-jobs:3"
"""A marker in the body of gw's `add_jobs`; without it, another program replaced the function, or an earlier version."""

STEP_RELATIONS: Final = {
    LEDGER_STEP: {"_private_gw_migrations"},
    TABLES_STEP: {
        *("_private_gw_workers", "_private_gw_cancellations", "_private_gw_renewed_locks", "_private_gw_claim_rules"),
        *("_private_gw_pauses", "_private_gw_limits", "_private_gw_buckets", "_private_gw_statistics"),
        *("_private_gw_history", "_private_gw_steps", "gw_steps_open_index", "gw_steps_kept_index"),
        *("_private_gw_actions", "gw_actions_jobs_index", "gw_actions_expires_index"),
        *("_private_gw_expiring", "gw_expiring_expires_index"),
    },
    INDEXES_STEP: {
        *("jobs_gw_queued_index", "jobs_gw_queue_heads_index", "jobs_gw_locked_index", "jobs_gw_failed_index"),
    },
    WAITING_STEP: {"_private_gw_waiting", "_private_gw_edges", "gw_edges_waiting_index"},
    UNIQUE_STEP: {"_private_gw_unique", "gw_unique_expires_index"},
}
"""The relations that the other steps make."""

PRIVATE_FUNCTIONS: Final = frozenset(
    {"_private_gw_make_history_partition", "_private_gw_expire_history", "_private_gw_record_others"}
)
"""Those that run with their owner's rights. PUBLIC cannot execute them; a dump restored without rights changes that."""


class SchemaStatus(StrEnum):
    """How an installed schema compares with what this version knows."""

    MISSING = "missing"
    TOO_OLD = "too old"
    BEHIND = "behind"
    CURRENT = "current"
    NEWER = "newer"
    """A later revision that does not break us: usable, with a warning."""
    TOO_NEW = "too new"
    """A later revision that breaks us: not to be touched."""


class SchemaState(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed in a schema, as one statement found it."""

    schema: str
    server_version: int
    schema_exists: bool
    breaking_known: bool
    """Whether the shared ledger has its flag for breaking revisions; old ones have not."""
    revision: int | None
    breaking_revision: int | None
    own_ledger: Mapping[int, str]
    """The names of gw's schema additions that were applied, by their numbers."""
    own_present: frozenset[int]
    """The numbers of gw's schema additions whose objects exist as this version needs them."""
    has_rust_workers: bool
    """Whether `_private_workers` of graphile_worker_rs exists; its sweep takes jobs from workers it does not know."""
    has_retirements: bool = False
    """Whether `RETIREMENTS` of graphile_worker_rs exists."""
    is_recent: bool = False
    """Whether the latest revision was installed within the last seconds, so that another program may still be at it."""
    role: str = ""
    """Our role."""
    hidden: tuple[str, ...] = ()
    """What row security hides from it of the uses that were asked for and of the ledgers, see `row_security`."""

    @property
    def own_missing(self) -> tuple[int, ...]:
        """The numbers of gw's schema additions that are still to be applied, or to be applied again."""
        applied = {number for number in self.own_present if self.own_ledger.get(number) == OWN_STEPS[number]}
        if (self.revision or 0) > self.known_revision:
            # Our functions over those of a revision we do not know could break what it brought.
            applied.add(FUNCTIONS_STEP)
        return tuple(number for number in OWN_STEPS if number not in applied)

    @property
    def known_revision(self) -> int:
        """The latest revision that this version knows: graphile_worker_rs has some of its own, after ours."""
        return RUST_REVISION if self.has_retirements else REVISION

    @property
    def has_replaced_functions(self) -> bool:
        """Whether nothing is missing but functions of ours that another program replaced; we can work with its own."""
        return (
            self.status is SchemaStatus.BEHIND
            and (self.revision or 0) >= REVISION
            and self.breaking_known
            and set(self.own_missing) <= {FUNCTIONS_STEP}
        )

    @property
    def is_being_installed(self) -> bool:
        """Whether another program is likely to be installing the schema now, revision by revision."""
        return self.status is SchemaStatus.TOO_OLD and self.is_recent

    @property
    def status(self) -> SchemaStatus:
        """The verdict in one word."""
        if self.revision is None:
            return SchemaStatus.MISSING
        if (self.breaking_revision or 0) > REVISION:
            return SchemaStatus.TOO_NEW
        if self.revision < MIN_REVISION:
            return SchemaStatus.TOO_OLD
        if self.revision < REVISION or not self.breaking_known or self.own_missing:
            return SchemaStatus.BEHIND
        return SchemaStatus.CURRENT if self.revision <= self.known_revision else SchemaStatus.NEWER

    def raise_unless_usable(self) -> None:
        """Raise the error that explains what to do, unless this version can use the schema as it is."""
        problem = self.problem()
        if problem is not None:
            raise problem

    def problem(self) -> GraphileWorkerError | None:
        """Return the error that explains why this version cannot use the schema, or None."""
        fatal = self.migration_problem() or self.visibility_problem()
        if fatal is not None:
            return fatal
        if self.status is SchemaStatus.MISSING:
            return SchemaMissingError(f"schema {self.schema!r} has no job queue yet; install it with: {self._fix}")
        if self.status is SchemaStatus.BEHIND and not self.has_replaced_functions:
            return SchemaMissingError(
                f"schema {self.schema!r} is at revision {self.revision} and lacks steps that this version needs; "
                f"bring it up to date with: {self._fix}"
            )
        return None

    def visibility_problem(self) -> PermissionDeniedError | None:
        """Return the error for a ledger that row security hides: the schema looks as if steps were missing."""
        is_readable = set(LEDGER_USES).isdisjoint(self.hidden)
        return None if is_readable else rows_hidden(self.role, self.hidden, self.schema)

    @property
    def _fix(self) -> str:
        return f"gw migrate --schema {shlex.quote(self.schema)}"

    def migration_problem(self) -> MigrationError | None:
        """Return the error that explains why this version cannot even migrate the schema, or None."""
        if self.server_version < MIN_SERVER_VERSION:
            return ServerTooOldError(
                "this version needs PostgreSQL 12 or later, and the server's server_version_num is "
                f"{self.server_version}; upgrade the server or use another one"
            )
        if self.status is SchemaStatus.TOO_NEW:
            return SchemaTooNewError(
                f"schema {self.schema!r} is at revision {self.revision}, which includes breaking migration "
                f"{self.breaking_revision}, but this version only supports up to revision {REVISION}; it would be "
                "unsafe to continue: upgrade graphile-worker here, so that all workers on the schema are compatible"
            )
        if self.status is SchemaStatus.TOO_OLD:
            return SchemaTooOldError(
                f"schema {self.schema!r} is at revision {self.revision}, and upgrades start at revision "
                f"{MIN_REVISION}; first run: npx graphile-worker@0.16.6 --schema-only "
                f"--schema {shlex.quote(self.schema)}"
            )
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return what a reader should know although work can go on."""
        found: list[str] = []
        if self.has_replaced_functions:
            found.append(
                f"another program has replaced functions of gw in schema {self.schema!r}, and they are used as they "
                "are: jobs that are added together may run in another order, and a job added under a key may be lost "
                f"when it races with a worker; install gw's functions again with: {self._fix}"
            )
        if self.status is SchemaStatus.NEWER:
            found.append(
                f"schema {self.schema!r} is at revision {self.revision}, but this version only supports up to "
                f"revision {self.known_revision}, which may or may not be compatible; continuing"
            )
            if FUNCTIONS_STEP not in self.own_present:
                found.append(
                    f"functions of revision {self.revision} are left as they are: a job added under a key may be lost "
                    "when it races with a worker, and roles that may create objects in a schema on a caller's "
                    "search_path may be able to act as that caller"
                )
        return tuple(found)


def check(
    connection: psycopg.Connection[Any],
    schema: str = DEFAULT_SCHEMA,
    *,
    uses: Uses = (),
    kind: RoleKind | None = None,
) -> SchemaState:
    """Read what is installed in `schema`, in one statement; a missing schema is a result, not an error.

    `uses` are those for which row security may hide rows from our role, `kind` is the kind of role that it should have.
    """
    values = _values(schema, uses)
    try:
        with translated(schema):
            # A connection of the caller's may make its rows in another manner.
            row = connection.cursor(row_factory=tuple_row).execute(query("check_schema", schema), values).fetchone()
    except PermissionDeniedError as error:
        raise _with_fix(connection, schema, error, kind) from error
    if row is None:
        raise DatabaseError(f"the server returned nothing about schema {schema!r}")
    return _state_from(schema, row)


def checked(schema: str) -> Steps[SchemaState]:
    """Read what is installed in `schema`, as a part of an operation."""
    [row] = yield Call("check_schema", _values(schema))
    return _state_from(schema, row)


def _values(schema: str, uses: Uses = ()) -> dict[str, Any]:
    relations = [
        "migrations",
        "_private_workers",
        RETIREMENTS,
        *(name for names in STEP_RELATIONS.values() for name in names),
    ]
    return {"schema": schema, "marker": REPAIR_MARKER, "relations": relations, "uses": [*LEDGER_USES, *uses]}


def _with_fix(
    connection: psycopg.Connection[Any], schema: str, error: PermissionDeniedError, kind: RoleKind | None
) -> PermissionDeniedError:
    """Return the error with what gives the role what it lacks; inside a broken transaction, as it is."""
    if connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
        return error
    with translated(schema):
        cursor = connection.cursor(row_factory=tuple_row)
        row = cursor.execute(query("find_missing_grant", schema), {"schema": schema}).fetchone()
    if row is None:
        return error
    role, takeover = row
    return lacking_right(error, f"a superuser or its owner: {takeover}" if takeover else owner_runs(role, kind, schema))


def _state_from(schema: str, row: tuple[Any, ...]) -> SchemaState:
    server_version, schema_exists, relations, shared_ledger, own_ledger, *functions, role, hidden = row
    is_repaired, is_pinned, private_functions, has_identities = functions
    steps_of_functions = {
        FUNCTIONS_STEP: is_repaired and is_pinned,
        HISTORY_FUNCTIONS_STEP: set(private_functions) >= PRIVATE_FUNCTIONS and has_identities,
    }
    present = {number for number, names in STEP_RELATIONS.items() if names <= set(relations)}
    present |= {number for number, is_there in steps_of_functions.items() if is_there}
    shared = _numbered(shared_ledger)
    ages = [int(word.rpartition(":")[2]) for word in shared_ledger]
    return SchemaState(
        schema=schema,
        server_version=server_version,
        schema_exists=schema_exists,
        breaking_known="unknown" not in shared.values(),
        revision=max(shared, default=None),
        breaking_revision=max((number for number, flag in shared.items() if flag == "true"), default=None),
        own_ledger=_numbered(own_ledger),
        own_present=frozenset(present),
        has_rust_workers="_private_workers" in relations,
        has_retirements=RETIREMENTS in relations,
        role=role,
        hidden=tuple(hidden),
        is_recent=bool(ages) and min(ages) < INSTALLING_SECONDS,
    )


def _numbered(words: list[str]) -> dict[int, str]:
    """Take the ledger's words apart: `19:true:12` is revision 19 with its flag, installed 12 s ago."""
    return {int(number): flag for number, flag, *_ in (word.split(":") for word in words)}
