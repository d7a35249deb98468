"""Parse what commands are given as text: payloads, times, numbers and choices."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NoReturn

from gw_cli.sanitize import quoted, uncapitalized, visible
from gw_core.errors import InvalidInputError
from gw_core.front_ends import parse_duration, parse_time

STDIN: Final = "-"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def whole_number(flag: str, text: str | None) -> int | None:
    """Return the number a flag was given; its range is for the core to judge."""
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not _SMALLEST <= int(text) <= _LARGEST:
        raise InvalidInputError(f"{flag} {quoted(text)}: give a whole number")
    return int(text)


def positive_number(flag: str, text: str, largest: int) -> int:
    """Return a number from 1 to `largest`."""
    number = whole_number(flag, text)
    if number is None or not 1 <= number <= largest:
        raise InvalidInputError(f"{flag} {quoted(text)}: give a whole number from 1 to {largest}")
    return number


def duration(flag: str, text: str) -> timedelta:
    """Return the duration a flag was given."""
    try:
        value: timedelta = parse_duration(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{flag}: {error}") from None
    return value


def one_of(flag: str, text: str | None, choices: Sequence[str]) -> str | None:
    """Return the choice, or None when none was made."""
    if text is not None and text not in choices:
        raise InvalidInputError(f"{flag} {quoted(text)}: give one of {', '.join(choices)}")
    return text


def task_name(text: str) -> str:
    """Return the task written as `mail`, or as pauses and results name it: `task:mail`."""
    from gw_core.front_ends import PauseKind  # late: most commands take no such name

    kind, _, name = text.partition(":")
    if kind == PauseKind.TASK and name:
        return name
    if kind in (PauseKind.QUEUE, PauseKind.FLAG, PauseKind.CRON) and name:
        whole = quoted(f"task:{text}")
        message = f"{quoted(text)} does not name a task; give NAME or task:NAME ({whole} for one with this name)"
        raise InvalidInputError(message)
    return text


def point_in_time(flag: str, text: str | None) -> datetime | timedelta | None:
    """Return when an action happens; a time relative to now stays a duration, because the database's clock decides."""
    if text is None or text.strip() == "now":
        return None
    trimmed = text.strip()
    try:
        at: datetime = parse_time(trimmed, datetime.now(UTC))
        if trimmed[0] in "+-":
            duration: timedelta = parse_duration(trimmed[1:])
            return duration if trimmed[0] == "+" else -duration
        return at
    except InvalidInputError as error:
        raise InvalidInputError(f"{flag}: {error}") from None


def expiry(flag: str, text: str | None) -> datetime | timedelta | None:
    """Return by when a job must start; `JobSpec` rejects `now`."""
    at = point_in_time(flag, text)
    return timedelta(0) if at is None and text is not None else at


def payload_text(payload: str | None, payload_file: str | None) -> str:
    """Return the JSON text of a payload from the argument, a file, or stdin (`-`); without any, an empty object."""
    if payload is not None and payload_file is not None:
        raise InvalidInputError("--payload and --payload-file were both given; give one of them")
    if payload == STDIN or payload_file == STDIN:
        return checked_json(read_text(STDIN, "the payload from stdin"), "the payload from stdin")
    if payload_file is not None:
        what = f"the payload in '{visible(payload_file)}'"
        return checked_json(read_text(payload_file, what), what)
    return "{}" if payload is None else checked_json(payload, "the payload")


def read_text(file: str, what: str) -> str:
    """Return the text of a file; `-` is stdin. Messages name it as `what`."""
    try:
        if file == STDIN:
            content = b"" if sys.stdin is None else sys.stdin.buffer.read()
        else:
            content = Path(file).expanduser().read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"{what} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{what} is not UTF-8: byte {error.start + 1} does not fit") from None


def checked_json(text: str, what: str) -> str:
    """Return the text as it is when it is JSON: decoding and encoding again would change its numbers."""
    if not text.strip():
        raise InvalidInputError(f'{what} is empty; give JSON such as {{"name": "value"}}')
    try:
        # Numbers are kept as texts here, whose length has no limit.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        message = uncapitalized(error.msg.removesuffix(" at"))
        raise InvalidInputError(f"{what} is not JSON: {message} at {place}") from None
    except RecursionError:
        raise InvalidInputError(f"{what} is nested too deeply; keep it below a few hundred levels") from None
    except ValueError as error:
        raise InvalidInputError(f"{what} is not JSON: {error}") from None
    return text


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
