"""How far the jobs of each queue on a page are counted, so that a page of any queues costs about the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from gw_core.operations import Quality

if TYPE_CHECKING:
    from gw_core.operations import Count

COUNT_LIMITS: Final = (1_000, 300, 100, 50, 20, 10)
IN_ALL: Final = 1_000
"""So many jobs are counted for a page, over all its queues: each may lie on a page of the table of its own."""


def next_limit(found: Iterable[Count]) -> int:
    """Return how far each queue can be counted next, after these counts; begin with the least, `COUNT_LIMITS[-1]`."""
    counts = tuple(found)
    return next(
        (depth for depth in COUNT_LIMITS if sum(_cost(each, depth) for each in counts) <= IN_ALL), COUNT_LIMITS[-1]
    )


def _cost(count: Count, depth: int) -> int:
    """Return how many jobs counting this far would walk past; of a queue that holds more, nobody knows how many."""
    return depth if count.quality is Quality.AT_LEAST else min(depth, count.value)
