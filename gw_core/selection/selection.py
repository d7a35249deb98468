"""A selection: the conditions that jobs must meet, as a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job_state import JobState
from gw_core.domain.reports.query_results import FoundJob
from gw_core.selection.kinds import Element, References, Resolved
from gw_core.selection.terms import ALL_STATES, PAYLOAD, TERMS, Cost, Term
from gw_core.selection.values import Prefix, Range, Text, Value, written

MAX_VALUES: Final = 100_000
"""The most values of one condition."""

StateName: TypeAlias = Literal["ready", "scheduled", "waiting", "running", "backoff", "failed"]

_SEGMENT: Final = re.compile(r'[^\s".:]+')
_NO_ID: Final = (Range(low=1),)


class Condition(msgspec.Struct, frozen=True):
    """A term and the values of which one must match; negated, none may. `path` leads into the payload."""

    term: Term
    values: tuple[Value, ...]
    is_negated: bool = False
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        path = "".join(f".{written(part, _SEGMENT)}" for part in self.path)
        return f"{'-' * self.is_negated}{self.term.name}{path}:{','.join(map(str, self.values))}"

    @property
    def cost(self) -> Cost:
        """What finding such jobs costs; a negated condition uses no index."""
        return max(self.term.cost, Cost.WINDOW) if self.is_negated else self.term.cost

    def matches(self, found: FoundJob, now: datetime) -> bool:
        """Return whether a job meets the condition."""
        actual, kind = self.term.value_of(found), self.term.kind
        return any(kind.test(actual, value, now, self.path) for value in self.values) is not self.is_negated


class Fragment(msgspec.Struct, frozen=True):
    """A selection as an SQL expression on `jobs`, and the values of its placeholders."""

    text: str
    values: Mapping[str, object] = msgspec.field(default_factory=dict)


EVERY_ROW: Final = Fragment("true")


@dataclass(frozen=True)
class Selection:
    """Conditions that a job must meet, all of them; without conditions, every job is selected.

    `parse(str(selection))` is the same selection.

    Example: docs/api/gw_core.md
    """

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        state: JobState | StateName | Sequence[JobState | StateName] | None = None,
        id: int | str | Iterable[int] | None = None,
        job_key: str | Sequence[str] | None = None,
        task: str | Sequence[str] | None = None,
        queue: str | Sequence[str] | None = None,
        worker: str | Sequence[str] | None = None,
        flag: str | Sequence[str] | None = None,
        priority: int | str | None = None,
        attempts: int | str | None = None,
        run_at: str | None = None,
        started_at: str | None = None,
        locked_at: str | None = None,
        created_at: str | None = None,
        error: str | Sequence[str] | None = None,
        payload: str | Sequence[str] | None = None,
    ) -> Selection:
        """Return the selection with these conditions; None sets none, and of several values one must match.

        Names and texts are taken literally, without `*`. Ranges are texts: `attempts=">3"`, `run_at="<-1h"`.
        Raises `InvalidInputError` for what no job can have.
        """
        given = {name: value for name, value in locals().items() if name in TERMS and value is not None}
        return cls(tuple(_condition(TERMS[name], given[name]) for name in TERMS if name in given))

    def __str__(self) -> str:
        return " ".join(map(str, self.conditions))

    def __and__(self, other: Selection) -> Selection:
        """Return the jobs that meet the conditions of both."""
        return Selection((*self.conditions, *other.conditions))

    # -- what it means ---------------------------------------------------------------------------------------------

    def matches(self, found: FoundJob, now: datetime) -> bool:
        """Return whether a job meets every condition, at a time of the database's clock."""
        return all(each.matches(found, now) for each in self.conditions)

    def at(self, now: datetime) -> Selection:
        """Return the selection with times that no longer count from now."""
        return Selection(tuple(replace(each, values=tuple(_at(each.values, now))) for each in self.conditions))

    def sql(self, database: Resolved) -> Fragment:
        """Return the selection as SQL, the cheap conditions first; the text comes from the table of terms alone."""
        values: dict[str, object] = {}

        def bind(value: object) -> str:
            name = f"selection_{len(values)}"
            values[name] = value
            return f"%({name})s"

        ordered = sorted(self.conditions, key=lambda each: each.term.cost)
        parts = [_sql(each, database, bind) for each in ordered]
        return Fragment(" and ".join(parts) or "true", values)

    # -- what it costs, and what leads to its jobs -------------------------------------------------------------------

    @cached_property
    def states(self) -> frozenset[JobState]:
        """The states its jobs can be in."""
        found = ALL_STATES
        for each in self.conditions:
            if each.term.name == "state":
                named = {JobState(value.text) for value in each.values if isinstance(value, Text)}
                found = found - named if each.is_negated else found & named
            elif not each.is_negated:
                found &= each.term.states
        return found

    @cached_property
    def ids(self) -> tuple[int, ...] | None:
        """The ids of its jobs in order, if it names them one by one."""
        found = next((ids for each in self._positive("id") if (ids := _ids(each))), None)
        return None if found is None else tuple(sorted(set(found)))

    @cached_property
    def is_by_name(self) -> bool:
        """True when the jobs are named one by one, by ids or keys, and need not be searched for."""
        return self.ids is not None or any(
            all(isinstance(value, Text) for value in each.values) for each in self._positive("job_key")
        )

    @property
    def is_everything(self) -> bool:
        """True when no condition was given, so that every job matches."""
        return not self.conditions

    @property
    def is_empty(self) -> bool:
        """True when its conditions exclude each other."""
        return not self.states or any(each.is_negated and each.values == _NO_ID for each in self.conditions)

    @property
    def is_relative(self) -> bool:
        """True when a time counts from now, so that the jobs meant change with it."""
        return any(isinstance(value, Range) and value.is_relative for each in self.conditions for value in each.values)

    @property
    def needs_payload(self) -> bool:
        """True when a condition compares payloads."""
        return any(each.term is PAYLOAD for each in self.conditions)

    @property
    def cost(self) -> Cost:
        """What finding its jobs costs: the most expensive condition, unless the jobs are named one by one."""
        if self.is_by_name:
            return Cost.INDEX
        return max((each.cost for each in self.conditions), default=Cost.INDEX)

    def cannot_match(self, database: Resolved) -> bool:
        """Return whether no job can match: conditions exclude each other, or no task or queue has the name."""
        return self.is_empty or any(not ids for _, ids in self._references(database))

    def only_queue(self, database: Resolved) -> int | None:
        """Return the id of the one queue its jobs are in."""
        return next((ids[0] for name, ids in self._references(database) if name == "queue" and len(ids) == 1), None)

    def names(self, of: Literal["tasks", "queues"]) -> tuple[list[str], list[str]]:
        """Return the names and prefixes of tasks or queues whose ids are needed, negated conditions included."""
        values = [
            value
            for each in self.conditions
            if isinstance(each.term.kind, References) and each.term.kind.of == of
            for value in each.values
        ]
        return (
            [value.text for value in values if isinstance(value, Text)],
            [value.text for value in values if isinstance(value, Prefix)],
        )

    def _references(self, database: Resolved) -> Iterator[tuple[str, list[int]]]:
        for each in self.conditions:
            if isinstance(each.term.kind, References) and not each.is_negated:
                yield each.term.name, each.term.kind.ids(each.values, database)

    def _positive(self, name: str) -> Iterator[Condition]:
        return (each for each in self.conditions if each.term.name == name and not each.is_negated)


EVERYTHING: Final = Selection()


def cancellable(selection: Selection) -> Selection:
    """Return those jobs of a selection that can be cancelled: running ones, and waiting ones if it names that state."""
    if selection.is_by_name:
        return selection
    names_states = any(True for _ in selection._positive("state"))
    return selection & Selection.of(state=("running", "waiting") if names_states else "running")


def _condition(term: Term, given: Any) -> Condition:
    """Return the condition of a keyword argument."""
    several = [given] if isinstance(given, str | int) else list(given)
    if not several:
        return Condition(TERMS["id"], _NO_ID, is_negated=True)
    if len(several) > MAX_VALUES:
        raise InvalidInputError(f"{term.name} has {len(several)} values; give at most {MAX_VALUES}")
    return Condition(term, tuple(dict.fromkeys(_value(term, each) for each in several)))


def _value(term: Term, given: object) -> Value:
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise InvalidInputError(f"{given!r} is not a value of {term.name}; write it like {term.example}")
    try:
        return term.kind.read(Element(str(given), is_quoted=True))
    except InvalidInputError as error:
        raise InvalidInputError(f"{term.name}: {error}") from None


def _ids(condition: Condition) -> list[int]:
    """Return the ids of a condition that has nothing but ids."""
    ids = [value.only for value in condition.values if isinstance(value, Range)]
    return [each for each in ids if each is not None] if None not in ids else []


def _at(values: Sequence[Value], now: datetime) -> Iterator[Value]:
    return (value.at(now) if isinstance(value, Range) else value for value in values)


def _sql(condition: Condition, database: Resolved, bind: Any) -> str:
    term = condition.term
    text = term.kind.sql(term.column, condition.values, condition.path, database, bind)
    return f"({text}) is not true" if condition.is_negated else f"({text})"
