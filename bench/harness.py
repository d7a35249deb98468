"""Rows, their sides and their goals; measuring the sides in turn, round after round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Final

from bench.checkout import measuring

OURS: Final = "gw"
"""How the names of our own sides begin."""


class NotMeasuredError(Exception):
    """A side could not be measured; the table shows the message instead of a figure."""


class WrongResultError(Exception):
    """A side did not do what it was measured at: a job was lost, or ran twice. Its figures are not printed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one measurement of one side: figures by their unit, and notes."""

    figures: Mapping[str, float]
    notes: Mapping[str, str] = field(default_factory=dict)
    """By their kind, so that rounds that say the same say it once."""


Measure = Callable[[], Measured]
Sides = Mapping[str, Measure]
"""Who takes part, in the order of the rounds; the first is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a median of ours must reach: a ratio to another side's, or without one a plain figure."""

    figure: str
    beside: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    of: str | None = None
    """Whose figure is judged; None: the first side's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One thing that is measured."""

    name: str
    title: str
    sides: Sides
    goals: Sequence[Goal] = ()
    rounds: int | None = None
    """The maximum, for a benchmark whose rounds are long."""

    def rounds_of(self, wanted: int) -> int:
        """Return how many rounds there are when this many are wanted."""
        return min(wanted, self.rounds or wanted)

    def against(self, other: Path) -> Benchmark:
        """Return a comparison of gw with the gw of another checkout, and with nothing else."""
        ours = self.sides[OURS]

        def theirs() -> Measured:
            with measuring(other):
                return ours()

        return replace(self, sides={OURS: ours, f"{OURS} of {other.name}": theirs}, goals=())

    def alone(self) -> Benchmark:
        """Return the benchmark without the peers."""
        ours = {name: side for name, side in self.sides.items() if name.startswith(OURS)}
        goals = [goal for goal in self.goals if goal.beside is None or goal.beside in ours]
        return replace(self, sides=ours, goals=goals)


@dataclass(slots=True)
class SideResult:
    """All rounds of one side, or why there are none."""

    rounds: list[Mapping[str, float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """The duration of each repetition, with its preparation."""
    notes: dict[str, str] = field(default_factory=dict)
    missing: str | None = None
    wrong: str | None = None

    def median(self, figure: str) -> float | None:
        """Return the middle of the rounds; None when this side has no such figure."""
        values = self.values(figure)
        return median(values) if values else None

    def values(self, figure: str) -> list[float]:
        """Return the figure of every repetition."""
        return [] if self.wrong else [each[figure] for each in self.rounds if figure in each]

    def figures(self) -> list[str]:
        """Return what was measured, in the order it was given."""
        return [] if self.wrong else list(dict.fromkeys(name for each in self.rounds for name in each))


@dataclass(slots=True)
class BenchmarkResult:
    """All sides of one benchmark."""

    benchmark: Benchmark
    sides: dict[str, SideResult]

    def ratio(self, figure: str, side: str, *, of: str | None = None) -> float | None:
        """Return our median divided by this side's."""
        ours, theirs = self.sides[of or next(iter(self.sides))].median(figure), self.sides[side].median(figure)
        return ours / theirs if ours is not None and theirs else None

    def reached(self, goal: Goal) -> tuple[float | None, bool]:
        """Return what a goal is compared with, and whether it was reached."""
        of = goal.of or next(iter(self.sides))
        value = self.sides[of].median(goal.figure) if goal.beside is None else self._beside(goal)
        if value is None:
            return None, False
        low, high = goal.at_least, goal.at_most
        return value, (low is None or value >= low) and (high is None or value <= high)

    def _beside(self, goal: Goal) -> float | None:
        return self.ratio(goal.figure, goal.beside, of=goal.of) if goal.beside in self.sides else None


def measure(benchmarks: Iterable[Benchmark], *, rounds: int, say: Callable[[str], None]) -> Iterator[BenchmarkResult]:
    """Measure one benchmark after the other; all sides alternate, so load on the machine affects all.

    The result is yielded after each side of each repetition, so an interrupted run keeps what it measured.
    """
    for benchmark in benchmarks:
        result = BenchmarkResult(benchmark, {name: SideResult() for name in benchmark.sides})
        for number in range(1, benchmark.rounds_of(rounds) + 1):
            for name in benchmark.sides:
                if _measure_side(benchmark.sides[name], result.sides[name]):
                    say(f"{benchmark.name} {number}/{benchmark.rounds_of(rounds)} {name}: {_last(result.sides[name])}")
                yield result


def _measure_side(side: Measure, result: SideResult) -> bool:
    """Measure a side again unless it failed before; returns whether it was measured."""
    if result.missing is not None or result.wrong is not None:
        return False
    began = time.monotonic()
    _try_to_measure(side, result)
    result.seconds.append(time.monotonic() - began)
    return True


def _try_to_measure(side: Measure, result: SideResult) -> None:
    try:
        measured = side()
    except NotMeasuredError as error:
        result.missing = str(error)
    except WrongResultError as error:
        result.wrong = str(error)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong at one side must not end the others' measurements
        result.missing = f"{type(error).__name__}: {' '.join(str(error).split())}"
    else:
        result.rounds.append(measured.figures)
        result.notes.update(measured.notes)


def _last(result: SideResult) -> str:
    if result.wrong:
        return f"WRONG: {result.wrong}"
    if result.missing:
        return f"not measured: {result.missing}"
    return ", ".join(f"{value:,.5g} {figure}" for figure, value in result.rounds[-1].items())
