"""Say in one line why a task's error was raised and where, for `last_error`."""

from __future__ import annotations

import os
import sysconfig
import traceback
from types import FrameType
from typing import Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.outcome import GiveUp, RetryAfter, error_message
from gw_core.runtime.files import current_folder

MAX_CAUSE_LENGTH: Final = 300
"""Characters of a cause's message, or of all members of a group together."""

_MAX_MEMBERS: Final = 3
_MAX_CHAIN: Final = 100
_LIBRARIES: Final = tuple(
    {path + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))}
)


def error_details(error: BaseException) -> str:
    """Return what `last_error` contains after an error's message: its innermost cause, or members, and the location.

    For example `; caused by KeyError: 'amount' (tasks/bill.py:12 in charge)`. Errors of ours have no place, and neither
    has `GiveUp` or `RetryAfter` without a cause. Empty when there is nothing to add.
    """
    known = getattr(error, DETAILS, None)
    if isinstance(known, str):
        return known
    cause, word = _innermost(error)
    details = _members(cause)
    if cause is not error:
        details = f"; {word} {_cut(error_message(cause))}{details}"
    elif isinstance(error, GiveUp | RetryAfter):
        return details
    place = _place(cause) or _place(error)
    return f"{details} ({place})" if place else details


DETAILS: Final = "_gw_details"
"""The attribute with the details of an error that are known: of one in another process, or with a failed retry rule."""


def _innermost(error: BaseException) -> tuple[BaseException, str]:
    found, word = error, ""
    if isinstance(error, GraphileWorkerError):  # ours say their cause themselves
        return found, word
    for _ in range(_MAX_CHAIN):  # it may be a circle
        if found.__cause__ is not None:
            found, word = found.__cause__, "caused by"
        elif found.__context__ is not None and not found.__suppress_context__:
            found, word = found.__context__, "while handling"
        else:
            break
    return found, word


def _members(error: BaseException) -> str:
    if not isinstance(error, BaseExceptionGroup):
        return ""
    members = [_cut(error_message(each), MAX_CAUSE_LENGTH // _MAX_MEMBERS) for each in error.exceptions[:_MAX_MEMBERS]]
    if len(error.exceptions) > _MAX_MEMBERS:
        members.append(f"and {len(error.exceptions) - _MAX_MEMBERS} more")
    return f": {'; '.join(members)}"


def _place(error: BaseException) -> str:
    """Return the file, line and function of the innermost frame outside of libraries, or of the innermost of all."""
    frames = [found for found in traceback.walk_tb(error.__traceback__) if not _is_ours(found[0])]
    own = [found for found in frames if not found[0].f_code.co_filename.startswith((*_LIBRARIES, "<"))]
    if not frames:
        return ""
    frame, line = (own or frames)[-1]
    return f"{_shown_path(frame.f_code.co_filename)}:{line} in {frame.f_code.co_name}"


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("gw_core.")


def _shown_path(path: str) -> str:
    """Return the path from the current folder on, or its last three parts."""
    shown = path_from_here(path)
    parts = path.split(os.sep)
    return shown if shown != path or len(parts) <= 4 else os.sep.join(["…", *parts[-3:]])


def path_from_here(path: str) -> str:
    """Return the path from the current folder on if it leads there; a deployment may have deleted that folder."""
    here = current_folder()
    return path if here is None else path.removeprefix(f"{here}{os.sep}")


def _cut(text: str, longest: int = MAX_CAUSE_LENGTH) -> str:
    first, *others = text.strip().splitlines() or [""]
    return first if len(first) <= longest and not others else f"{first[:longest]}…"
