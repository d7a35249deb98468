"""The exit codes of `gw`, and the errors that each stands for."""

from __future__ import annotations

from enum import IntEnum

import gw_core.errors
import gw_core.front_ends


class ExitCode(IntEnum):
    """The result of a command; each value carries the description that the manual prints."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """Make the member; its number is its value."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "Done."
    FAILED = 1, "The command failed; with `gw run --once --strict`, also: a job failed."
    USAGE = 2, "Wrong input: an option, an argument, a configuration file, a payload, or no database named."
    UNAVAILABLE = 3, "The database cannot be reached or cannot answer now; trying again later may help."
    DENIED = (
        4,
        "Access denied: wrong password, user or database, or a right is missing; also if row security hides rows.",
    )
    SCHEMA = 5, "The schema is not installed, incomplete, or too old for this version."
    NOT_FOUND = 6, "Nothing matched the request."
    UNHEALTHY = 7, "The check ran and found something wrong."
    TASKS = 8, "Tasks or plugins could not be loaded."
    BREAKING_MIGRATION = 57, "The schema holds a breaking migration newer than this version; upgrade gw."
    HANGUP = 129, "Ended by SIGHUP, after a graceful shutdown."
    INTERRUPTED = 130, "Ended by SIGINT (Ctrl-C); `gw run` shuts down gracefully first."
    BROKEN_PIPE = 141, "The reader closed the pipe."
    TERMINATED = 143, "Ended by SIGTERM, after a graceful shutdown."


class NothingMatchedError(gw_core.errors.GraphileWorkerError):
    """What was asked for is not there."""


# The nearest class in an error's ancestry decides.
_VERDICTS: dict[type[BaseException], ExitCode] = {
    gw_core.errors.GraphileWorkerError: ExitCode.FAILED,
    gw_core.errors.InvalidInputError: ExitCode.USAGE,
    gw_core.front_ends.NoConnectionError: ExitCode.USAGE,
    gw_core.errors.DatabaseUnavailableError: ExitCode.UNAVAILABLE,
    gw_core.errors.TransientDatabaseError: ExitCode.UNAVAILABLE,
    gw_core.front_ends.EmbeddedError: ExitCode.UNAVAILABLE,
    gw_core.front_ends.AuthenticationError: ExitCode.DENIED,
    gw_core.errors.PermissionDeniedError: ExitCode.DENIED,
    gw_core.errors.SchemaMissingError: ExitCode.SCHEMA,
    gw_core.front_ends.SchemaTooOldError: ExitCode.SCHEMA,
    gw_core.front_ends.SchemaTooNewError: ExitCode.BREAKING_MIGRATION,
    gw_core.front_ends.TaskLoadError: ExitCode.TASKS,
    gw_core.front_ends.PluginLoadError: ExitCode.TASKS,
    NothingMatchedError: ExitCode.NOT_FOUND,
    KeyboardInterrupt: ExitCode.INTERRUPTED,
}


def verdict(error: BaseException) -> ExitCode:
    """Return the exit code an error ends the program with."""
    return next((_VERDICTS[kind] for kind in type(error).__mro__ if kind in _VERDICTS), ExitCode.FAILED)
