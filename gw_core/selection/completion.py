"""Complete a half-typed term: names of terms, states, and the names of tasks, queues and workers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gw_core.domain.job.job_state import JobState
from gw_core.selection.terms import PAYLOAD, SHORT_FORMS, TERMS
from gw_core.selection.values import written

MAX_SUGGESTIONS: Final = 12
NAMES_OF: Final = {"task": "tasks", "queue": "queues", "worker": "workers"}
"""Where the values of a term come from; never from the jobs themselves."""

_LAST_VALUE: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[^",]*', re.DOTALL)
_QUOTED_OR_SPACE: Final = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)|\s', re.DOTALL)


class Suggestion(msgspec.Struct, frozen=True):
    """A way to complete a text: the new text, where its cursor goes, what to show, and what it means."""

    text: str
    cursor: int
    shown: str
    help: str = ""


def suggest(text: str, cursor: int, names: Mapping[str, Sequence[str]]) -> list[Suggestion]:
    """Return ways to complete the term at the cursor; `names` has lists of `tasks`, `queues` and `workers`."""
    start = _start_of_term(text, cursor)
    typed = text[start:cursor]
    sign = "-" if typed.startswith("-") else ""
    name, colon, value = typed.removeprefix("-").partition(":")
    name = SHORT_FORMS.get(name.lower(), name.lower())
    offered = _values(name, value, names) if colon else _terms(name)
    return [
        Suggestion(f"{text[:start]}{sign}{new}{text[cursor:]}", start + len(sign) + len(new), f"{sign}{new}", meaning)
        for new, meaning in offered
    ][:MAX_SUGGESTIONS]


def _terms(typed: str) -> Iterator[tuple[str, str]]:
    for term in TERMS.values():
        if term.name.startswith(typed):
            yield f"{term.name}{'.' if term is PAYLOAD else ':'}", term.help


def _values(name: str, typed: str, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    known = [str(state) for state in JobState] if name == "state" else names.get(NAMES_OF.get(name, ""), ())
    before, last = _split(typed)
    sought = last.removeprefix('"').lower()
    leading = [each for each in known if each.lower().startswith(sought)]
    within = [each for each in known if sought in each.lower() and each not in leading] if len(sought) > 1 else []
    for each in (*leading, *within):
        if each != last:
            yield f"{name}:{before}{written(each)}", ""


def _split(typed: str) -> tuple[str, str]:
    """Return the values before the one being typed, with their comma, and that one."""
    start = 0
    while (match := _LAST_VALUE.match(typed, start)) and match.end() < len(typed):
        start = match.end() + 1
    return typed[:start], typed[start:]


def _start_of_term(text: str, cursor: int) -> int:
    """Return where the term at the cursor begins; spaces in quotes end none."""
    ends = [match.end() for match in _QUOTED_OR_SPACE.finditer(text, 0, cursor) if match[0].isspace()]
    return ends[-1] if ends else 0
