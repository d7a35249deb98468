"""The language of the jobs filter: `state:failed task:send attempts:>3 -queue:slow error:"timed out"`.

A text is read strictly: what is not understood is an error with its place, never a condition left out. Each term says
what it costs to look for. The core looks for what a `JobFilter` and its `Narrowing` can say; the rest, such as what is
negated, is judged on the jobs that come back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any, Final

from gw_core import JobFilter, JobState
from gw_core.errors import InvalidInputError
from gw_core.operations import FoundJob, Narrowing, parse_duration

LONGEST: Final = 1_000
MOST_TERMS: Final = 30
MOST_SUGGESTIONS: Final = 12


class Cost(IntEnum):
    """How much has to be looked at to find what a term asks for."""

    INDEX = 0
    """An index leads there."""
    WINDOW = 1
    """Jobs are looked at, a stretch at a time; only small columns are compared."""
    SCAN = 2
    """Long texts of many jobs are read; the search may take a while."""


class FilterError(InvalidInputError):
    """A filter that cannot be understood; `position` is where, counted from 0."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} (at {position + 1})")
        self.reason = reason
        self.position = position


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two ends, either of which may be open; `None` is no end."""

    low: float | None = None
    high: float | None = None
    with_low: bool = True
    with_high: bool = True

    @property
    def turned(self) -> Range:
        """The same with its signs turned: what lies so far back lies that far ahead with a minus."""
        low, high = (None if each is None else -each for each in (self.high, self.low))
        return Range(low, high, self.with_high, self.with_low)

    def __contains__(self, value: float) -> bool:
        above = self.low is None or value > self.low or (self.with_low and value == self.low)
        return above and (self.high is None or value < self.high or (self.with_high and value == self.high))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of term: its name, what it asks for in words, an example, and its cost."""

    name: str
    meaning: str
    example: str
    cost: Cost


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("state", "what the job is doing; several with commas", "state:failed", Cost.INDEX),
        Kind("id", "one job, or several with commas", "id:9001,9002", Cost.INDEX),
        Kind("key", "the job with this key", "key:welcome-42", Cost.INDEX),
        Kind("task", "its task", "task:send_email", Cost.WINDOW),
        Kind("queue", "its named queue", "queue:reports", Cost.WINDOW),
        Kind("worker", "who holds it", "worker:gw-web-1", Cost.WINDOW),
        Kind("flag", "a flag set on it", "flag:big", Cost.WINDOW),
        Kind("prio", "its priority, a number or a range", "prio:<0", Cost.WINDOW),
        Kind("attempts", "attempts counted so far", "attempts:>3", Cost.WINDOW),
        Kind("run", "time until it may run; past is negative", "run:<1h", Cost.WINDOW),
        Kind("lock", "how long it has been held", "lock:>10m", Cost.WINDOW),
        Kind("error", "a text in its last error", 'error:"timed out"', Cost.SCAN),
        Kind("payload", "a value in its payload, or a text anywhere in it", "payload.user.id:42", Cost.SCAN),
    )
}
"""What can be asked for, in the order in which help and suggestions show it."""

FALLS_TO_CORE: Final = ("task", "queue", "key", "worker", "flag", "error")
"""Kinds whose one value `JobFilter` takes as it is; state and id are turned into their types first."""

TICK: Final = timedelta(microseconds=1)
"""The database tells no moments apart that are nearer."""

NUMBERS: Final = ("prio", "attempts")
SPANS: Final = ("run", "lock")
NAMES_OF: Final = {"task": "tasks", "queue": "queues", "worker": "workers"}
"""Where suggestions for a kind's values come from; never from the jobs themselves."""

_NAME: Final = re.compile(r'[^\s":.]+')
_SEGMENT: Final = re.compile(r'[^\s".:]+')
_PLAIN_VALUE: Final = re.compile(r'[^\s"]+')
_RANGE: Final = re.compile(r"(?P<sign>>=|<=|>|<|=)?(?P<one>[^.<>=][^<>=]*)")
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: a kind, a value as typed, and for payloads the path to the value."""

    kind: Kind
    value: str
    is_negated: bool = False
    path: tuple[str, ...] = ()
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def cost(self) -> Cost:
        """What looking for it costs; a negated term leads nowhere by itself."""
        return max(self.kind.cost, Cost.WINDOW) if self.is_negated else self.kind.cost

    @property
    def values(self) -> tuple[str, ...]:
        """The values a list gives, for kinds that take several."""
        return tuple(dict.fromkeys(part for part in self.value.split(",") if part))

    def __str__(self) -> str:
        path = "".join(f".{_written(part, _SEGMENT)}" for part in self.path)
        return f"{'-' * self.is_negated}{self.kind.name}{path}:{_written(self.value, _PLAIN_VALUE)}"


@dataclass(frozen=True)
class Filter:
    """A filter as understood: every term must hold. `str()` writes it so that it reads back the same."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    @cached_property
    def cost(self) -> Cost:
        """What the whole costs: the dearest term, or nothing to speak of when the jobs are named."""
        if self.job_filter.names_jobs:
            return Cost.INDEX
        return max((term.cost for term in self.terms), default=Cost.INDEX)

    @cached_property
    def job_filter(self) -> JobFilter:
        """What the core is asked for."""
        asked: dict[str, Any] = {}
        for term in self._core_terms():
            match term.kind.name:
                case "id":
                    asked["ids"] = [int(value) for value in term.values]
                case "state":
                    asked["state"] = term.values[0]
                case name:
                    asked[name] = term.value
        return JobFilter(**asked)

    def asked(self, now: datetime) -> JobFilter:
        """Return what the core is asked for at a moment of the database's clock, ranges and payloads included."""
        narrowing = self._narrowing(now)
        return self.job_filter if narrowing is None else replace(self.job_filter, narrowing=narrowing)

    @cached_property
    def rest(self) -> tuple[Term, ...]:
        """The terms the core cannot judge, which `matches` does on every job that comes back."""
        judged = {id(term) for term in (*self._core_terms(), *self._narrowing_terms().values())}
        return tuple(term for term in self.terms if id(term) not in judged)

    @property
    def needs_payload(self) -> bool:
        """True when a term has to see the payload."""
        return any(term.kind.name == "payload" for term in self.rest)

    def matches(self, found: FoundJob, now: datetime) -> bool:
        """Tell whether a job that meets `job_filter` meets every other term as well."""
        return all(_holds(term, found, now) is not term.is_negated for term in self.rest)

    def with_term(self, text: str) -> Filter:
        """Return this filter with one more term, in the place of those of the same kind."""
        added = parse(text).terms
        kinds = {(term.kind.name, term.path) for term in added}
        return Filter((*(term for term in self.terms if (term.kind.name, term.path) not in kinds), *added))

    def _narrowing(self, now: datetime) -> Narrowing | None:
        found = self._narrowing_terms()
        asked: dict[str, Any] = {}
        for name, term in found.items():
            match name:
                case "prio":
                    asked["priority"] = _whole(_range(term.value, _number))
                case "attempts":
                    asked["attempts"] = _whole(_range(term.value, _number))
                case "run":
                    asked["run_at"] = _moments(_range(term.value, _seconds), now)
                case "lock":
                    asked["started_at"] = _moments(_range(term.value, _seconds).turned, now)
                case "path":
                    asked |= {"payload_path": term.path, "payload_value": term.value}
                case _:
                    asked["payload_text"] = term.value
        return Narrowing(**asked) if asked else None

    def _narrowing_terms(self) -> dict[str, Term]:
        """Return the first term of each kind that a `Narrowing` can say; jobs that are named need none."""
        found: dict[str, Term] = {}
        if not self.job_filter.names_jobs:
            for term in self.terms:
                name = _narrowed_by(term)
                if name is not None and not term.is_negated:
                    found.setdefault(name, term)
        return found

    def _core_terms(self) -> Iterator[Term]:
        """Yield the first term of each kind that `JobFilter` can say."""
        seen: set[str] = set()
        for term in self.terms:
            name = term.kind.name
            if not term.is_negated and name not in seen and (_falls(term) or name == "id"):
                seen.add(name)
                yield term


EVERYTHING: Final = Filter()


def _narrowed_by(term: Term) -> str | None:
    """Return which condition of a `Narrowing` says a term, if one does."""
    if term.kind.name == "payload":
        if not term.path:
            return "text"
        return None if term.value == "null" else "path"  # the database takes null for nothing
    return term.kind.name if term.kind.name in (*NUMBERS, *SPANS) else None


def _falls(term: Term) -> bool:
    return term.kind.name in FALLS_TO_CORE or (term.kind.name == "state" and len(term.values) == 1)


# -- reading ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def parse(text: str) -> Filter:
    """Return the filter that a text asks for; raises `FilterError` with the place of what is wrong."""
    if len(text) > LONGEST:
        raise FilterError(f"the filter is longer than {LONGEST} characters", LONGEST)
    return Filter(tuple(_Reader(text).terms()))


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def terms(self) -> Iterator[Term]:
        count = 0
        while self._skip_space():
            count += 1
            if count > MOST_TERMS:
                raise FilterError(f"the filter has more than {MOST_TERMS} terms", self._at)
            yield self._term()

    def _skip_space(self) -> bool:
        """Go to the next term; False when none is left."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _term(self) -> Term:
        start = self._at
        negated = self._take("-")
        kind = self._kind()
        path = tuple(self._path()) if kind.name == "payload" else ()
        if not self._take(":"):
            raise FilterError(f"{kind.name} is followed by a colon and a value, as in {kind.example}", self._at)
        value_at = self._at
        value = self._value(kind)
        if self._at < len(self._text) and not self._text[self._at].isspace():
            raise FilterError("a value is either in quotes as a whole or has none", self._at)
        term = Term(kind, value, negated, path, start, self._at)
        _check(term, value_at)
        return term

    def _kind(self) -> Kind:
        start = self._at
        name = self._match(_NAME)
        kind = KINDS.get(name.lower())
        if kind is not None:
            return kind
        if name and self._text[self._at : self._at + 1] == ":":
            raise FilterError(f"there is no {_cut(name)} to filter by; there are {', '.join(KINDS)}", start)
        what = _cut(name) if name else "this"
        raise FilterError(f"say what {what} is: task:…, queue:…, id:…, error:…", start)

    def _path(self) -> Iterator[str]:
        while self._take("."):
            segment = self._quoted() if self._text[self._at : self._at + 1] == '"' else self._match(_SEGMENT)
            if not segment:
                raise FilterError("a name is missing after the dot, as in payload.user.id:42", self._at)
            yield segment

    def _value(self, kind: Kind) -> str:
        value = self._quoted() if self._text[self._at : self._at + 1] == '"' else self._match(_PLAIN_VALUE)
        if not value:
            raise FilterError(f"a value is missing, as in {kind.example}", self._at)
        return value

    def _quoted(self) -> str:
        opened = self._at
        self._at += 1
        parts: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == '"':
                return "".join(parts)
            if character == "\\" and self._text[self._at : self._at + 1] in ('"', "\\"):
                character = self._text[self._at]
                self._at += 1
            parts.append(character)
        raise FilterError("this quote is not closed", opened)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _take(self, character: str) -> bool:
        if self._text[self._at : self._at + 1] != character:
            return False
        self._at += 1
        return True


def _check(term: Term, at: int) -> None:
    """Refuse a value that no job can have."""
    try:
        if term.kind.name in ("state", "id") and not term.values:
            raise FilterError(f"a value is missing, as in {term.kind.example}", at)
        if term.kind.name == "state":
            for value in term.values:
                JobState.of(value)
        elif term.kind.name == "id":
            JobFilter(ids=[_id(value, at) for value in term.values])
        elif term.kind.name in NUMBERS:
            _range(term.value, _number)
        elif term.kind.name in SPANS:
            _range(term.value, _seconds)
        else:
            JobFilter(error=term.value)
    except FilterError:
        raise
    except InvalidInputError as error:
        raise FilterError(str(error), at) from None


def _id(text: str, at: int) -> int:
    if not re.fullmatch("[0-9]{1,19}", text):
        raise FilterError(f"{_cut(text)} is not the id of a job", at)
    return int(text)


@lru_cache(maxsize=256)
def _range(text: str, read: Callable[[str], float]) -> Range:
    """Read `5`, `>5`, `<=5` or `1..5`; raises `InvalidInputError` for anything else."""
    low, dots, high = text.partition("..")
    if dots:
        return Range(read(low) if low else None, read(high) if high else None)
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"{_cut(text)} is neither a value nor a range; write 5, >5, <=5 or 1..5")
    value = read(match["one"])
    match match["sign"]:
        case ">" | ">=" as sign:
            return Range(low=value, with_low=sign == ">=")
        case "<" | "<=" as sign:
            return Range(high=value, with_high=sign == "<=")
        case _:
            return Range(value, value)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise InvalidInputError(f"{_cut(text)} is not a whole number; write 5, >5, <=5 or 1..5")
    return int(text)


def _seconds(text: str) -> float:
    """Return a span in seconds; a minus says that it lies in the past."""
    if text.startswith("-"):
        return -_seconds_of(text[1:])
    return _seconds_of(text)


def _whole(bounds: Range) -> tuple[int | None, int | None]:
    """Return a range of whole numbers with both ends included."""
    low = None if bounds.low is None else int(bounds.low) + (not bounds.with_low)
    return low, None if bounds.high is None else int(bounds.high) - (not bounds.with_high)


def _moments(bounds: Range, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the moments that lie so many seconds from now; a bound beyond the calendar is none."""
    low = _moment(bounds.low, now, TICK * (not bounds.with_low))
    return low, _moment(bounds.high, now, -TICK * (not bounds.with_high))


def _moment(seconds: float | None, now: datetime, beyond: timedelta) -> datetime | None:
    try:
        return None if seconds is None else now + timedelta(seconds=seconds) + beyond
    except OverflowError:
        return None


def _seconds_of(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text).total_seconds()


def quoted(value: str) -> str:
    """Return a value as it is typed behind a colon: in quotes when it needs them."""
    return _written(value, _PLAIN_VALUE)


def _written(text: str, plain: re.Pattern[str]) -> str:
    """Return a value as it must be typed: in quotes when it needs them."""
    if plain.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _cut(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:29] + "…")


# -- judging ---------------------------------------------------------------------------------------------------------


def _holds(term: Term, found: FoundJob, now: datetime) -> bool:
    """Tell whether a job meets a term, its negation left aside."""
    job, value = found.job, term.value
    match term.kind.name:
        case "state":
            return found.state.value in term.values
        case "id":
            return str(job.id) in {value.lstrip("0") for value in term.values}
        case "task":
            return job.task_identifier == value
        case "queue":
            return job.queue_name == value
        case "key":
            return job.key == value
        case "worker":
            return job.locked_by == value
        case "flag":
            return value in job.flag_names
        case "error":
            return value.lower() in (job.last_error or "").lower()
        case "prio":
            return job.priority in _range(value, _number)
        case "attempts":
            return job.attempts in _range(value, _number)
        case "run":
            return job.run_at_epoch - now.timestamp() in _range(value, _seconds)
        case "lock":
            started = job.started_epoch
            return started is not None and now.timestamp() - started in _range(value, _seconds)
        case _:
            return _is_in_payload(term, job.payload)


def _is_in_payload(term: Term, payload: str) -> bool:
    if not term.path:
        return term.value.lower() in payload.lower()
    return any(_as_text(value) == term.value for value in _at_path(payload, term.path))


def _at_path(payload: str, path: Sequence[str]) -> Iterator[Any]:
    """Yield what stands at a path, if anything; a number leads into a list."""
    try:
        value = json.loads(payload, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            return
    yield value


def _as_text(value: Any) -> str | None:
    """Return a value as a person would type it; None for what holds other values."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, dict | list) else json.dumps(value)


# -- suggesting ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A way to go on: what the whole text becomes, where the cursor goes, and what to show."""

    text: str
    cursor: int
    shown: str
    words: str = ""


def suggest(text: str, cursor: int, names: Mapping[str, Sequence[str]]) -> list[Suggestion]:
    """Return ways to complete the term at the cursor: kinds, states, and the `names` of tasks, queues and workers."""
    start = _beginning_of_term(text, cursor)
    typed = text[start:cursor]
    sign = "-" if typed.startswith("-") else ""
    kind, colon, value = typed.removeprefix("-").partition(":")
    offered = _values(kind.lower(), value, names) if colon else _kinds(kind.lower())
    return [
        Suggestion(f"{text[:start]}{sign}{new}{text[cursor:]}", start + len(sign) + len(new), f"{sign}{new}", words)
        for new, words in offered
    ][:MOST_SUGGESTIONS]


def _kinds(typed: str) -> Iterator[tuple[str, str]]:
    for kind in KINDS.values():
        if kind.name.startswith(typed):
            yield f"{kind.name}{'.' if kind.name == 'payload' else ':'}", kind.meaning


def _values(kind: str, typed: str, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    known: Sequence[str] = (
        [state.value for state in JobState] if kind == "state" else names.get(NAMES_OF.get(kind, ""), ())
    )
    *before, last = typed.split(",") if kind == "state" else [typed]
    sought = last.removeprefix('"').lower()
    leading = [name for name in known if name.lower().startswith(sought)]
    within = [name for name in known if sought in name.lower() and name not in leading] if len(sought) > 1 else []
    for name in (*leading, *within):
        whole = f"{kind}:{_written(','.join((*before, name)), _PLAIN_VALUE)}"
        if name != last:
            yield whole, ""


def _beginning_of_term(text: str, cursor: int) -> int:
    """Return where the term at the cursor begins; spaces within quotes end none."""
    start, is_quoted, escaped = 0, False, False
    for index, character in enumerate(text[:cursor]):
        if escaped:
            escaped = False
        elif is_quoted and character == "\\":
            escaped = True
        elif character == '"':
            is_quoted = not is_quoted
        elif character.isspace() and not is_quoted:
            start = index + 1
    return start
