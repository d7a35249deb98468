"""A whole process that finds nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from bench.contenders import Contender, Gw, Node
from bench.frame import Goal, Measured, Row
from bench.measure import Bench
from bench.processes import run_together

SPAN: Final = "ms"


def rows(bench: Bench) -> Sequence[Row]:
    """`run --once` on an empty queue."""
    return (
        Row(
            name="start",
            title="run --once on an empty queue, whole process",
            sides={"gw": lambda: start(bench, Gw()), "Node defaults": lambda: start(bench, Node())},
            goals=(Goal(figure=SPAN, at_most=400),),
        ),
    )


def start(bench: Bench, contender: Contender) -> Measured:
    """Start it, and some times more; the first time, which fills caches, is not counted."""
    with bench.place() as (url, folder):
        contender.install(url)
        worker = contender.worker(url, folder)
        spans = [run_together([worker]).seconds for _ in range(1 + bench.sizes.starts)]
    return Measured({SPAN: median(spans[1:]) * 1000})
