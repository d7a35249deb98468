"""PostgreSQL's error codes become our classes here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import psycopg
from psycopg import errors as pg

from gw_core.domain.errors import (
    AuthenticationError,
    ConnectionSettingsError,
    DatabaseError,
    DatabaseUnavailableError,
    DeadlockError,
    InvalidJobError,
    LockTimeoutError,
    PermissionDeniedError,
    ReadOnlyError,
    SchemaMissingError,
    StatementTimeoutError,
    TransientDatabaseError,
)
from gw_core.domain.safe_text import shell_command

_SCHEMA_MISSING = (
    pg.UndefinedTable,
    pg.InvalidSchemaName,
    pg.UndefinedFunction,
    pg.UndefinedColumn,
    pg.UndefinedObject,
)
_REJECTED_VALUES = (
    *(pg.CheckViolation, pg.NotNullViolation, pg.NumericValueOutOfRange, pg.DatetimeFieldOverflow),
    *(pg.UntranslatableCharacter, pg.CharacterNotInRepertoire),
)
# Data, constraints, views with checks, triggers, functions of users, and what PL/pgSQL raises.
_ROW_CLASSES = ("09", "22", "23", "27", "38", "39", "44", "P0")
_UNAVAILABLE_CLASSES = ("08", "53", "57", "58")
_TRANSIENT_CLASSES = ("40",)
# An object in use, and transactions that were ended or have to be rolled back first. Others of these two classes last
# until the database is changed, such as 55000: an object is not in the state that the statement needs.
_TRANSIENT_STATES = ("55006", "25P02", "25P03", "25P04")
# A connection that two tasks of a program share.
_BUSY: Final = r"another (?:operation|command) is (?:already )?in progress"
# Errors of libpq about the string and the files it names, before it contacts any server.
_OWN_SETTINGS: Final = (
    r'(?:certificate|private key|revocation list|service) file "|definition of service "'
    r"|invalid (?:\S+ value|port number|integer value)"
)
# A server that denies access. While connecting, the driver hands over libpq's text without the server's code.
_DENIED: Final = r"authentication failed|does not exist|not permitted to log in|pg_hba\.conf"
# Errors of libpq about a connection that was lost. It may hand them over as the answer to a statement, and the driver
# then raises its general class.
_LOST: Final = (
    r"server closed the connection|(?:receive data from|send data to) server|connection to server was lost|SSL "
    r"|no connection to the server|connection not open|lost synchronization with server|invalid socket"
)
_MAY_NOT_CONNECT: Final = r'FATAL: +permission denied for database (".*?")(?= DETAIL:|$)'
STATEMENT_MODE: Final = (
    "{} is in statement mode, and a queue needs transactions; "
    "set its pool_mode to transaction, or connect to the server"
)
_OTHER_LIBRARIES: Final = ("sqlalchemy", "django", "psycopg2", "asyncpg")
# Of these libraries; the last is that of SQLAlchemy's pool.
_CONNECTION_ERRORS: Final = ("OperationalError", "InterfaceError", "ConnectionDoesNotExistError", "TimeoutError")


def translate(error: BaseException, *, schema: str = "graphile_worker") -> DatabaseError | InvalidJobError:
    """Return our error for one of the driver's; raise it `from` the original, whose message is cut."""
    translated_error = _translated(error, schema)
    cut_messages(error)
    return translated_error


def _translated(error: BaseException, schema: str) -> DatabaseError | InvalidJobError:
    if isinstance(error, UnicodeEncodeError):
        return InvalidJobError("PostgreSQL cannot store a value: a text holds a lone surrogate")
    if isinstance(error, pg.InvalidPassword | pg.InvalidAuthorizationSpecification | pg.InvalidCatalogName):
        return AuthenticationError(f"the server rejected the connection: {sentence(error)}")
    if isinstance(error, pg.InsufficientPrivilege):
        remedy = "the queue's owner can give it with gw grant"
        if "must be owner" in str(error):  # which no grant changes
            remedy = "run this as the queue's owner"
        return PermissionDeniedError(f"the database role lacks a right: {sentence(error)}; {remedy}")
    if isinstance(error, _SCHEMA_MISSING):
        return SchemaMissingError(
            f"schema {schema!r} is not installed or incomplete ({sentence(error)}); "
            f"install it with: {shell_command(('gw', 'migrate', f'--schema={schema}')) or 'gw migrate'}"
        )
    if isinstance(error, _REJECTED_VALUES):
        return InvalidJobError(f"PostgreSQL rejected a value: {sentence(error)}")
    state = getattr(error, "sqlstate", None)
    if state is None:
        return _without_state(error)
    if isinstance(error, pg.ProtocolViolation) and "statement pooling mode" in str(error):
        return ConnectionSettingsError(STATEMENT_MODE.format("the pooler"))
    if state[:2] in _UNAVAILABLE_CLASSES and not isinstance(error, pg.QueryCanceled):
        return DatabaseUnavailableError(f"the database is not available: {sentence(error)}")
    if isinstance(error, pg.DeadlockDetected | pg.SerializationFailure):
        return DeadlockError(f"the server aborted the statement to resolve a conflict with another: {sentence(error)}")
    if isinstance(error, pg.LockNotAvailable):
        return LockTimeoutError(f"another session keeps rows or tables of the queue locked: {sentence(error)}")
    if isinstance(error, pg.QueryCanceled):
        return StatementTimeoutError(f"the database could not finish the statement now: {sentence(error)}")
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return ReadOnlyError(f"the database is read-only: {sentence(error)}")
    if isinstance(error, pg.InFailedSqlTransaction):
        return TransientDatabaseError("an earlier error aborted the transaction of this connection; roll it back first")
    if state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_STATES:
        return TransientDatabaseError(f"the database could not finish the statement now: {sentence(error)}")
    return DatabaseError(f"PostgreSQL rejected the statement: {sentence(error)}")


def leads_nowhere(error: BaseException) -> bool:
    """Return whether to replace a connection although it works: it leads to a read-only server.

    After a failover that is the former primary, or the standby to which a proxy connected us in between.
    """
    return isinstance(error, ReadOnlyError | pg.ReadOnlySqlTransaction)


def needs_connection(error: BaseException) -> bool:
    """Return whether a retry needs another connection: not after temporary errors such as a deadlock or a timeout."""
    return leads_nowhere(error) or not isinstance(error, TransientDatabaseError)


def was_rolled_back(error: BaseException) -> bool:
    """Return whether the server answered with an error that its session survived: the statement has had no effect."""
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and cause.diag.severity_nonlocalized == "ERROR"


def rejects_a_row(error: BaseException) -> bool:
    """Return whether a row, and not the database, made a statement fail: a constraint or trigger rejected it.

    Then the statement may succeed without that row. What fails inside a function, as triggers are, has a context.
    """
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error) or cause.sqlstate is None or not needs_connection(error):
        return False
    if leads_nowhere(error) or isinstance(error, DatabaseUnavailableError):
        return False
    is_of_rows = cause.sqlstate[:2] in _ROW_CLASSES or isinstance(cause, pg.InsufficientPrivilege)
    return is_of_rows or bool(cause.diag.context)


def is_beyond_encoding(error: BaseException) -> bool:
    """Return whether a text has a character that the database's encoding does not have; every one has ASCII."""
    return isinstance(error.__cause__, pg.UntranslatableCharacter)


def _without_state(error: BaseException) -> DatabaseError | InvalidJobError:
    """Judge an error of the driver, or of libpq before or after the server could speak."""
    text = sentence(error)
    if isinstance(error, psycopg.DataError):
        return InvalidJobError(f"PostgreSQL cannot store a value: {text}")
    if isinstance(error, psycopg.OperationalError) and re.search(_OWN_SETTINGS, text):
        return ConnectionSettingsError(f"the connection's settings cannot be used: {text}")
    if isinstance(error, psycopg.OperationalError) and (denied := re.search(_MAY_NOT_CONNECT, text)):
        remedy = f"its owner can give it with: grant connect on database {denied[1]} to that role"
        return PermissionDeniedError(f"the database role lacks the right to connect to database {denied[1]}; {remedy}")
    if isinstance(error, psycopg.OperationalError) and re.search(_DENIED, text):
        return AuthenticationError(f"the server rejected the connection: {text}")
    if re.search(_BUSY, text):
        return DatabaseError(f"the connection is busy with another statement; use it for one at a time: {text}")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or re.search(_LOST, text):
        return DatabaseUnavailableError(f"the database cannot be reached: {text}")
    return DatabaseError(f"the statement could not be run: {text}")


def sentence(error: BaseException) -> str:
    """Return the gist of a driver's error on one line."""
    diagnostic = getattr(error, "diag", None)
    # libpq guesses at reasons in lines that begin with a tab.
    lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
    text = (diagnostic.message_primary if diagnostic is not None else None) or " ".join(lines)
    return " ".join(text.split()) or type(error).__name__


def cut_messages(error: BaseException) -> None:
    """Cut the messages of a driver's error, and of the errors that it wraps, to PostgreSQL's first line.

    The other lines can quote a rejected row with its payload, and SQLAlchemy quotes the values of the statement. As the
    cause of our error, a driver's error is part of tracebacks. The `diag` of psycopg's errors still has everything.
    """
    chain = list(_chain(error))
    if not any(_state_of(each) for each in chain):
        return  # of libpq, which knows no rows
    for each in chain:
        each.args = (_first_line(each),)
        for name, value in (("hide_parameters", True), ("detail", None)):  # of SQLAlchemy, of asyncpg
            if isinstance(getattr(each, name, None), bool | str):
                setattr(each, name, value)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error of a database library and those that it wraps, down to one of psycopg."""
    while error is not None and type(error).__module__.partition(".")[0] in _OTHER_LIBRARIES:
        yield error
        # SQLAlchemy keeps the driver's error in `orig`; Django, and SQLAlchemy's adapter of asyncpg, in `__cause__`.
        error = getattr(error, "orig", None) or error.__cause__
    if isinstance(error, psycopg.Error):
        yield error


def _first_line(error: BaseException) -> str:
    diagnostic = getattr(error, "diag", None)
    text = (diagnostic.message_primary if diagnostic is not None else None) or str(error).partition("\n")[0]
    return str(text)


def _state_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error of psycopg, psycopg2 or asyncpg."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return state if isinstance(state, str) else None


def as_psycopg_error(error: BaseException) -> psycopg.Error | None:
    """Return the psycopg error that an error of another database library wraps or stands for, if it is one."""
    innermost_first = reversed(list(_chain(error)))
    return next((found for each in innermost_first if (found := _psycopg_error(each)) is not None), None)


def _psycopg_error(error: BaseException) -> psycopg.Error | None:
    if isinstance(error, psycopg.Error):
        return error
    state = _state_of(error)
    if state is not None:
        with suppress(KeyError):
            return pg.lookup(state)(_first_line(error))
    if type(error).__name__ == "PendingRollbackError":  # of SQLAlchemy, which then sends nothing
        return pg.InFailedSqlTransaction(_first_line(error))
    is_connection = type(error).__name__ in _CONNECTION_ERRORS
    return psycopg.OperationalError(str(error)) if is_connection else None


class translated:  # noqa: N801 # read as a verb after `with`; a generator would cost three times as much
    """Raise gw's errors for those of the database's driver inside the block, the errors of its pool included."""

    __slots__ = ("_schema",)

    def __init__(self, schema: str = "graphile_worker") -> None:
        self._schema = schema

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or not isinstance(error, Exception):
            return
        driver_error = error if isinstance(error, UnicodeEncodeError) else as_psycopg_error(error)
        if driver_error is not None:
            ours = translate(driver_error, schema=self._schema)
            cut_messages(error)
            raise ours from error
