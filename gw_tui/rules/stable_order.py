"""Where rows stand: sorted by a column, and after a refresh the highlighted and the held ones at their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

_NUMBER: Final = re.compile(r"-?[0-9][0-9,]*([.][0-9]+)?")


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The keys in the order shown, which of them are gone from the list, and how many changes wait to be shown."""

    order: tuple[str, ...]
    gone: frozenset[str] = field(default=frozenset())
    waiting: int = 0


def arranged(shown: Sequence[str], wanted: Sequence[str], *, highlighted: str | None) -> RowOrder:
    """Take over a new list; the highlighted row stays where it stood even when it is no longer in it."""
    if highlighted is None or highlighted in wanted or highlighted not in shown:
        return RowOrder(tuple(wanted))
    place = min(shown.index(highlighted), len(wanted))
    return RowOrder((*wanted[:place], highlighted, *wanted[place:]), frozenset((highlighted,)))


def held(shown: Sequence[str], wanted: Sequence[str]) -> RowOrder:
    """Keep every row at its place, gone or not, and count what a new list would have changed."""
    new = set(wanted)
    gone = frozenset(key for key in shown if key not in new)
    arrived = len(new - set(shown))
    staying = [key for key in shown if key in new]
    moved = sum(a != b for a, b in zip(staying, (key for key in wanted if key in set(shown)), strict=True))
    return RowOrder(tuple(shown), gone, arrived + len(gone) + moved)


def sort_value(text: str, value: float | None) -> tuple[int, float, str] | None:
    """Return what a cell sorts by: a number before texts; None for an empty cell."""
    if value is None and _NUMBER.fullmatch(text):
        value = float(text.replace(",", ""))
    if value is not None:
        return (0, value, "")
    return (1, 0.0, text.casefold()) if text else None


def sorted_by(items: Sequence[tuple[tuple[int, float, str] | None, T]], *, is_descending: bool) -> list[T]:
    """Return the items in the order of their values, those without a value last."""
    known = sorted(
        ((value, item) for value, item in items if value is not None),
        key=lambda each: each[0],
        reverse=is_descending,
    )
    return [item for _, item in known] + [item for value, item in items if value is None]
