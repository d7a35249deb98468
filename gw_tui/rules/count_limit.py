"""How far the jobs of each queue on a page are counted, so that a page of any queues costs about the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from gw_core.front_ends import Quality

if TYPE_CHECKING:
    from gw_core.front_ends import Count

COUNT_LIMITS: Final = (1_000, 300, 100, 50, 20, 10)
IN_ALL: Final = 1_000
"""This many jobs are counted for a page, over all its queues: each may lie on a page of the table of its own."""


def next_limit(found: Iterable[Count], current: int | None = None) -> int:
    """Return how far each queue can be counted next, after these counts; begin with the least, `COUNT_LIMITS[-1]`.

    The current limit stays until it costs twice as much: a number on the screen does not alternate between exact and
    cut while jobs come and go.
    """
    counts = tuple(found)
    if current is not None and _fits(counts, current, 2 * IN_ALL) and not _fits(counts, _above(current), IN_ALL):
        return current
    return next((depth for depth in COUNT_LIMITS if _fits(counts, depth, IN_ALL)), COUNT_LIMITS[-1])


def _above(limit: int) -> int:
    return COUNT_LIMITS[max(0, COUNT_LIMITS.index(limit) - 1)]


def _fits(counts: Sequence[Count], depth: int, budget: int) -> bool:
    return sum(_cost(each, depth) for each in counts) <= budget


def _cost(count: Count, depth: int) -> int:
    """Return how many jobs counting this far would read; the number beyond the limit is unknown."""
    return depth if count.quality is Quality.AT_LEAST else min(depth, count.value)
