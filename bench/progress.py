"""How long the rest will take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from bench.harness import Benchmark, BenchmarkResult

KNOWN: Final = Path(__file__).with_name("expected_seconds.json")
"""By scale and benchmark, the seconds one round of one side took on a quiet machine with two cores."""
UNKNOWN: Final = 10.0
TRUSTED_AFTER: Final = 60.0
"""Seconds of measuring before this machine is called faster or slower than that one."""


class Eta:
    """Counts the rounds to come, at what they cost elsewhere, by how much slower this machine has been so far."""

    def __init__(self, benchmarks: Sequence[Benchmark], *, rounds: int, scale: str) -> None:
        known = json.loads(KNOWN.read_text()).get(scale, {})
        self._each: dict[str, float] = {benchmark.name: known.get(benchmark.name, UNKNOWN) for benchmark in benchmarks}
        self._all = sum(
            self._each[benchmark.name] * len(benchmark.sides) * benchmark.rounds_of(rounds) for benchmark in benchmarks
        )
        self._left = self._all

    def note(self, results: Iterable[BenchmarkResult]) -> None:
        """Update the estimate from everything measured so far."""
        spent = expected = 0.0
        for result in results:
            for side in result.sides.values():
                spent += sum(side.seconds)
                expected += self._each[result.benchmark.name] * len(side.seconds)
        slower = spent / expected if expected and spent > TRUSTED_AFTER else 1.0
        self._left = max(0.0, self._all - expected) * slower

    def __str__(self) -> str:
        return f"about {self._left / 60:.0f} min left" if self._left >= 60 else f"about {self._left:.0f} s left"


def learned(results: Iterable[BenchmarkResult]) -> dict[str, float]:
    """Return what `expected_seconds.json` should say of these benchmarks."""
    durations = {
        each.benchmark.name: [duration for side in each.sides.values() for duration in side.seconds] for each in results
    }
    return {name: round(mean(seconds), 1) for name, seconds in durations.items() if seconds}
