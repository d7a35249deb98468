"""Read a selection from text: `state:failed attempts:>3 -queue:slow error:"timed out"`.

Every term is understood or rejected with its position; none is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from gw_core.domain.durations import shown
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import listed_ids
from gw_core.selection.kinds import UNSTORABLE, Element, Payload
from gw_core.selection.selection import MAX_VALUES, Condition, Selection
from gw_core.selection.terms import SHORT_FORMS, TERMS, Term
from gw_core.selection.values import Value

Which: TypeAlias = str | Selection | int | Sequence[int]
"""How a caller selects jobs: as text, as a selection, or by id.

Example: docs/api/selection.md
"""

MAX_CONDITIONS: Final = 30
MAX_PATH: Final = 50

_NAME: Final = re.compile(r'[^\s":.,]+')
_IDS: Final = re.compile(r"[0-9]+(,[0-9]+)*(?=\s|$)")
_SEGMENT: Final = re.compile(r'[^\s".:]+')
_PLAIN: Final = re.compile(r'[^\s",*]+')


class SelectionError(InvalidInputError):
    """A selection that cannot be understood; `position` is where, counted from 0.

    Example: docs/api/errors.md
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} (at character {position + 1})")
        self.reason = reason
        self.position = position


def parse(text: str, terms: Mapping[str, Term] = TERMS) -> Selection:
    """Return the selection that a text means; raises `SelectionError` with the position of the mistake.

    Example: docs/api/selection.md
    """
    return Selection(tuple(_Reader(text, terms).conditions()))


def selection_of(which: Which) -> Selection:
    """Return the selection that a caller gave in one of the ways there are."""
    if isinstance(which, Selection):
        return which
    if isinstance(which, str):
        return parse(which)
    return Selection.of(id=listed_ids(which))


def selection_to_change(which: Which) -> Selection:
    """Return the selection of an action; a text must have a condition, so that no empty variable means every job."""
    selection = selection_of(which)
    if isinstance(which, str) and selection.is_everything:
        raise InvalidInputError("the selection is empty; give a condition, or Selection() for every job")
    return selection


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, terms: Mapping[str, Term]) -> None:
        self._text = text
        self._terms = terms
        self._at = 0

    def conditions(self) -> Iterator[Condition]:
        """Yield each condition; ids without a name make up one condition, wherever they stand."""
        count, ids = 0, dict[Value, None]()
        while self._skip_space():
            if bare := self._match(_IDS):
                ids |= dict.fromkeys(self._ids(bare))
                continue
            count += 1
            if count > MAX_CONDITIONS:
                raise SelectionError(f"there are more than {MAX_CONDITIONS} conditions", self._at)
            yield self._condition()
        if ids:
            yield Condition(self._terms["id"], tuple(ids))

    def _ids(self, bare: str) -> Iterator[Value]:
        at = self._at - len(bare)
        for text in bare.split(","):
            yield self._value(self._terms["id"], Element(text), at)
            at += len(text) + 1

    def _condition(self) -> Condition:
        negated = self._take("-")
        term = self._term()
        path = tuple(self._path()) if isinstance(term.kind, Payload) else ()
        if len(path) > MAX_PATH:
            raise SelectionError(f"the path into the payload has more than {MAX_PATH} levels", self._at)
        if not self._take(":"):
            raise SelectionError(f"{term.name} needs a colon and a value, as in {term.example}", self._at)
        values = tuple(dict.fromkeys(self._values(term, path)))
        if len(values) > MAX_VALUES:
            raise SelectionError(f"{term.name} has more than {MAX_VALUES} values", self._at)
        return Condition(term, values, negated, path)

    def _term(self) -> Term:
        start, name = self._at, self._match(_NAME)
        term = self._terms.get(SHORT_FORMS.get(name.lower(), name.lower()))
        if term is not None:
            return term
        if name and self._next == ":":
            raise SelectionError(f"unknown term {shown(name)}; terms are {', '.join(self._terms)}", start)
        what = shown(name) if name else "this"
        raise SelectionError(f"{what} has no term; write task:…, queue:…, id:… or error:…", start)

    def _path(self) -> Iterator[str]:
        while self._take("."):
            segment = self._quoted() if self._next == '"' else self._match(_SEGMENT)
            if not segment:
                raise SelectionError("a name is missing after the dot, as in payload.user.id:42", self._at)
            if UNSTORABLE.search(segment):
                raise SelectionError("a name has a character that PostgreSQL cannot store", self._at - len(segment))
            yield segment

    def _values(self, term: Term, path: Sequence[str]) -> Iterator[Value]:
        """Yield the values of a list, of which one must match."""
        while True:
            start = self._at
            yield self._value(term, self._element(term), start, path)
            if not self._take(","):
                break
        if self._next and not self._next.isspace():
            raise SelectionError("put the whole value in quotes, not a part of it", self._at)

    def _element(self, term: Term) -> Element:
        """Read one value and the `*` behind it; a `*` elsewhere would be a pattern we do not have."""
        is_quoted = self._next == '"'
        text = self._quoted() if is_quoted else self._match(_PLAIN)
        star = self._take("*")
        if not text and not star:
            raise SelectionError(f"a value is missing, as in {term.example}", self._at)
        if star and self._next not in ("", ",") and not self._next.isspace():
            raise SelectionError(
                "a * stands only at the end of a value; to search for one, put the value in quotes", self._at - 1
            )
        return Element(text, is_quoted=is_quoted, has_star=star)

    def _value(self, term: Term, element: Element, start: int, path: Sequence[str] = ()) -> Value:
        try:
            return term.kind.read(element, path)
        except InvalidInputError as error:
            raise SelectionError(str(error), start) from None

    # -- characters ------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_space(self) -> bool:
        """Go to the next condition; False when none is left."""
        while self._next.isspace():
            self._at += 1
        return bool(self._next)

    def _quoted(self) -> str:
        opened = self._at
        self._at += 1
        parts: list[str] = []
        while character := self._next:
            self._at += 1
            if character == '"':
                return "".join(parts)
            if character == "\\" and self._next in ('"', "\\"):
                character = self._next
                self._at += 1
            parts.append(character)
        raise SelectionError("this quote is not closed", opened)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return "" if found is None else found[0]

    def _take(self, character: str) -> bool:
        taken = self._next == character
        self._at += taken
        return taken
