"""Where rows stand after a refresh: the highlighted one stays under the cursor, and held ones keep their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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
