"""Parse a crontab, reporting every error with its position, and write items back as lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec

from gw_core.domain.cron.cron_item import CronItem, check_fill, check_identifier, plain_payload
from gw_core.domain.cron.schedule import FIELDS, Schedule, read_field
from gw_core.domain.durations import UNITS, shown
from gw_core.domain.errors import CrontabError, InvalidInputError
from gw_core.domain.job.job import JobKeyMode, JobSpec
from gw_core.domain.safe_text import printable

MAX_LINE_LENGTH: Final = 10_000
MAX_PAYLOAD_DEPTH: Final = 20

MAX_ERRORS_SHOWN: Final = 20
_EXCERPT_BEFORE, _EXCERPT_AFTER = 60, 40

# Graphile Worker (Node.js) uses JavaScript's definitions of white space and line breaks; so does this parser.
_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_WORD = re.compile(f"[^{_SPACE}]+")
_LINE_BREAK = re.compile("[\n\r\u2028\u2029]")
_TASK = re.compile("[_a-zA-Z][_a-zA-Z0-9.:/_-]*")
_NOT_IN_FIELD = re.compile("[^0-9*/,-]")
_NAMES_IN: Final = {
    "month": frozenset(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    "weekday": frozenset(["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
}


# -- errors --------------------------------------------------------------------------------------------------------


class CrontabLineError(msgspec.Struct, frozen=True):
    """One thing wrong in a crontab: where (from 1), in which line, what, and what was expected instead."""

    line: int
    column: int
    text: str
    message: str
    expected: str

    @property
    def sentence(self) -> str:
        """What is wrong and what was expected, in one line."""
        return f"{self.message}; expected {self.expected}"

    def located(self, source: str = "crontab") -> str:
        """Return `source:line:column: what is wrong`, the form editors jump to."""
        return f"{source}:{self.line}:{self.column}: {self.sentence}"

    def excerpt(self) -> str:
        """Return the line, or the part of it around the error, with a mark below the position."""
        start = max(0, self.column - 1 - _EXCERPT_BEFORE)
        before = printable(self.text[start : self.column - 1])
        after = printable(self.text[self.column - 1 : self.column - 1 + _EXCERPT_AFTER])
        lead = "…" if start else ""
        tail = "…" if len(self.text) > self.column - 1 + _EXCERPT_AFTER else ""
        return f"{lead}{before}{after}{tail}\n{' ' * len(lead + before)}^"

    def rendered(self, source: str = "crontab") -> str:
        """Return the located sentence and the excerpt, for a terminal."""
        excerpt = "\n".join(f"    {line}" for line in self.excerpt().splitlines())
        return f"{self.located(source)}\n{excerpt}"


class _LineError(Exception):
    """An error at an offset of the line being parsed."""

    def __init__(self, offset: int, message: str, expected: str) -> None:
        super().__init__(message)
        self.offset, self.message, self.expected = offset, message, expected


# -- the file ------------------------------------------------------------------------------------------------------


def parse_crontab(text: str, *, source: str = "crontab") -> tuple[CronItem, ...]:
    """Return the items of a crontab, in the order of its lines.

    Raises `CrontabError` with every error of the text, each a `CrontabLineError`; no line is ignored silently.
    `source` is the name messages give the text, usually the file's path.

    Example: docs/api/crontab.md
    """
    items, errors = read_crontab(text)
    if errors:
        raise CrontabError(_report(errors, source), errors)
    return items


def read_crontab(
    text: str, *, tasks: Collection[str] | None = None
) -> tuple[tuple[CronItem, ...], tuple[CrontabLineError, ...]]:
    """Return the items of the valid lines and the errors of all others, in the order of the lines.

    With `tasks`, an item whose task is not among them is an error as well.

    Example: docs/api/crontab.md
    """
    items: list[CronItem] = []
    errors: list[CrontabLineError] = []
    lines_by_identifier: dict[str, int] = {}
    for number, line in enumerate(re.split("\r?\n", text.removeprefix("\ufeff")), 1):
        item, found = _read_line(line, number, tasks)
        errors += found
        if item is None:
            continue
        first = lines_by_identifier.setdefault(item.identifier, number)
        if first == number:
            items.append(item)
        else:
            errors.append(_duplicate(item, line, number, first))
    return tuple(items), tuple(errors)


def _duplicate(item: CronItem, line: str, number: int, first: int) -> CrontabLineError:
    return CrontabLineError(
        number,
        len(line) - len(line.lstrip(_SPACE)) + 1,
        line,
        f"the identifier {shown(item.identifier)} is already used in line {first}",
        "an identifier of its own for each item, given with ?id=",
    )


def _report(errors: tuple[CrontabLineError, ...], source: str) -> str:
    shown_errors = [error.rendered(source) for error in errors[:MAX_ERRORS_SHOWN]]
    if len(errors) > MAX_ERRORS_SHOWN:
        shown_errors.append(f"… and {len(errors) - MAX_ERRORS_SHOWN} more")
    return "\n".join(shown_errors)


# -- a line --------------------------------------------------------------------------------------------------------


def _read_line(
    line: str, number: int, tasks: Collection[str] | None = None
) -> tuple[CronItem | None, list[CrontabLineError]]:
    trimmed = line.strip(_SPACE)
    if not trimmed or trimmed.startswith("#"):
        return None, []
    reader = _LineReader(line, tasks)
    item = reader.read()
    return item, [
        CrontabLineError(number, each.offset + 1, line, each.message, each.expected)
        for each in sorted(reader.errors, key=lambda each: each.offset)
    ]


class _LineReader:
    """Reads one line from left to right and keeps what is wrong on the way."""

    def __init__(self, line: str, tasks: Collection[str] | None = None) -> None:
        self._line = line
        self._tasks = tasks
        self._end = len(line.rstrip(_SPACE))
        self._position = 0
        self.errors: list[_LineError] = []

    def read(self) -> CronItem | None:
        """Return the item, or None after an error."""
        try:
            self._check_length()
            fields = self._fields()
            task = self._task()
            options = self._options()
            payload = self._payload()
        except _LineError as error:
            self.errors.append(error)
            return None
        if self.errors:
            return None
        return CronItem(task=task, schedule=Schedule(*fields), payload=payload, **options)

    def _check_length(self) -> None:
        if len(self._line) > MAX_LINE_LENGTH:
            raise _LineError(
                MAX_LINE_LENGTH, f"the line is {len(self._line)} characters long", f"at most {MAX_LINE_LENGTH}"
            )

    # The road through the line: each step takes the next word, or raises when the rest makes no sense without it.

    def _fields(self) -> list[tuple[int, ...]]:
        fields = []
        for count, field in enumerate(FIELDS):
            word = self._next_word()
            if word is not None and word[0].lower() in _NAMES_IN.get(field.name, ()):
                raise _LineError(word.start(), f"{shown(word[0])} is a name", field.expectation)
            if word is None or _TASK.fullmatch(word[0]):
                raise _LineError(
                    word.start() if word else self._end,
                    f"there {'is' if count == 1 else 'are'} only {count} time field{'' if count == 1 else 's'}",
                    "five of them (minute, hour, day, month, weekday) and then a task",
                )
            if word[0].startswith("@"):
                raise _LineError(word.start(), f"{shown(word[0])} is a nickname", "five time fields, such as 0 0 * * *")
            self._position = word.end()
            fields.append(self._field(field, word))
        return fields

    def _field(self, field: Any, word: re.Match[str]) -> tuple[int, ...]:
        stranger = _NOT_IN_FIELD.search(word[0])
        if stranger:
            self._reject(
                word.start() + stranger.start(),
                f"{shown(stranger[0])} cannot stand in the {field.name} field",
                field.expectation,
            )
            return ()
        values, errors = read_field(field, word[0])
        for error in errors:
            self._reject(word.start() + error.offset, error.message, field.expectation)
        return values

    def _task(self) -> str:
        word = self._next_word()
        if word is None:
            raise _LineError(self._end, "the task is missing", "the name of a task after the five time fields")
        broken = _LINE_BREAK.search(self._line, word.start(), self._end)
        if broken:
            raise _LineError(broken.start(), f"{shown(broken[0])} stands inside the line", "a line without line breaks")
        self._position = word.end()
        if not _TASK.fullmatch(word[0]):
            self._reject(
                word.start(),
                f"{shown(word[0])} is not the name of a task",
                "a letter or _, then letters, digits and . : / _ - only",
            )
        else:
            self._check(word.start(), lambda: JobSpec(task=word[0]), "a shorter name")
            if self._tasks is not None and word[0] not in self._tasks:
                self._reject(word.start(), f"unknown task {shown(word[0])}", "one of the known tasks")
        return word[0]

    def _options(self) -> dict[str, Any]:
        word = self._next_word()
        if word is None or not word[0].startswith("?"):
            return {}
        self._position = word.end()
        if word[0] == "?":
            self._reject(word.start(), "there are no options after the ?", _SOME_OPTIONS)
        options: dict[str, Any] = {}
        given: set[str] = set()
        for offset, key, value in _query(word[0][1:], word.start() + 1):
            option = _OPTIONS.get(_SPELLINGS.get(key, key))
            if option is None:
                self._reject(offset, f"unknown option {shown(key)}", _SOME_OPTIONS)
            elif option.field in given:
                self._reject(offset, f"the option {shown(key)} is given twice", "each option at most once")
            else:
                given.add(option.field)
                self._check(offset, lambda o=option, v=value: options.update({o.field: o.read(v)}), option.expected)  # type: ignore[misc]
        if options.pop("job_key_mode", JobKeyMode.REPLACE) is not JobKeyMode.REPLACE:
            if "job_key" in options:
                options["job_key_mode"] = JobKeyMode.PRESERVE_RUN_AT
            elif "job_key" not in given:
                self._reject(word.start(), "jobKeyMode is given without a jobKey", "both of them, or neither")
        return options

    def _payload(self) -> dict[str, Any] | None:
        word = self._next_word()
        if word is None:
            return None
        text = self._line[word.start() : self._end]
        if text[0] != "{":
            raise _LineError(
                word.start(), f"{shown(text)} is out of place", "?options, a {payload}, or the end of the line"
            )
        try:
            return _read_payload(text)
        except _LineError as error:
            self._reject(word.start() + error.offset, error.message, error.expected)
            return None

    def _next_word(self) -> re.Match[str] | None:
        return _WORD.search(self._line, self._position, self._end)

    def _check(self, offset: int, step: Callable[[], object], expected: str) -> None:
        try:
            step()
        except InvalidInputError as error:
            self._reject(offset, str(error), expected)

    def _reject(self, offset: int, message: str, expected: str) -> None:
        self.errors.append(_LineError(offset, message, expected))


# -- options -------------------------------------------------------------------------------------------------------


class _Option(msgspec.Struct, frozen=True):
    """An option of a line: the item's field it sets, what its text looks like, and what that becomes."""

    field: str
    pattern: str
    expected: str
    convert: Callable[[str], Any] = str

    def read(self, text: str) -> Any:
        """Return the value; raises `InvalidInputError`."""
        if not re.fullmatch(self.pattern, text):
            raise InvalidInputError(f"{shown(text)} does not fit this option")
        value = self.convert(text)
        if self.field in ("max_attempts", "queue_name", "job_key", "priority"):
            JobSpec(task="task", **{self.field: value})
        return value


def _query(text: str, offset: int) -> Iterator[tuple[int, str, str]]:
    """Yield offset, key and value of a query string, as browsers decode it; empty parts are nothing."""
    for part in text.split("&"):
        if part:
            key, _, value = part.partition("=")
            yield offset, unquote_plus(key), unquote_plus(value)
        offset += len(part) + 1


def _fill(text: str) -> timedelta:
    try:
        parts = re.findall("([0-9]+)([smhdw])", text)
        return check_fill(sum((int(number) * UNITS[unit] for number, unit in parts), timedelta()))
    except (OverflowError, InvalidInputError, ValueError):
        raise InvalidInputError(f"{shown(text)} is more than ten years") from None


def _integer(text: str) -> int:
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > 9:
        raise InvalidInputError(f"{shown(text)} is far too large")
    return -int(digits) if text.startswith("-") else int(digits)


_OPTIONS: Final = {
    "id": _Option(
        "identifier",
        "[_a-zA-Z][-_a-zA-Z0-9]*",
        "a letter or _, then letters, digits, - and _, at most 512 characters",
        check_identifier,
    ),
    "fill": _Option(
        "fill", "(?:[0-9]+[smhdw])+", "a time phrase of s, m, h, d and w such as 1d12h, at most ten years", _fill
    ),
    "max": _Option("max_attempts", "[0-9]+", "a whole number from 1 to 32767", _integer),
    "queue": _Option("queue_name", "[-a-zA-Z0-9_:]+", "1 to 128 letters, digits, -, _ and :"),
    "jobKey": _Option(
        "job_key", "[^\n\r\u2028\u2029]*", "a job key of 1 to 512 characters without line breaks, percent-encoded"
    ),
    "jobKeyMode": _Option("job_key_mode", "replace|preserve_run_at", "replace or preserve_run_at", JobKeyMode),
    "priority": _Option("priority", "-?[0-9]+", "a whole number from -32768 to 32767", _integer),
}
_SPELLINGS: Final = {"job_key": "jobKey", "job_key_mode": "jobKeyMode"}
_SOME_OPTIONS = "id, fill, max, queue, jobKey, jobKeyMode or priority, joined with &"


# -- payload -------------------------------------------------------------------------------------------------------

_JSON_OBJECT = "a JSON5 object such as {onboarding: false}"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")
_WHERE = re.compile(r"^<string>:\d+ (.*) at column \d+$", re.DOTALL)


def _read_payload(text: str) -> dict[str, Any]:
    """Return the object the text stands for; the text is not empty and begins with a brace."""
    _check_depth(text)
    try:
        payload = plain_payload(_read_json(text))
    except InvalidInputError as error:
        raise _LineError(0, str(error), _JSON_OBJECT) from None
    if not text.rstrip().endswith("}"):  # JSON5 allows a comment here, but Node.js workers reject the crontab
        raise _LineError(len(text), "a comment follows the payload", "the end of the line")
    return payload


def _read_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _read_json5(text)


def _read_json5(text: str) -> object:
    import json5  # late: few payloads need it

    try:
        value, error, offset = json5.parse(text)
    except (ValueError, RecursionError, OverflowError):
        # The reader's depth adds to the caller's stack; a number of thousands of digits raises too.
        raise _LineError(0, "the payload cannot be read", _JSON_OBJECT) from None
    if error is not None:
        known = _WHERE.match(error)
        what = known[1].replace("Unexpected ", "unexpected ") if known else "the payload cannot be read"
        raise _LineError(min(offset, len(text)), f"{printable(what)} in the payload", _JSON_OBJECT)
    return value


def _check_depth(text: str) -> None:
    depth = 0
    for mark in re.finditer(r"[\[{]|[\]}]", _QUOTED.sub("", text)):
        depth += 1 if mark[0] in "[{" else -1
        if depth > MAX_PAYLOAD_DEPTH:
            raise _LineError(0, "the payload is nested too deeply", f"at most {MAX_PAYLOAD_DEPTH} levels")
