"""A payload as lines to show: numbers exact, keys in their order, secrets hidden, nothing that steers a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gw_tui.text.redact import MASK, is_secret, masked
from gw_tui.text.sanitize import UNSAFE

MAX_LINES: Final = 200
MAX_CHARACTERS: Final = 65_536
MAX_DEPTH: Final = 60
MAX_STRING: Final = 4_000

_INDENT: Final = "  "
_NAME_MEMBERS: Final = frozenset({"name", "key", "field", "header", "label"})
_VALUE_MEMBERS: Final = frozenset({"value", "val", "values", "content", "data"})
_MAX_NAME: Final = 80
_PAIR: Final = 2


class Role(StrEnum):
    """What a piece of a line is, for its colour."""

    PUNCTUATION = "punctuation"
    KEY = "key"
    STRING = "string"
    NUMBER = "number"
    LITERAL = "literal"
    MASKED = "masked"
    NOTE = "note"


Piece = tuple[str, Role]
Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class JsonView:
    """A payload as lines; `hidden` is how many more there are, `masked` how many values were hidden.

    `items` counts the items of a batch job, whose payload is a list, and is None for other payloads.
    """

    lines: tuple[Line, ...]
    hidden: int = 0
    masked: int = 0
    items: int | None = None
    is_json: bool = True

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines)


class _Number(str):
    """A number as it was written: no float is exact for all of them."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """The members of an object in their order; the type `json` keeps names that occur twice."""


def json_view(text: str, *, unmask: bool = False, whole: bool = False) -> JsonView:
    """Return the payload as lines, at most `MAX_LINES` of them unless the `whole` is wanted."""
    if len(text) > MAX_CHARACTERS and not whole:
        return _raw(text, unmask=unmask)
    try:
        value = json.loads(
            text, object_pairs_hook=_Members, parse_float=_Number, parse_int=_Number, parse_constant=_Number
        )
    except (ValueError, RecursionError):
        return _raw(text, unmask=unmask)
    return _of_value(value, unmask=unmask, whole=whole)


def _of_value(value: Any, *, unmask: bool, whole: bool) -> JsonView:
    writer = _Writer(unmask=unmask)
    lines = tuple(writer.lines(value))
    shown = lines if whole else lines[:MAX_LINES]
    is_batch = isinstance(value, list) and not isinstance(value, _Members)
    return JsonView(shown, len(lines) - len(shown), writer.masked, len(value) if is_batch else None)


def _raw(text: str, *, unmask: bool) -> JsonView:
    """Return text that is not JSON, or too much of it, as it stands."""
    shown = text[:MAX_CHARACTERS]
    if not unmask:
        shown = masked(shown)
    parts = [shown[start : start + MAX_STRING] for start in range(0, len(shown), MAX_STRING)]
    lines = [((UNSAFE.sub(_escape, part), Role.NOTE),) for part in parts]
    if len(text) > MAX_CHARACTERS:
        lines.append(((f"… {len(text) - MAX_CHARACTERS:,} more characters", Role.NOTE),))
    return JsonView(tuple(lines), is_json=False)


class _Writer:
    """Writes one value as lines and counts what it hides."""

    def __init__(self, *, unmask: bool) -> None:
        self._unmask = unmask
        self.masked = 0

    def lines(self, value: Any) -> Iterator[Line]:
        return self._value(value, (), "", 0)

    def _value(self, value: Any, before: Line, after: str, depth: int) -> Iterator[Line]:
        """Yield the lines of a value; `before` stands on its first line, `after` on its last."""
        if isinstance(value, _Members):
            yield from self._many(value, before, after, depth, "{}")
        elif isinstance(value, list):
            yield from self._many(value, before, after, depth, "[]")
        else:
            yield _joined((*before, *self._scalar(value)), after)

    def _many(self, values: list[Any], before: Line, after: str, depth: int, brackets: str) -> Iterator[Line]:
        opening, closing = tuple(brackets)
        if not values or depth >= MAX_DEPTH:
            inside = f"{opening} … {closing}" if values else brackets
            yield _joined((*before, (inside, Role.PUNCTUATION)), after)
            return
        yield (*before, (opening, Role.PUNCTUATION))
        indent = (_INDENT * (depth + 1), Role.PUNCTUATION)
        names_secret = isinstance(values, _Members) and _names_secret(values)
        for number, each in enumerate(values, 1):
            comma = "," if number < len(values) else ""
            if isinstance(values, _Members):
                name, member = each
                hides = is_secret(name) or (names_secret and name.lower() in _VALUE_MEMBERS)
                yield from self._member(name, member, indent, comma, depth + 1, hides=hides)
            elif number > 1 and not self._unmask and _announces_secret(values[number - 2], alone=len(values) == _PAIR):
                yield self._hidden((indent,), comma)
            else:
                yield from self._value(each, (indent,), comma, depth + 1)
        yield ((_INDENT * depth + closing + after, Role.PUNCTUATION),)

    def _member(self, name: str, value: Any, indent: Piece, comma: str, depth: int, *, hides: bool) -> Iterator[Line]:
        before = (indent, (_string(name), Role.KEY), (": ", Role.PUNCTUATION))
        if hides and not self._unmask and not _is_trivial(value):
            yield self._hidden(before, comma)
        else:
            yield from self._value(value, before, comma, depth)

    def _hidden(self, before: Line, after: str) -> Line:
        self.masked += 1
        return _joined((*before, (f'"{MASK}"', Role.MASKED)), after)

    def _scalar(self, value: Any) -> Line:
        if isinstance(value, _Number) and (self._unmask or masked(value) == value):
            return ((str(value), Role.NUMBER),)
        if not isinstance(value, str):
            return ((json.dumps(value), Role.LITERAL),)
        shown = value if self._unmask else masked(value)
        self.masked += shown != value
        if len(shown) <= MAX_STRING:
            return ((_string(shown), Role.STRING),)
        more = f" … {len(shown) - MAX_STRING:,} more characters"
        return ((_string(shown[:MAX_STRING]), Role.STRING), (more, Role.NOTE))


def _names_secret(members: _Members) -> bool:
    """Return whether an object is the name of a secret with its value: `{"name": "password", "value": …}`."""
    return any(
        name.lower() in _NAME_MEMBERS and isinstance(value, str) and not isinstance(value, _Number) and is_secret(value)
        for name, value in members
    )


def _announces_secret(before: Any, *, alone: bool) -> bool:
    """Return whether the next item of a list is a secret: the value of an option, or the second of a pair."""
    if not isinstance(before, str) or len(before) > _MAX_NAME or "=" in before:
        return False
    return (alone or before.startswith("-")) and is_secret(before)


def _is_trivial(value: Any) -> bool:
    """Return whether a value cannot be a secret, whatever its name."""
    return value is None or isinstance(value, bool) or value in ("", [])


def _joined(line: Line, after: str) -> Line:
    return (*line, (after, Role.PUNCTUATION)) if after else line


def _string(value: str) -> str:
    """Return a string as JSON writes it, with every character that could mislead as an escape."""
    return UNSAFE.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it."""
    return json.dumps(match[0]).strip('"')
