"""The kinds of conditions: each reads its values, compares them with a job, and writes the comparison as SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from gw_core.domain.durations import parse_duration, parse_time, shown
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import named
from gw_core.domain.job.job_state import JobState
from gw_core.selection.values import Bound, Prefix, Range, Text, Value

MAX_TEXT: Final = 1_000
"""The longest text to compare with; no name is longer."""

Bind = Callable[[object], str]
"""Takes a value and returns the placeholder that stands for it."""

Path = Sequence[str]

_RANGE: Final = re.compile(r"(>=|<=|>|<)?(.+)", re.DOTALL)
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_ESCAPED_NUL: Final = "\\u0000"
_INDEX: Final = re.compile("-?[0-9]{1,9}")


class Element(msgspec.Struct, frozen=True):
    """One value of the text: its characters, whether any were quoted, and whether a `*` follows."""

    text: str
    is_quoted: bool = False
    has_star: bool = False

    @property
    def plain(self) -> str:
        """The text of a value that takes neither quotes nor a `*`, so that an error quotes what was typed."""
        return f"{self.text}*" if self.has_star else self.text


class Resolved(msgspec.Struct, frozen=True):
    """The context of a selection in a database: its clock, the ids of the names, and whether it stores renewals.

    The fields are those of `selection_names.sql`.
    """

    now: datetime
    tasks: Mapping[str, int] = msgspec.field(default_factory=dict)
    queues: Mapping[str, int] = msgspec.field(default_factory=dict)
    has_renewed_locks: bool = False


class Kind(msgspec.Struct, frozen=True):
    """How the values of a condition are read, compared and written as SQL."""

    def read(self, element: Element, path: Path = ()) -> Value:
        """Return the value that was typed; raises `InvalidInputError`."""
        raise NotImplementedError

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        """Return whether a job's value meets one value of the condition."""
        raise NotImplementedError

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Return the SQL expression that is true for rows that meet any of the values."""
        raise NotImplementedError


# -- names -----------------------------------------------------------------------------------------------------------


class State(Kind, frozen=True):
    """One of the states of a job."""

    def read(self, element: Element, path: Path = ()) -> Value:
        return state(element, JobState, "a state of a job")

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        return isinstance(value, Text) and actual == value.text

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Write each state as conditions on indexed columns; `parts/state_of_job.sql` is equivalent."""
        return _any_of(_STATES[JobState(value.text)] for value in values if isinstance(value, Text))


_STATES: Final[Mapping[JobState, str]] = {
    JobState.RUNNING: "jobs.locked_at is not null",
    JobState.FAILED: "jobs.locked_at is null and jobs.attempts >= jobs.max_attempts",
    JobState.READY: "jobs.is_available and jobs.run_at <= now()",
    JobState.BACKOFF: (
        "jobs.is_available and jobs.run_at > now() and jobs.run_at < 'infinity'::timestamptz"
        " and jobs.attempts > 0 and jobs.last_error is not null"
    ),
    JobState.SCHEDULED: (
        "jobs.is_available and jobs.run_at > now() and jobs.run_at < 'infinity'::timestamptz"
        " and (jobs.attempts = 0 or jobs.last_error is null)"
    ),
    JobState.WAITING: "jobs.is_available and jobs.run_at = 'infinity'::timestamptz",
}


class Names(Kind, frozen=True):
    """A name, exactly or by its beginning; `is_set` for the flags of a job, of which one must match."""

    is_set: bool = False

    def read(self, element: Element, path: Path = ()) -> Value:
        check_text(element.text, is_prefix=element.has_star)
        if not element.is_quoted and element.text.startswith(("<", ">")):
            raise InvalidInputError(f"{shown(element.text)} takes no range; if the value is a name, put it in quotes")
        return Prefix(element.text) if element.has_star else Text(element.text)

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        names: Collection[str] = actual if self.is_set else () if actual is None else (actual,)
        if isinstance(value, Prefix):
            return any(name.startswith(value.text) for name in names)
        return isinstance(value, Text) and value.text in names

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Compare all exact names together, and each prefix."""
        exact, prefixes = _split(values)
        if self.is_set:
            found = [f"{column} ?| {bind(exact)}::text[]"] if exact else []
            found += [
                f"exists (select from jsonb_object_keys({column}) as f where starts_with(f, {bind(prefix)}::text))"
                for prefix in prefixes
            ]
        else:
            found = [f"{column} = any({bind(exact)}::text[])"] if exact else []
            found += [f"starts_with({column}, {bind(prefix)}::text)" for prefix in prefixes]
        return _any_of(found)


class References(Names, frozen=True, kw_only=True):
    """The name of a task or a queue, which the jobs table has as an id."""

    of: Literal["tasks", "queues"]

    def ids(self, values: Sequence[Value], database: Resolved) -> list[int]:
        """Return the ids of the names that match one of the values."""
        names = database.tasks if self.of == "tasks" else database.queues
        exact = {value.text for value in values if isinstance(value, Text)}
        prefixes = tuple(value.text for value in values if isinstance(value, Prefix))
        return sorted(number for name, number in names.items() if name in exact or name.startswith(prefixes))

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        ids = self.ids(values, database)
        return f"{column} = {bind(ids[0])}::int" if len(ids) == 1 else f"{column} = any({bind(ids)}::int[])"


# -- numbers and times -----------------------------------------------------------------------------------------------


class _Ranged(Kind, frozen=True):
    """Values in an order."""

    def bound(self, text: str) -> Bound:
        """Read one end of a range."""
        raise NotImplementedError

    def read(self, element: Element, path: Path = ()) -> Value:
        """Read `5`, `>5`, `<=5` or `1..5`; either end may be left out."""
        text = element.plain
        low, dots, high = text.partition("..")
        if dots and (low or high):
            return Range(self.bound(low) if low else None, self.bound(high) if high else None)
        match = _RANGE.fullmatch(text)
        if match is None or dots:
            raise InvalidInputError(f"{shown(text)} is not a range; write >5, <=5 or 1..5")
        bound = self.bound(match[2])
        match match[1]:
            case ">" | ">=" as sign:
                return Range(low=bound, with_low=sign == ">=")
            case "<" | "<=" as sign:
                return Range(high=bound, with_high=sign == "<=")
        return Range(bound, bound)

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        """Compare a number, or a time in seconds since 1970."""
        return actual is not None and isinstance(value, Range) and value.contains(actual, now)

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        ranges = [value.at(database.now) for value in values if isinstance(value, Range)]
        kind = "timestamptz" if isinstance(self, Time) else "bigint"
        points = [each.only for each in ranges]
        if ranges and None not in points:
            return f"{column} = any({bind(points)}::{kind}[])"
        return _any_of(_between(column, each, kind, bind) for each in ranges)


class Number(_Ranged, frozen=True):
    """A whole number."""

    smallest: int
    largest: int
    what: str = "a whole number; write 5, >5, <=5 or 1..5"

    def bound(self, text: str) -> Bound:
        if not re.fullmatch("-?[0-9]{1,19}", text) or not self.smallest <= int(text) <= self.largest:
            raise InvalidInputError(f"{shown(text)} is not {self.what}")
        return int(text)


class Time(_Ranged, frozen=True):
    """A point in time, absolute or counted from now."""

    def read(self, element: Element, path: Path = ()) -> Value:
        """Read a range of times; one time that counts from now would match no job."""
        value = super().read(element)
        if isinstance(value, Range) and isinstance(value.low, timedelta) and value.low == value.high:
            text = element.plain
            raise InvalidInputError(f"{shown(text)} is a single instant; write <{text}, >{text} or {text}..now")
        return value

    def bound(self, text: str) -> Bound:
        """Read `now`, `-10m`, `+1h` or a time with its zone."""
        if text == "now":
            return timedelta()
        if text[:1] in ("+", "-"):
            offset = parse_duration(text[1:])
            return offset if text[0] == "+" else -offset
        return parse_time(text, datetime(1970, 1, 1, tzinfo=UTC))


class StartTime(Time, frozen=True):
    """When the running attempt started, however often its lock was renewed since."""

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Take the start from the renewed locks, where the schema has them."""
        if database.has_renewed_locks:
            column = _STARTED_AT
        return super().sql(column, values, path, database, bind)


_STARTED_AT: Final = (
    "coalesce((select renewed.started_at from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as renewed "
    "where renewed.worker_id = jobs.locked_by and renewed.job_id = jobs.id and renewed.locked_at = jobs.locked_at), "
    "jobs.locked_at)"
)


# -- long texts ------------------------------------------------------------------------------------------------------


class Containing(Kind, frozen=True):
    """A text anywhere in a longer one, in any case; `*` for any text at all."""

    def read(self, element: Element, path: Path = ()) -> Value:
        if element.has_star and (element.text or element.is_quoted):
            raise InvalidInputError("a text matches anywhere, so it takes no *; to search for a *, put it in quotes")
        check_text(element.text, is_prefix=element.has_star)
        return Prefix("") if element.has_star else Text(element.text)

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        return actual is not None and not isinstance(value, Range) and value.text.lower() in actual.lower()

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        texts, prefixes = _split(values)
        any_text = [f"{column} is not null"] if prefixes else []
        return _any_of([*any_text, *(f"strpos(lower({column}), lower({bind(text)}::text)) > 0" for text in texts)])


class Payload(Kind, frozen=True):
    """A value at a path in the payload; without a path, a text anywhere in it."""

    def read(self, element: Element, path: Path = ()) -> Value:
        """Return the value at a path, or the text to find."""
        if path:
            return Names().read(element)
        if not element.is_quoted and element.text.startswith(("<", ">")):
            raise InvalidInputError(f"{shown(element.text)} takes no range; if the value is a text, put it in quotes")
        return Containing().read(element)

    def test(self, actual: Any, value: Value, now: datetime, path: Path) -> bool:
        """Compare what stands at the path, as text."""
        if not path:
            return Containing().test(actual, value, now, path)
        return Names().test(value_at(actual, path), value, now, path)

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Take the payload apart, except one with `\\u0000`: that would be an error, and end the whole search."""
        if not path:
            return Containing().sql(f"{column}::text", values, path, database, bind)
        at = f"{column} #> {bind(list(path))}::text[]"
        text = (
            f"case json_typeof({at}) when 'null' then 'null' when 'object' then null when 'array' then null "
            f"else ({at}) #>> '{{}}'::text[] end"
        )
        compared = Names().sql(text, values, path, database, bind)
        return f"case when strpos({column}::text, '{_ESCAPED_NUL}') > 0 then false else {compared} end"


def value_at(payload: str, path: Path) -> str | None:
    """Return what stands at a path as PostgreSQL writes it; None for nothing, and for objects and lists."""
    if _ESCAPED_NUL in payload:
        return None
    try:
        value = json.loads(payload, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    if isinstance(value, str):
        return value
    return None if isinstance(value, dict | list) else json.dumps(value)


# -- what they share -------------------------------------------------------------------------------------------------


def state(element: Element, states: type[StrEnum], what: str) -> Text:
    """Return the state of that name; raises `InvalidInputError` for a name that is none."""
    return Text(named(states, element.plain, what).value)


def check_text(text: str, *, is_prefix: bool = False) -> None:
    """Raise `InvalidInputError` for a text that no job can have."""
    if not text and not is_prefix:
        raise InvalidInputError("the value is empty; give at least one character")
    if len(text) > MAX_TEXT:
        raise InvalidInputError(f"the value is longer than {MAX_TEXT} characters; give a shorter one")
    if UNSTORABLE.search(text):
        raise InvalidInputError("the value has a character that PostgreSQL cannot store; leave it out")


def _split(values: Sequence[Value]) -> tuple[list[str], list[str]]:
    """Return the exact texts and the prefixes."""
    return (
        [value.text for value in values if isinstance(value, Text)],
        [value.text for value in values if isinstance(value, Prefix)],
    )


def _between(column: str, values: Range, kind: str, bind: Bind) -> str:
    low = f"{column} >{'=' * values.with_low} {bind(values.low)}::{kind}" if values.low is not None else ""
    high = f"{column} <{'=' * values.with_high} {bind(values.high)}::{kind}" if values.high is not None else ""
    return " and ".join(each for each in (low, high) if each)


def _any_of(expressions: Any) -> str:
    """Return the expressions joined by `or`; an expression of several conditions stays one."""
    return " or ".join(f"({each})" for each in expressions) or "false"
