"""Every error that gw raises, as one tree; each message states what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal


class GraphileWorkerError(Exception):
    """The root: catch this to catch everything this library raises on purpose.

    Example: docs/api/errors.md
    """


# -- what the caller gave us ---------------------------------------------------------------------------------------


class InvalidInputError(GraphileWorkerError, ValueError):
    """A value the queue cannot accept; nothing was changed.

    Example: docs/api/errors.md
    """


class InvalidJobError(InvalidInputError):
    """A job specification breaks one of the rules of the schema.

    Example: docs/api/errors.md
    """


class InvalidSettingError(InvalidInputError):
    """The value of a setting is not allowed.

    Example: docs/api/errors.md
    """


class JobRejectedError(GraphileWorkerError):
    """An interceptor rejected the job; the message is its reason.

    Example: docs/api/errors.md
    """


class JobSkipped(GraphileWorkerError):  # noqa: N818 - no error: a plugin decided so
    """An interceptor skipped a job that `add` should have added; the message is its reason.

    Example: docs/api/errors.md
    """


class TaskLoadError(GraphileWorkerError):
    """Tasks could not be loaded: the folder, a file in it, or the application object."""


class PluginLoadError(GraphileWorkerError):
    """A plugin could not be loaded by its name."""


class CrontabError(InvalidInputError):
    """A crontab that cannot be understood; it lists every error, each with its place.

    Example: docs/api/errors.md
    """

    def __init__(self, message: str, errors: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


# -- results of jobs ------------------------------------------------------------------------------------------------


class ResultError(GraphileWorkerError):
    """A job has no result to return; `job_id` is the job.

    Example: docs/api/errors.md
    """

    def __init__(self, job_id: int, message: str = "") -> None:
        super().__init__(message or f"job {job_id} has not ended")
        self.job_id = job_id


class JobFailedError(ResultError):
    """The job failed permanently: `error` is its last error, `attempts` how many attempts it had.

    Example: docs/guide/history.md
    """

    def __init__(self, job_id: int, error: str, *, attempts: int) -> None:
        super().__init__(job_id, f"job {job_id} failed permanently: {error}")
        self.error = error
        self.attempts = attempts


class ResultTimeoutError(ResultError, TimeoutError):
    """The job did not end within the timeout; it may still complete.

    Example: docs/guide/history.md
    """


UnavailableReason = Literal["unknown", "expired", "removed", "not kept", "rejected"]


class ResultUnavailableError(ResultError):
    """There is no result, and there will be none; `reason` has the cause.

    `unknown`: no job has had this id yet. `expired`: neither the queue nor history has its end: its period in history
    is over, its task keeps nothing, another program ended it without a record, or the transaction that added it is open
    or was rolled back. `removed`: it was removed. `not kept`: it completed, and its task keeps no results. `rejected`:
    what it returned is not JSON, or too large.

    Example: docs/api/errors.md
    """

    def __init__(self, job_id: int, reason: UnavailableReason, message: str) -> None:
        super().__init__(job_id, message)
        self.reason = reason


# -- the database --------------------------------------------------------------------------------------------------


class DatabaseError(GraphileWorkerError):
    """PostgreSQL rejected a statement; the server's own error is the `__cause__`.

    Example: docs/api/errors.md
    """


class NoConnectionError(GraphileWorkerError):
    """No database was named; the message names the ways to give one."""


class DatabaseUnavailableError(DatabaseError):
    """The server cannot be reached or went away; trying again later may succeed.

    A change whose answer was lost may be done: with `unique_for`, adding the job again adds it once.

    Example: docs/api/errors.md
    """


class AuthenticationError(DatabaseError):
    """The server denies access: wrong password, user or database. Retrying does not help."""


class ConnectionSettingsError(DatabaseError, InvalidSettingError):
    """The connection string names what gw cannot use, such as a missing file or a pooler in statement mode."""


class PermissionDeniedError(DatabaseError):
    """The role lacks a right the statement needs.

    Example: docs/api/errors.md
    """


class TransientDatabaseError(DatabaseError):
    """A deadlock, serialization failure or timeout: the same statement may succeed when repeated.

    Example: docs/api/errors.md
    """


class DeadlockError(TransientDatabaseError):
    """The server undid the transaction because it could not go on beside another; nothing of it was stored."""


class LockTimeoutError(TransientDatabaseError):
    """Another session kept a row or table locked for longer than the lock timeout."""


class StatementTimeoutError(TransientDatabaseError):
    """A statement exceeded its timeout, or was cancelled."""


class ReadOnlyError(TransientDatabaseError):
    """The server or the session takes no writes: a standby, or one that was asked to be read-only."""


class NotRecordedError(DatabaseError):
    """What an operator did is done, but its record could not be written."""


class SchemaMissingError(DatabaseError):
    """The schema, or a part of it that this command needs, is not installed.

    Example: docs/api/errors.md
    """


class EmbeddedError(GraphileWorkerError):
    """The embedded PostgreSQL could not be found, started or reached."""


# -- migrations ----------------------------------------------------------------------------------------------------


class MigrationError(DatabaseError):
    """The schema could not be brought up to date; it is as it was before.

    Example: docs/api/errors.md
    """


class SchemaTooNewError(MigrationError):
    """Another version installed a breaking migration that this version does not know (exit code 57)."""


class SchemaTooOldError(MigrationError):
    """The installed schema predates what gw can upgrade; the message states what to run first."""


class LockedJobsError(MigrationError):
    """Jobs are locked by running workers, so a migration that rewrites the jobs table cannot run."""


class ServerTooOldError(MigrationError):
    """The server is older than PostgreSQL 12."""
