"""Every row there is, in the order of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench.frame import Row
from bench.measure import Bench
from bench.rows import (
    add_from,
    bulk_add,
    console,
    console_lag,
    drain,
    footprint,
    hard,
    idle,
    index_cost,
    latency,
    looking,
    mixed,
    peers,
    processes,
    queues,
    soak,
    start,
)

MAKERS: Final[Sequence[Callable[[Bench], Sequence[Row]]]] = (
    drain.rows,
    latency.rows,
    queues.rows,
    idle.rows,
    soak.rows,
    mixed.rows,
    hard.rows,
    bulk_add.rows,
    add_from.rows,
    footprint.rows,
    start.rows,
    processes.rows,
    looking.rows,
    console.rows,
    console_lag.rows,
    index_cost.rows,
    peers.rows,
)


def all_rows(bench: Bench) -> list[Row]:
    """Return all rows at the scale of this benchmark."""
    return [row for rows in MAKERS for row in rows(bench)]
