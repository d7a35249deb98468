"""Drain trivial jobs: how fast a queue empties."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contenders import Gw, Jobs, Node, node_tuned
from bench.frame import Goal, Row
from bench.measure import RATE, Bench, How, drain

TWO = How(processes=2)


def rows(bench: Bench) -> Sequence[Row]:
    """One process beside one, and two beside two."""
    many, few = Jobs(count=bench.sizes.drain), Jobs(count=bench.sizes.drain_slow)
    return (
        Row(
            name="drain",
            title="Drain trivial jobs, one process",
            sides={
                "gw": lambda: drain(bench, Gw(), many),
                "gw, warnings only": lambda: drain(bench, Gw(("--log-level", "warning")), many),
                "Node tuned": lambda: drain(bench, node_tuned(), many),
                "Node defaults": lambda: drain(bench, Node(), few),
            },
            goals=(
                Goal(figure=RATE, beside="Node tuned", at_least=1.15),
                Goal(figure=RATE, beside="Node defaults", at_least=10),
            ),
        ),
        Row(
            name="drain-two",
            title="Drain trivial jobs, two processes",
            sides={
                "gw": lambda: drain(bench, Gw(), many, TWO),
                "gw, warnings only": lambda: drain(bench, Gw(("--log-level", "warning")), many, TWO),
                "Node tuned": lambda: drain(bench, node_tuned(), many, TWO),
            },
            goals=(Goal(figure=RATE, beside="Node tuned", at_least=1.2),),
        ),
    )
