"""How long the rest will take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from bench.frame import Row, RowResult

KNOWN: Final = Path(__file__).with_name("seconds.json")
"""By scale and row, the seconds one round of one side took on a quiet machine with two cores."""
UNKNOWN: Final = 10.0
TRUSTED_AFTER: Final = 60.0
"""Seconds of measuring before this machine is called faster or slower than that one."""


class TimeLeft:
    """Counts the rounds to come, at what they cost elsewhere, by how much slower this machine has been so far."""

    def __init__(self, rows: Sequence[Row], *, rounds: int, scale: str) -> None:
        known = json.loads(KNOWN.read_text()).get(scale, {})
        self._each: dict[str, float] = {row.name: known.get(row.name, UNKNOWN) for row in rows}
        self._all = sum(self._each[row.name] * len(row.sides) * row.rounds_of(rounds) for row in rows)
        self._left = self._all

    def note(self, results: Iterable[RowResult]) -> None:
        """Look at everything measured so far."""
        spent = expected = 0.0
        for result in results:
            for side in result.sides.values():
                spent += sum(side.seconds)
                expected += self._each[result.row.name] * len(side.seconds)
        slower = spent / expected if expected and spent > TRUSTED_AFTER else 1.0
        self._left = max(0.0, self._all - expected) * slower

    def __str__(self) -> str:
        return f"about {self._left / 60:.0f} min left" if self._left >= 60 else f"about {self._left:.0f} s left"


def learned(results: Iterable[RowResult]) -> dict[str, float]:
    """Return what `seconds.json` should say of these rows."""
    spans = {each.row.name: [span for side in each.sides.values() for span in side.seconds] for each in results}
    return {name: round(mean(seconds), 1) for name, seconds in spans.items() if seconds}
