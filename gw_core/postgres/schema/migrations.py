"""Bring a schema up to date: Graphile Worker's revision 20, and gw's additions."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, Literal, LiteralString

import msgspec
import psycopg
from msgspec.structs import replace
from psycopg import errors as pg

from gw_core.domain.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    LockedJobsError,
    MigrationError,
    PermissionDeniedError,
    TransientDatabaseError,
)
from gw_core.domain.hidden_fields import hides
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database
from gw_core.postgres.connection.error_mapping import sentence, translate
from gw_core.postgres.connection.statements import MARKER, in_schema, sql_folder, sql_text
from gw_core.postgres.schema.grants import missing_grants, repeat_grants
from gw_core.postgres.schema.schema_state import LEDGER_STEP, REVISION, TABLES_TURN_PRIVATE, SchemaState, check

Origin = Literal["graphile_worker", "gw"]
"""A revision of Graphile Worker, or one of gw's schema additions."""

_LOCKED_JOBS: Final = "GWLKJ"
_NOT_AS_OWNER: Final = "GWOWN"

_LEDGERS: Final = ("migrations", "_private_gw_migrations")
_SHARED_TABLES: Final = tuple(
    prefix + name for prefix in ("", "_private_") for name in ("jobs", "job_queues", "tasks", "known_crontabs")
)

# Errors that show that another program just ran the same step.
_CLASHES: Final = (pg.UniqueViolation, pg.DuplicateSchema, pg.DuplicateTable, pg.DuplicateObject)
_CLASHES_OF_A_STEP: Final = 3

_MAX_LOCK_RETRIES: Final = 30
PAUSE_SECONDS: Final = 1.0
"""How often, and after which pause, a step retries to lock a table; parts/give_way.sql sets the lock timeout."""

Target = str | Database | psycopg.Connection[Any]
"""Where to migrate: a connection string, a `Database`, or a connection of the caller's."""


@hides("sql")
class MigrationStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step that takes the schema forward, run in a transaction of its own."""

    name: str
    origin: Origin
    number: int | None
    """Its number in the ledger of its origin; None for a change to the ledger itself."""
    breaking: bool
    reapplied: bool
    """Whether the step ran before and another program has replaced its work since."""
    sql: LiteralString
    """All it runs: the ledger's row first, then the work, then the notification."""


class MigrationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `migrate` would do now.

    Example: docs/api/parts.md
    """

    state: SchemaState
    steps: tuple[MigrationStep, ...]
    warnings: tuple[str, ...]
    grants: tuple[str, ...] = ()
    """The statements that give roles of `gw grant` what they lack, on new tables for example."""


class MigrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `migrate` did: the steps of this call, and warnings.

    Example: docs/api/parts.md
    """

    before: SchemaState
    after: SchemaState
    applied: tuple[MigrationStep, ...]
    warnings: tuple[str, ...]
    grants: tuple[str, ...] = ()
    """The statements that gave roles of `gw grant` what they lacked."""


_QUIET: Final = "\\o /dev/null\nset local client_min_messages to warning;"
"""Lets psql print neither results nor notices of the step's own statements."""


# -- the doors -----------------------------------------------------------------------------------------------------


def plan(target: Target, schema: str = DEFAULT_SCHEMA) -> MigrationPlan:
    """Return what `migrate` would run, and change nothing."""
    with _connected(target, schema) as connection:
        state = check(connection, schema)
        if (hidden := state.visibility_problem()) is not None:
            raise hidden
        planned = _plan_for(state)
        return replace(planned, grants=missing_grants(connection, schema, is_behind=bool(planned.steps)))


def script(target: Target, schema: str = DEFAULT_SCHEMA) -> str:
    """Return what `migrate` would run as a script for psql, and change nothing.

    psql prints the begin and end of each step, and not the results of the statements in it.
    """
    planned = plan(target, schema)
    transactions = [f"-- {step.name}\nbegin;\n{_QUIET}\n{step.sql}\n\\o\ncommit;\n" for step in planned.steps]
    if planned.grants:
        transactions.append("".join(("-- grants\n", *(f"{statement};\n" for statement in planned.grants))))
    return "\n".join(("\\set ON_ERROR_STOP on\n", *transactions)) if transactions else ""


def migrate(target: Target, schema: str = DEFAULT_SCHEMA) -> MigrationReport:
    """Install or update the schema; any number of processes can do this at the same time.

    Each step is a transaction of its own and the first thing it does is to insert its row into the ledger, so of
    several processes one takes the step while the others wait and find it done.
    """
    with _connected(target, schema) as connection:
        return _Migration(connection, schema).run()


# -- the work ------------------------------------------------------------------------------------------------------


class _Migration:
    """One call of `migrate`: apply the first missing step until none is missing."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._applied: list[MigrationStep] = []
        self._taken: set[tuple[str, int | None]] = set()
        self._clashes: Counter[str] = Counter()
        self._waits = 0

    def run(self) -> MigrationReport:
        before = state = self._settled()
        while steps := _plan_for(state).steps:
            self._take(steps[0], state.revision)
            state = self._settled()
        notes = [
            f"{step.name} ran again: another program, or an earlier version, had left other objects"
            for step in self._applied
            if step.reapplied
        ]
        return MigrationReport(
            before=before,
            after=state,
            applied=tuple(self._applied),
            warnings=(*notes, *state.warnings()),
            grants=tuple(repeat_grants(self._connection, self._schema)),
        )

    def _settled(self) -> SchemaState:
        """Return the state once no other program is installing the schema, which takes a transaction per revision."""
        state = check(self._connection, self._schema)
        was_old = state.is_being_installed
        while state.is_being_installed or (was_old and state.is_recent and (state.revision or 0) < REVISION):
            time.sleep(PAUSE_SECONDS / 10)
            state = check(self._connection, self._schema)
        return state

    def _take(self, step: MigrationStep, revision: int | None) -> None:
        # A program that installs a later revision at the same time may replace our functions once for each.
        if (step.name, revision) in self._taken:
            raise MigrationError(
                f"migration {step.name} ran in schema {self._schema!r}, but its changes are missing; "
                "check for another program that changes this schema, then run gw migrate again"
            )
        try:
            with self._connection.transaction():
                self._connection.execute(step.sql)
        except _CLASHES as error:
            self._leave_to_others(step, error)
        except pg.InternalError_ as error:
            if "concurrently" not in str(error):  # "tuple concurrently updated": both replaced a function
                raise _failure(step, self._schema, error) from error
            self._leave_to_others(step, error)
        except (pg.LockNotAvailable, pg.DeadlockDetected) as error:
            self._come_again(step, error)
        except psycopg.Error as error:
            raise _failure(step, self._schema, error) from error
        else:
            self._applied.append(step)
            self._taken.add((step.name, revision))

    def _come_again(self, step: MigrationStep, error: psycopg.Error) -> None:
        """Let the sessions behind this one use the table, then retry the step."""
        self._waits += 1
        if self._waits >= _MAX_LOCK_RETRIES:
            raise _failure(step, self._schema, error) from error
        time.sleep(PAUSE_SECONDS)

    def _leave_to_others(self, step: MigrationStep, error: psycopg.Error) -> None:
        """Note that another program runs the step; a clash that repeats is not a race but an obstacle."""
        self._clashes[step.name] += 1
        if self._clashes[step.name] >= _CLASHES_OF_A_STEP:
            raise MigrationError(
                f"migration {step.name} cannot run in schema {self._schema!r}: {sentence(error)}; "
                "the schema holds objects that its table migrations does not account for"
            ) from error


@contextmanager
def _connected(target: Target, schema: str) -> Iterator[psycopg.Connection[Any]]:
    if isinstance(target, psycopg.Connection):
        yield target
        return
    database = Database(target, schema=schema) if isinstance(target, str) else target
    try:
        with database.connect("migrate") as connection:
            yield connection
    finally:
        if database is not target:
            database.close()


def _failure(step: MigrationStep, schema: str, error: psycopg.Error) -> GraphileWorkerError:
    if error.sqlstate == _LOCKED_JOBS:
        return LockedJobsError(
            f"there are locked jobs in schema {schema!r}, so migration {step.name} cannot run: stop all workers "
            "gracefully and run gw migrate again; locks of dead workers are ignored after four hours"
        )
    if error.sqlstate == _NOT_AS_OWNER:
        return PermissionDeniedError(sentence(error))
    if isinstance(error, pg.InsufficientPrivilege):
        return PermissionDeniedError(
            f"the database role lacks a right that migration {step.name} needs in schema {schema!r} "
            f"({sentence(error)}); run gw migrate as the schema's owner, or give the owner what gw migrate --sql prints"
        )
    general = translate(error, schema=schema)
    if isinstance(general, DatabaseUnavailableError | TransientDatabaseError):
        return general
    return MigrationError(
        f"migration {step.name} failed in schema {schema!r} and was rolled back: {sentence(error)}; "
        "later migrations did not run"
    )


# -- planning ------------------------------------------------------------------------------------------------------


def _plan_for(state: SchemaState) -> MigrationPlan:
    problem = state.migration_problem()
    if problem is not None:
        raise problem
    steps = (*_shared_steps(state), *_own_steps(state))
    return MigrationPlan(state=state, steps=steps, warnings=state.warnings())


def _shared_steps(state: SchemaState) -> Iterator[MigrationStep]:
    if state.revision is None:
        yield _install_step(state)
        return
    files = [file for file in _files() if file.origin == "graphile_worker" and state.revision < file.number]
    if not state.breaking_known:
        texts = (_part("give_way"), *_guard(files, state.revision + 1), _part("ledger"))
        yield _step("breaking_flags", state, "graphile_worker", None, texts)
    for place, file in enumerate(files):
        yield _shared_step(state, file, _guard(files[place:], file.number))


def _install_step(state: SchemaState) -> MigrationStep:
    # Creating a schema that exists needs the right to create one all the same, so it is left out then.
    create = () if state.schema_exists else (f"create schema {MARKER};",)
    return _step("install_000020", state, "graphile_worker", REVISION, (*create, _read("install_000020")))


def _shared_step(state: SchemaState, file: _File, guard: tuple[str, ...]) -> MigrationStep:
    values = {"NUMBER": str(file.number), "BREAKING": str(file.breaking).lower()}
    record, notify = _part("record_step", **values), _part("notify_workers", **values)
    texts = (record, _part("give_way"), *guard, file.text, notify)
    writes = (*_LEDGERS, *_SHARED_TABLES)
    return _step(file.name, state, "graphile_worker", file.number, texts, breaking=file.breaking, writes=writes)


def _own_steps(state: SchemaState) -> Iterator[MigrationStep]:
    for file in _files():
        if file.origin == "gw" and file.number in state.own_missing:
            reapplied = file.number in state.own_ledger
            record = _part("record_gw_step", NUMBER=str(file.number), NAME=file.name, AGAIN=str(reapplied).lower())
            work = (_part("give_way"), file.text)
            texts = (*work, record) if file.number == LEDGER_STEP else (record, *work)
            yield _step(file.name, state, "gw", file.number, texts, reapplied=reapplied)


def _step(
    name: str,
    state: SchemaState,
    origin: Origin,
    number: int | None,
    texts: Sequence[str],
    *,
    breaking: bool = False,
    reapplied: bool = False,
    writes: Sequence[str] = _LEDGERS,
) -> MigrationStep:
    begin = _part("begin_step", TABLES=",".join(writes))
    sql = in_schema("\n".join((begin, *texts, _part("end_step"))), state.schema)
    return MigrationStep(name=name, origin=origin, number=number, breaking=breaking, reapplied=reapplied, sql=sql)


def _guard(files: Sequence[_File], number: int) -> tuple[str, ...]:
    """Return the check that rejects locked jobs before step `number`, if it or a later one changes their tables.

    The steps before the breaking one reject too, so that a rejection leaves everything unchanged.
    """
    if not any(file.breaking for file in files):
        return ()
    prefix = "_private_" if number > TABLES_TURN_PRIVATE else ""
    tables = {"JOBS": f"{MARKER}.{prefix}jobs", "QUEUES": f"{MARKER}.{prefix}job_queues"}
    return (_part("reject_locked_jobs", **tables),)


# -- the files -----------------------------------------------------------------------------------------------------


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """One file under sql/migrations that is a step."""

    name: str
    origin: Origin
    number: int
    breaking: bool
    text: str


@lru_cache(maxsize=1)
def _files() -> tuple[_File, ...]:
    """Return the steps of both lines, each line in order."""
    names = (path.name for path in sql_folder().joinpath("migrations").iterdir())
    found = [re.fullmatch(r"((gw_)?(\d+)_\w+)\.sql", name) for name in names]
    files = [_file(match[1], int(match[3]), is_own=bool(match[2])) for match in found if match]
    return tuple(sorted(files, key=lambda file: (file.origin == "gw", file.number)))


def _file(name: str, number: int, *, is_own: bool) -> _File:
    text = _read(name)
    return _File(
        name=name,
        origin="gw" if is_own else "graphile_worker",
        number=number,
        breaking=text.startswith("--! breaking"),
        text=text,
    )


def _part(name: str, **names: str) -> str:
    """Return a part with its own names filled in."""
    return sql_text(f"migrations/parts/{name}", names)


def _read(name: str) -> str:
    return sql_text(f"migrations/{name}")
