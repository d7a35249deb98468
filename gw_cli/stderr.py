"""Errors and notes of a command, on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gw_cli.output import current_shard
from gw_cli.sanitize import indented, visible

if TYPE_CHECKING:
    import logging


class _ErrorOutput:
    """Where this process writes errors: a logger, or stderr as text."""

    logger: logging.Logger | None = None


_ERRORS = _ErrorOutput()


def error(message: str) -> None:
    """Write an error message."""
    if _ERRORS.logger is None:
        _say(f"gw: {_labelled(indented(message))}")
    else:
        _ERRORS.logger.error("%s", message)


def log_errors(logger: logging.Logger) -> None:
    """From now on, log errors: a log in JSON contains nothing but JSON lines."""
    _ERRORS.logger = logger


def note(message: str) -> None:
    """Write a note that is not an error."""
    _say(_labelled(indented(message)))


def _labelled(message: str) -> str:
    """Return a message with the name of the shard that it is about, if a command works on several."""
    shard = current_shard()
    return f"shard {shard}: {message}" if shard else message


def traceback_of(problem: BaseException) -> None:
    """Show where an error came from, for `--debug`."""
    import traceback

    lines = "".join(traceback.format_exception(problem)).splitlines()
    _say("\n".join(map(visible, lines)))


def _say(text: str) -> None:
    # An error about a closed stderr could not be written either.
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return
