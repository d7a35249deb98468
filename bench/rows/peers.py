"""The Python queues from PyPI, each at its best."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contenders import Gw, Jobs
from bench.frame import Goal, Row
from bench.measure import RATE, Bench, How, drain
from bench.pypi import PgQueuer, Procrastinate

TWO = How(processes=2)


def rows(bench: Bench) -> Sequence[Row]:
    """Two processes each: that is the best of all three on two cores."""
    many, few = Jobs(count=bench.sizes.peers), Jobs(count=bench.sizes.procrastinate)
    return (
        Row(
            name="python-peers",
            title="Drain trivial jobs, two processes, beside Python's other queues",
            sides={
                "gw": lambda: drain(bench, Gw(), many, TWO),
                "pgqueuer": lambda: drain(bench, PgQueuer(), many, TWO),
                "procrastinate": lambda: drain(bench, Procrastinate(), few, TWO),
            },
            goals=(
                Goal(figure=RATE, beside="pgqueuer", at_least=2),
                Goal(figure=RATE, beside="procrastinate", at_least=10),
            ),
        ),
    )
